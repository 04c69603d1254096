"""Rows shared out to threads, for kernels that release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from weakref import WeakSet

import numpy as np

from dpcml.utils.errors import ParameterError


def thread_count(n_threads: int | None = None) -> int:
    """Return the number of threads to use: the wish, or $DPCML_THREADS, or every core this process may run on.

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
    return n_threads


def over_rows(work: Callable[[int, int], object], n_rows: int, n_threads: int | None = None) -> None:
    """Call ``work(start, stop)`` for consecutive ranges that cover all rows, on several threads.

    More ranges than threads are made, so that a thread with heavy rows does not keep the others waiting.

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
    if threads == 1:
        for start, stop in ranges:
            work(start, stop)
    else:
        list(_crew(threads).pool.map(lambda both: work(*both), ranges))


class Crew:
    """Threads that stay between calls: to start them anew takes longer than short work does.

    They go with their owner. A forked process has its parent's pools, but none of their threads, and starts its own.

    Examples
    --------
    >>> Crew(2).pool.submit(max, 3, 4).result()
    4
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        _crews.add(self)

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads, ready for work."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="dpcml")
        return self._pool


_crews: WeakSet[Crew] = WeakSet()


@cache
def _crew(threads: int) -> Crew:
    return Crew(threads)


def _forget_threads() -> None:
    for crew in _crews:
        crew._pool = None


os.register_at_fork(after_in_child=_forget_threads)
