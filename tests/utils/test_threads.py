import multiprocessing
import os
import threading

import numpy as np
import pytest

from dpcml.utils.errors import ParameterError
from dpcml.utils.threads import ThreadPool, default_threads, over_rows, thread_count

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


def test_an_absurd_number_of_threads_is_refused(monkeypatch):
    """Finding 15: a million threads were started, or the system refused in the middle."""
    with pytest.raises(ParameterError, match=r"n_threads=1000000: must be at most 1,024; more than the \d+ cores here"):
        thread_count(10**6)
    monkeypatch.setenv("DPCML_THREADS", "99999999999999999999")
    with pytest.raises(ParameterError, match="must be at most"):
        thread_count()


def test_thread_settings_are_restored(monkeypatch):
    monkeypatch.setenv("DPCML_THREADS", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with default_threads(2):
        assert (thread_count(), os.environ["OMP_NUM_THREADS"]) == (2, "2")
    assert thread_count() == 7
    assert "OMP_NUM_THREADS" not in os.environ
