"""The shortest way to a list: most requests ask for the list of one user, and many arrive together."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from dpcml.retrieval.request import UserBatch
from dpcml.serving.errors import library_error, no_items_left
from dpcml.serving.feedback import FeedbackStore
from dpcml.serving.lists import Found, likes_nothing, one_list
from dpcml.serving.middleware import App, Message, Receive, Scope, Send
from dpcml.serving.model_store import LoadedModel, ModelStore
from dpcml.serving.schemas import RecommendRequest
from dpcml.serving.work import CURRENT_POOLS, WorkPool
from dpcml.utils.errors import DpcmlError, UnknownIdError

AT_ONCE = 32  # lists that are made together; more save nothing, and all wait for the last one
IN_LOOP_SECONDS = 0.005  # lists that take no longer are made by the event loop itself; no other request waits longer
LONGEST = 100  # longer lists are made on other threads: they would keep the short ones waiting


class ListOptions(NamedTuple):
    """What lists that are made together have in common."""

    n: int
    exclude_seen: bool
    mix: float
    explain: bool
    mix_by: str | None = None

    @property
    def kind(self) -> tuple[bool, str | None, bool]:
        """What decides most about the time that a list takes."""
        return self.mix > 0, self.mix_by, self.explain


@dataclass(eq=False)
class _Request:
    loaded: LoadedModel
    row: int
    options: ListOptions
    answer: asyncio.Future[bytes]


class ListBatcher:
    """Makes the lists that are asked for at the same time, or while it works, together.

    One matrix product for many users takes little longer than one for a single user. Lists that take a few
    milliseconds, by what the ones before them took, are made by the event loop itself: a thread would take turns with
    it in holding the interpreter lock, of up to 5 ms each. All others are made on a thread.

    Parameters
    ----------
    max_waiting
        Lists that may wait; further ones are answered with status 429.
    """

    def __init__(self, max_waiting: int) -> None:
        self._pool, self._max_waiting = WorkPool(1, threads=1), max(1, max_waiting)
        self._waiting: list[_Request] = []
        self._working = False
        self._times = _ListTimes()

    async def make(self, loaded: LoadedModel, row: int, options: ListOptions) -> bytes:
        """Return the response with the list of the user at a row."""
        if len(self._waiting) >= self._max_waiting:
            self._pool.refuse(len(self._waiting))
        asked = _Request(loaded, row, options, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if not self._working:
            self._working, loop = True, asyncio.get_running_loop()
            loop.call_soon(self._begin, loop)  # after the requests that have arrived together with this one
        return await asked.answer

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._waiting = [one for one in self._waiting if not one.answer.done()]  # whose client has left
        some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        self._working = bool(some)
        if some and self._times.expected(some) <= IN_LOOP_SECONDS:
            self._deliver(some, self._answers(some))
            loop.call_soon(self._begin, loop)
        elif some:
            work = self._pool.submit(lambda: self._answers(some))
            work.add_done_callback(lambda done: loop.call_soon_threadsafe(self._go_on, loop, some, done.result()))

    def _go_on(self, loop: asyncio.AbstractEventLoop, some: list[_Request], answers: list[bytes | Exception]) -> None:
        self._deliver(some, answers)
        self._begin(loop)

    @staticmethod
    def _deliver(some: list[_Request], answers: list[bytes | Exception]) -> None:
        for one, answer in zip(some, answers, strict=True):
            if one.answer.done():
                continue
            if isinstance(answer, Exception):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)

    def close(self) -> None:
        """End the thread."""
        self._pool.close()

    def _answers(self, asked: list[_Request]) -> list[bytes | Exception]:
        """Return the responses; lists with the same options and of the same model are made together."""
        found: list[bytes | Exception] = [b""] * len(asked)
        for members in _groups(asked):
            loaded, options = asked[members[0]].loaded, asked[members[0]].options
            start = time.perf_counter()
            try:
                made = _lists(loaded, [asked[k].row for k in members], options)
            except Exception as error:
                made = [error] * len(members)
            self._times.add(loaded, options, len(members), time.perf_counter() - start)
            for k, answer in zip(members, made, strict=True):
                found[k] = answer
        return found


def _groups(asked: Sequence[_Request]) -> list[list[int]]:
    """Return the places of lists that can be made together."""
    groups: dict[tuple[int, ListOptions], list[int]] = {}
    for k, one in enumerate(asked):
        groups.setdefault((id(one.loaded), one.options), []).append(k)
    return list(groups.values())


class _ListTimes:
    """How long lists will take, from the last two times that lists of that kind took; long, where there are none."""

    def __init__(self) -> None:
        self._last: WeakKeyDictionary[LoadedModel, dict[tuple[bool, str | None, bool], deque[tuple[int, float]]]] = (
            WeakKeyDictionary()
        )

    def add(self, loaded: LoadedModel, options: ListOptions, count: int, seconds: float) -> None:
        """Keep the time of lists that were made together."""
        self._last.setdefault(loaded, {}).setdefault(options.kind, deque(maxlen=2)).append((count, seconds))

    def expected(self, asked: Sequence[_Request]) -> float:
        """Return the seconds for lists; the shorter of both times counts, as other programs may have delayed one."""
        total = 0.0
        for members in _groups(asked):
            one = asked[members[0]]
            last = self._last.get(one.loaded, {}).get(one.options.kind, ())
            total += min((seconds * max(1.0, len(members) / count) for count, seconds in last), default=math.inf)
        return total


def _lists(loaded: LoadedModel, rows: list[int], options: ListOptions) -> list[bytes | Exception]:
    """Return the responses for the users at some rows."""
    batch = UserBatch.known(loaded.model.train_, np.array(rows))
    lists = loaded.model.top_items(batch, **options._asdict())
    counts = np.count_nonzero((lists.items >= 0) & np.isfinite(lists.scores), axis=1).tolist()
    found: list[bytes | Exception] = []
    for place, (count, popular) in enumerate(zip(counts, likes_nothing(batch), strict=True)):
        reasons = lists.reasons[place] if options.explain else None
        best = Found(lists.items[place, :count], lists.scores[place, :count], reasons, popular)
        found.append(b"{%b}" % best.fields(loaded) if count else no_items_left())
    return found


class DirectRecommend:
    """Answers ``POST /api/v1/recommend`` without the web framework.

    What it cannot read goes to the framework, which says what is wrong with it.

    Parameters
    ----------
    store
        The models.
    batcher
        Makes lists from the whole catalogue.
    feedback
        What people said since the model was trained, if that is kept.
    """

    def __init__(self, store: ModelStore, batcher: ListBatcher, feedback: FeedbackStore | None) -> None:
        self._store, self._batcher, self._feedback = store, batcher, feedback

    async def __call__(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; ``app`` is the framework."""
        if scope["method"] != "POST" or scope["query_string"] or not _is_json(scope):
            return await app(scope, receive, send)
        body = await _read(receive)
        try:
            asked = RecommendRequest.model_validate_json(body)
        except ValidationError:
            return await app(scope, _again(body, receive), send)
        loaded = self._store.get("main")
        try:
            content = await self.content(loaded, asked)
        except DpcmlError as error:
            raise library_error(error) from None
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"x-dpcml-model", loaded.fingerprint.encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        return await send({"type": "http.response.body", "body": content})

    async def content(self, loaded: LoadedModel, asked: RecommendRequest) -> bytes:
        """Return the response to a request."""
        everything = asked.items is None and asked.where is None and not asked.exclude
        said = self._feedback is not None and self._feedback.person(asked.user) is not None
        if everything and asked.n <= LONGEST and not said:
            with suppress(UnknownIdError):  # `one_list` knows what to answer
                options = ListOptions(asked.n, asked.exclude_seen, asked.mix, asked.explain, asked.mix_by)
                return await self._batcher.make(loaded, loaded.user_row(asked.user), options)
        return await CURRENT_POOLS.get().lists.run(lambda: one_list(loaded, asked, self._feedback))


def _is_json(scope: Scope) -> bool:
    return any(name == b"content-type" and value.startswith(b"application/json") for name, value in scope["headers"])


async def _read(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that gives a body that was read already."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
