"""Connections with limits: how many there are, how long they may keep the server waiting, how they end."""

from __future__ import annotations

import asyncio
import resource
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from dpcml.serving.middleware import CLIENT
from dpcml.serving.monitoring import CLIENT_LEFT
from dpcml.serving.settings import Limits

ACCEPT_AT_ONCE = 128  # connections that asyncio takes before it looks at any of them; also the kernel's queue
SPARE_FILES = 128  # descriptors for everything that is not a connection
STOP_SECONDS = 0.5  # after SIGTERM, for requests that are on their way
TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Client:
    """Who waits for an answer; work that takes long looks at ``left`` at times.

    Examples
    --------
    >>> Client().left
    False
    """

    __slots__ = ("left", "status")

    def __init__(self) -> None:
        self.left = False
        self.status = CLIENT_LEFT  # under which the request is counted, if the client has left


def connection_limit(limits: Limits) -> int:
    """Return how many connections a process takes: fewer than asked for, if it may not open that many files.

    Examples
    --------
    >>> connection_limit(Limits(connections=10))
    10
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return limits.connections
    return max(1, min(limits.connections, files - ACCEPT_AT_ONCE - SPARE_FILES))


class _State(ServerState):
    """What the connections of a server share."""

    def __init__(self) -> None:
        super().__init__()
        self.stopping = False


class LimitedProtocol(HttpToolsProtocol):
    """A connection that cannot keep the server waiting for ever.

    Parameters
    ----------
    limits
        Numbers of connections and seconds.
    given
        What uvicorn passes to its protocols.
    """

    def __init__(self, *, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self.limits, self.most = limits, connection_limit(limits)
        self.since: float | None = 0.0  # since when the server waits for the client; None while it works itself
        self.closing_since: float | None = None
        self.task: asyncio.Task[None] | None = None
        self.waiting_client = Client()

    # What happens on the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; beyond the limit, the one that has kept the server waiting longest makes room."""
        super().connection_made(transport)
        self.since = self.loop.time()
        if len(self.connections) > self.most:
            self._make_room()
        if self._stopping():
            self.loop.call_later(STOP_SECONDS, self._close_if_waiting)

    def _make_room(self) -> None:
        """Close the connection that has waited longest, one without a request first; this one, if all others work."""
        idle: LimitedProtocol | None = None
        sending: LimitedProtocol | None = None
        for one in self.connections:
            if not isinstance(one, LimitedProtocol) or one is self or one.since is None:
                continue
            if one._in_request():
                if sending is None or one.since < (sending.since or 0.0):
                    sending = one
            elif idle is None or one.since < (idle.since or 0.0):
                idle = one
        chosen = idle or sending or self
        self.connections.discard(chosen)  # now, so that the next connection does not choose it again
        chosen.give_up()

    def on_message_begin(self) -> None:
        """Note when a request begins."""
        super().on_message_begin()
        if not self._in_request():
            self.since = self.loop.time()

    def on_headers_complete(self) -> None:
        """Note when the body begins."""
        super().on_headers_complete()
        self.since = self.loop.time()

    def on_message_complete(self) -> None:
        """Stop the clock: the server works."""
        super().on_message_complete()
        if self._in_request():
            self.since = None

    def on_response_complete(self) -> None:
        """Start the clock again, unless a further request is there already."""
        self.since = self.loop.time()
        super().on_response_complete()
        if self._in_request() and not self.cycle.more_body:
            self.since = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the work for a client that has left."""
        super().connection_lost(exc)
        self.pipeline.clear()
        self._cancel(CLIENT_LEFT)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start the work for a request; `connection_lost` cancels it."""
        if self._stopping():
            cycle.keep_alive = False
        self.waiting_client = Client()
        cycle.scope[CLIENT] = self.waiting_client  # type: ignore[literal-required]
        self.task = self.loop.create_task(cycle.run_asgi(app))
        self.task.add_done_callback(self.tasks.discard)
        self.tasks.add(self.task)

    # How it ends

    def expire(self, now: float) -> None:
        """Close the connection if the client has kept the server waiting for too long; called every second."""
        if self.transport.is_closing():  # the rest of an answer is being sent
            self.closing_since = self.closing_since or now
            if now - self.closing_since > self.limits.send_seconds:
                self.transport.abort()
        elif self.since is not None:
            allowed = self.limits.body_seconds if self._in_request() else self.limits.header_seconds
            if now - self.since > allowed:
                self.give_up()

    def give_up(self) -> None:
        """Stop waiting for the client: close the connection, after an answer 408 if a request has begun."""
        if self.transport.is_closing():
            self.transport.abort()
            return
        if self._in_request():
            self._cancel(408)
            if not self.cycle.response_started:
                self.transport.write(TIMEOUT)
            self.cycle.disconnected = True
        self.transport.close()

    def shutdown(self) -> None:
        """Close the connection after the answer in progress, or soon, if there is none."""
        if self._in_request():
            self.cycle.keep_alive = False
        self.loop.call_later(STOP_SECONDS, self._close_if_waiting)

    def _close_if_waiting(self) -> None:
        if self.since is not None and not self.transport.is_closing():
            self.give_up()

    def _cancel(self, status: int) -> None:
        """Cancel the work for a request, which is counted under a status."""
        if self.task is not None and not self.task.done() and not self.waiting_client.left:
            self.waiting_client.left, self.waiting_client.status = True, status
            self.task.cancel()

    def _in_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _stopping(self) -> bool:
        return isinstance(self.server_state, _State) and self.server_state.stopping


class GracefulServer(uvicorn.Server):
    """Uvicorn's server, with connections that expire.

    When it stops, it answers the requests that it has taken and those that arrive within half a second on open
    connections, and says in every answer that the connection ends.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = _State()

    async def on_tick(self, counter: int) -> bool:
        """Look at all connections once per second."""
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for one in list(self.server_state.connections):
                if isinstance(one, LimitedProtocol):
                    one.expire(now)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; connections that are taken from now on know about it."""
        self.server_state.stopping = True  # type: ignore[attr-defined]
        await super().shutdown(sockets)
