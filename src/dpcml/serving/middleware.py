"""What every request passes: a limit on its body, an id, metrics, a log line, and the check of the token."""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Annotated, Any

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from dpcml.serving.errors import APIError, body_too_large
from dpcml.serving.monitoring import Metrics, log_event

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# The page loads nothing from other hosts, so the browser may refuse it.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"),
)
bearer = HTTPBearer(auto_error=False, description="The token of the server, if it was started with one.")


def check_token(
    request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(bearer)] = None
) -> None:
    """Raise `APIError` 401 for a request without the server's token; the comparison takes constant time."""
    token: str = request.app.state.settings.token
    sent = b"" if given is None else given.credentials.encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(sent, token.encode()):
        raise APIError(
            401,
            "unauthorized",
            "the token is missing or wrong",
            "send the header 'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": "Bearer"},
        )


class RequestMiddleware:
    """An ASGI middleware that limits, counts and logs requests; logs hold the path, never the query or the body.

    Parameters
    ----------
    app
        The application that handles the requests.
    metrics
        Where requests are counted.
    max_body
        Largest request body in bytes; larger ones are answered with status 413.
    log_requests
        Log every request.
    """

    def __init__(self, app: App, metrics: Metrics, max_body: int, log_requests: bool) -> None:
        self.app, self.metrics, self.max_body, self.log_requests = app, metrics, max_body, log_requests

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle an HTTP request; pass on other events, such as the start and end of the server."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        with self.metrics.in_flight.track_inprogress():
            return await self._handle(scope, receive, send)

    async def _handle(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        start, status, request_id = time.perf_counter(), 0, secrets.token_hex(8)
        path = self.metrics.path(scope["path"])

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            if _content_length(scope) > self.max_body:
                await body_too_large(self.max_body).response()(scope, receive, send_with_headers)
            else:
                await self.app(scope, _limited(receive, self.max_body), send_with_headers)
        except Exception as error:
            log_event("failed", logging.ERROR, error=error, path=path, request=request_id)
            if not status:
                hint = "this is a fault of the server: search its log for the id of this request"
                failed = APIError(500, "internal", f"request {request_id} failed", hint)
                await failed.response()(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - start
            self.metrics.observe(path, status, seconds)
            if self.log_requests:
                took = round(1000 * seconds, 2)
                log_event(
                    "request", method=scope["method"], path=path, status=status, milliseconds=took, request=request_id
                )


def _content_length(scope: MutableMapping[str, Any]) -> int:
    """Return the length of the body from the request's headers, 0 if they do not give it."""
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(lengths[0]) if lengths and lengths[0].isdigit() else 0


def _limited(receive: Receive, limit: int) -> Receive:
    """Return a receive function that raises an error once a body without a declared length exceeds the limit."""
    received = 0

    async def receive_limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise body_too_large(limit)
        return message

    return receive_limited
