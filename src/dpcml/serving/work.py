"""Requests that compute run on a few threads; what waits for them is bounded, and cancelled when its client leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from dpcml.serving.errors import APIError

P = ParamSpec("P")
T = TypeVar("T")

CURRENT_CLIENT: ContextVar[Any] = ContextVar("client", default=None)  # a `protocol.Client`, where the server has them


class ClientLeftError(Exception):
    """Raised in a worker thread when nobody waits for the result any more."""


class WorkPool:
    """A few threads and a bounded queue.

    Parameters
    ----------
    max_waiting
        Calls that may wait for a thread; further ones raise `APIError` 429.
    threads
        Threads; more than cores would only compete for them.

    Examples
    --------
    >>> pool = WorkPool(max_waiting=4, threads=1)
    >>> asyncio.run(pool.run(lambda: 6 * 7))
    42
    """

    def __init__(self, max_waiting: int, threads: int | None = None) -> None:
        self.threads = threads or 2 * (os.cpu_count() or 1)
        self.limit = self.threads + max_waiting
        self.pending = 0  # running and waiting calls, those of clients that have left included while they run
        self._threads: ThreadPoolExecutor | None = None

    @property
    def _executor(self) -> ThreadPoolExecutor:
        """The threads; new ones after `close`, so that an application can be started again."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.threads, thread_name_prefix="dpcml-work")
        return self._threads

    def check_room(self) -> None:
        """Raise `APIError` 429 if no further call may wait."""
        if self.pending >= self.limit:
            self.refuse(self.pending)

    @staticmethod
    def refuse(pending: int) -> NoReturn:
        """Raise `APIError` 429."""
        raise APIError(
            429, "busy", f"{pending} requests are running or waiting, as many as this server takes",
            "ask again in a second, or start the server with more --workers", {"Retry-After": "1"},
        )  # fmt: skip

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Start a call in a thread, without a limit."""
        return self._executor.submit(function)

    async def run(self, function: Callable[[], T]) -> T:
        """Return the result of a call in a thread; if the caller is cancelled before it starts, it never does."""
        self.check_room()
        loop, client = asyncio.get_running_loop(), CURRENT_CLIENT.get()

        def call() -> T:
            if client is not None and client.left:
                raise ClientLeftError
            CURRENT_CLIENT.set(client)
            return function()

        self.pending += 1
        future = self._executor.submit(call)
        future.add_done_callback(lambda done: self._ended(loop, done))
        return await asyncio.wrap_future(future)

    def _ended(self, loop: asyncio.AbstractEventLoop, done: Future[Any]) -> None:
        def count() -> None:
            self.pending -= 1

        if not loop.is_closed():
            loop.call_soon_threadsafe(count)

    def close(self) -> None:
        """Drop what waits; running calls end by themselves."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def check_client() -> None:
    """Raise `ClientLeftError` if the client of the running call has left; long calls ask between their steps."""
    client = CURRENT_CLIENT.get()
    if client is not None and client.left:
        raise ClientLeftError


class Pools(NamedTuple):
    """Threads for lists, and one for searches, which must not take the threads of the lists."""

    lists: WorkPool
    searches: WorkPool


CURRENT_POOLS: ContextVar[Pools] = ContextVar("pools")


def in_pool(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Turn a function that computes into a route that runs it on a thread of its application."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await CURRENT_POOLS.get().lists.run(partial(function, *args, **kwargs))

    return call


def in_search_pool(function: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Turn a function that searches texts into a route that runs it on the thread for searches."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await CURRENT_POOLS.get().searches.run(partial(function, *args, **kwargs))

    return call
