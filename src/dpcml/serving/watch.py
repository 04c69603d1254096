"""What happens around every request: a limit on its body, an id, a count, a line in the log, an answer to a bug."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dpcml.serving.failures import failure, too_large
from dpcml.serving.logs import say
from dpcml.serving.metrics import OTHER, Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# The page needs nothing from elsewhere, so that a browser may refuse all else.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"),
)


class Watch:
    """An ASGI middleware; logs hold the path of a request, never its query or body."""

    def __init__(self, app: App, metrics: Metrics, max_body: int, log_requests: bool) -> None:
        self.app, self.metrics, self.max_body, self.log_requests = app, metrics, max_body, log_requests

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle a request; anything else (start and end of the server) is passed on."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        with self.metrics.under_way():
            return await self._request(scope, receive, send)

    async def _request(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        begin, status, mark = time.perf_counter(), 0, secrets.token_hex(8)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS, (b"x-request-id", mark.encode())]
            await send(message)

        try:
            if _announced(scope) > self.max_body:
                await too_large(self.max_body).response()(scope, receive, sending)
            else:
                await self.app(scope, _limited(receive, self.max_body), sending)
        except Exception as error:
            say("failed", logging.ERROR, error=error, path=self._path(scope), request=mark)
            if not status:
                hint = "this is a fault of the server: its log tells more under this request's id"
                await failure(500, "internal", f"request {mark} failed", hint)(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - begin
            path = self._path(scope)
            self.metrics.count(path, status, seconds)
            if self.log_requests:
                took = round(1000 * seconds, 2)
                say("request", method=scope["method"], path=path, status=status, milliseconds=took, request=mark)

    def _path(self, scope: MutableMapping[str, Any]) -> str:
        """Return the path of a request where it is one of ours; anything else may hold anything."""
        return scope["path"] if scope["path"] in self.metrics.paths else OTHER


def _announced(scope: MutableMapping[str, Any]) -> int:
    """Return the length of the body that the headers announce, 0 where they do not."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0


def _limited(receive: Receive, limit: int) -> Receive:
    """Return a reader that gives up on a body that grows beyond the limit without having announced it."""
    read = 0

    async def reading() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > limit:
            raise too_large(limit)
        return message

    return reading
