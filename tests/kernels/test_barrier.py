from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from dpcml.kernels.barrier import barrier_state, wait


@njit(nogil=True)
def march(state, place, thread, n_threads, rounds):
    """Step forward, wait, and count the others who are not at the same place; wait again before the next step."""
    astray = 0
    for number in range(1, rounds + 1):
        place[thread, 0] = number
        wait(state, n_threads)
        for other in range(n_threads):
            astray += place[other, 0] != number
        wait(state, n_threads)
    return astray


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_nobody_overtakes(n_threads):
    state, place, rounds = barrier_state(), np.zeros((n_threads, 16), dtype=np.int64), 400
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(march, state, place, thread, n_threads, rounds) for thread in range(n_threads)]
        assert [future.result() for future in futures] == [0] * n_threads
    assert (place[:, 0] == rounds).all()


def test_one_thread_waits_for_the_other():
    state, place = barrier_state(), np.zeros((2, 16), dtype=np.int64)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(march, state, place, 0, 2, 1)
        assert not first.done()
        assert place[1, 0] == 0
        assert pool.submit(march, state, place, 1, 2, 1).result() == 0
        assert first.result() == 0
