import multiprocessing
import os
import threading

import numpy as np

from dpcml.utils.threads import ThreadPool, over_rows

POOL = ThreadPool(1)


def total(n: int) -> int:
    done = np.zeros(n, dtype=int)

    def work(start: int, stop: int) -> None:
        done[start:stop] += 1

    over_rows(work, n, n_threads=2)
    return int(done.sum())


def process_of_the_pool() -> int:
    return POOL.executor.submit(os.getpid).result(timeout=60)


def test_a_forked_process_starts_threads_of_its_own():
    assert total(100) == 100
    thread = POOL.executor.submit(threading.current_thread).result(timeout=60)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(total, (50,)).get(timeout=60) == 50
        assert pool.apply_async(process_of_the_pool).get(timeout=60) != os.getpid()
    assert POOL.executor.submit(threading.current_thread).result(timeout=60) is thread, "threads are kept"


def test_threads_end_with_their_owner():
    pool = ThreadPool(1)
    thread = pool.executor.submit(threading.current_thread).result(timeout=60)
    del pool
    thread.join(timeout=60)
    assert not thread.is_alive()
