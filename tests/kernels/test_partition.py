from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from dpcml.kernels.barrier import USER_QUEUE, barrier_state, next_share, wait
from dpcml.kernels.partition import GROUPS, shares, sort_by_group


@njit
def sort(groups, count, starts, listed):
    sort_by_group(groups, count, starts, listed)


@pytest.mark.parametrize("count", [0, 1, 5, 700])
def test_numbers_are_listed_group_by_group(count):
    groups = np.random.default_rng(count).integers(0, GROUPS + 1, 700).astype(np.uint8)
    starts, listed = np.full(GROUPS + 1, -1), np.full(700, -1, np.int32)
    sort(groups, count, starts, listed)
    assert listed[:count].tolist() == np.argsort(groups[:count], kind="stable").tolist()
    assert (listed[count:] == -1).all()
    assert starts.tolist() == np.searchsorted(np.sort(groups[:count]), np.arange(GROUPS + 1)).tolist()


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7, 64, 200])
def test_shares_cover_every_group_once_and_shrink(n_threads):
    begins = shares(n_threads)
    assert begins[0] == 0
    assert begins[-1] == GROUPS
    sizes = np.diff(begins)
    assert (sizes >= 0).all()
    assert len(set(sizes[:n_threads])) == 1, "the static shares are equally large"
    assert (np.diff(sizes[n_threads:]) <= 0).all()
    assert len(sizes) >= n_threads


@njit(nogil=True)
def work(state, n_shares, thread, n_threads, n_batches, workers):
    """Note for each share of each batch how many worked on it; thread 0 is far slower than the others."""
    for batch in range(n_batches):
        share = thread
        while share < n_shares:
            workers[batch, share, thread] += 1
            if thread == 0:
                for k in range(2000):
                    workers[batch, share, n_threads] += k
            share = next_share(state, USER_QUEUE, batch, n_shares, n_threads)
        wait(state, n_threads)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5])
def test_every_share_is_worked_on_by_one_thread(n_threads):
    n_shares, n_batches = len(shares(n_threads)) - 1, 200
    state, workers = barrier_state(), np.zeros((n_batches, n_shares, n_threads + 1), np.int64)
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [
            pool.submit(work, state, n_shares, thread, n_threads, n_batches, workers) for thread in range(n_threads)
        ]
        for future in futures:
            future.result()
    counts = workers[:, :, :n_threads]
    assert (counts.sum(axis=2) == 1).all()
    for thread in range(n_threads):
        assert counts[:, thread, thread].all(), "each thread works on its static share"
