"""Runs in several processes of one thread each: where an epoch has little work, faster than threads."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from dpcml.utils.threads import default_threads

T = TypeVar("T")


@contextmanager
def one_thread_each(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of new processes that compute on one thread; those that it is left with are cancelled."""
    with default_threads(1), ExitStack() as stack:
        pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        yield pool


def in_turns(
    pool: ProcessPoolExecutor, workers: int, tasks: list[T], submit: Callable[[T], tuple[Any, ...]]
) -> Iterator[tuple[T, Future[Any]]]:
    """Yield tasks with their results as they end; no more than the workers can begin are submitted at once.

    Parameters
    ----------
    pool, workers
        The processes, and how many they are.
    tasks
        What is to be done, in this order.
    submit
        Function and arguments for a task, picklable.
    """
    left, running = list(reversed(tasks)), dict[Future[Any], T]()
    while left or running:
        while left and len(running) < workers:
            task = left.pop()
            running[pool.submit(*submit(task))] = task
        ended, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            yield running.pop(future), future
