"""Thread counts and thread pools, for kernels that release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from weakref import WeakSet

import numpy as np

from dpcml.utils.errors import ParameterError

MAX_THREADS = 1024  # each has a stack, and waits for all others after every batch
# Environment variables by which our kernels, BLAS and Polars learn how many threads to start.
VARIABLES = ("DPCML_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def thread_count(n_threads: int | None = None) -> int:
    """Return the number of threads to use: ``n_threads``, or $DPCML_THREADS, or all cores this process may run on.

    Examples
    --------
    >>> thread_count(3)
    3
    >>> thread_count() >= 1
    True
    """
    if n_threads is None and os.environ.get("DPCML_THREADS", "").isdigit():
        n_threads = int(os.environ["DPCML_THREADS"])
    if n_threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(n_threads, bool) or not isinstance(n_threads, int) or n_threads < 1:
        raise ParameterError(f"n_threads={n_threads!r}: must be a whole number of at least 1, or None for all cores")
    if n_threads > MAX_THREADS:
        cores = f"{os.cpu_count() or 1} cores here"
        raise ParameterError(f"n_threads={n_threads}: must be at most {MAX_THREADS:,}; more than the {cores} only wait")
    return n_threads


@contextmanager
def default_threads(n_threads: int) -> Iterator[None]:
    """Set how many threads are used where nobody says it, here and in processes that are started within a ``with``.

    BLAS and Polars read it at their start: of these, only new processes have another number.

    Examples
    --------
    >>> with default_threads(3):
    ...     thread_count()
    3
    """
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, str(n_threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def over_rows(work: Callable[[int, int], object], n_rows: int, n_threads: int | None = None) -> None:
    """Call ``work(start, stop)`` on several threads, for consecutive ranges that cover all rows.

    There are four ranges per thread, so that a thread with expensive rows does not delay the others.

    Examples
    --------
    >>> done = np.zeros(10, dtype=int)
    >>> def work(start, stop):
    ...     done[start:stop] += 1
    >>> over_rows(work, 10, n_threads=2)
    >>> done.tolist()
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    threads = thread_count(n_threads)
    edges = np.linspace(0, n_rows, min(n_rows, 1 if threads == 1 else 4 * threads) + 1).astype(int).tolist()
    ranges = list(pairwise(edges))
    if threads == 1 or len(ranges) == 1:  # one range: another thread would only cost the way there and back
        for start, stop in ranges:
            work(start, stop)
    else:
        list(_shared_pool(threads).executor.map(lambda both: work(*both), ranges))


class ThreadPool:
    """Threads that are kept between calls, because starting them takes longer than a short call.

    They end when their owner is deleted. After a fork the child has none of its parent's threads, so the pool starts
    new ones there; a plain ``ThreadPoolExecutor`` would wait for ever.

    Examples
    --------
    >>> ThreadPool(2).executor.submit(max, 3, 4).result()
    4
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._executor: ThreadPoolExecutor | None = None
        _pools.add(self)

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The executor of this process."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.n_threads, thread_name_prefix="dpcml")
        return self._executor


_pools: WeakSet[ThreadPool] = WeakSet()


@cache
def _shared_pool(threads: int) -> ThreadPool:
    return ThreadPool(threads)


def _drop_executors() -> None:
    for pool in _pools:
        pool._executor = None


os.register_at_fork(after_in_child=_drop_executors)
