import multiprocessing

import numpy as np

from dpcml.threads import over_rows


def total(n: int) -> int:
    done = np.zeros(n, dtype=int)

    def work(start: int, stop: int) -> None:
        done[start:stop] += 1

    over_rows(work, n, n_threads=2)
    return int(done.sum())


def test_a_forked_process_starts_threads_of_its_own():
    assert total(100) == 100
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(total, (50,)).get(timeout=60) == 50
