"""What every request passes: token, origin, a limit on its body, an id, metrics and a log line."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import itertools
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping
from typing import Any

from fastapi.security import HTTPBearer
from starlette.requests import ClientDisconnect

from dpcml.serving.errors import APIError, body_too_large
from dpcml.serving.monitoring import CLIENT_LEFT, Metrics, log_event
from dpcml.serving.settings import ServeSettings
from dpcml.serving.work import CURRENT_CLIENT, CURRENT_POOLS, ClientLeftError, Pools

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
DirectHandler = Callable[[App, Scope, Receive, Send], Awaitable[None]]  # the first argument is the application
Headers = Iterable[tuple[bytes, bytes]]

CLIENT = "dpcml.client"  # key in the scope of a request: who waits for the answer, where the server knows
PUBLIC = frozenset({"/", "/health", "/ready", "/openapi.json"})
_NUMBERS = itertools.count(secrets.randbits(62))  # ids of requests: unlike those of other workers
# The page loads nothing from other hosts, so the browser may refuse it.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"),
)
PRIVATE = (b"cache-control", b"no-store")  # for answers about users, the model or the server
bearer = HTTPBearer(auto_error=False, description="The token of the server, if it was started with one.")


def check_token(headers: Headers, token: str) -> None:
    """Raise `APIError` 401 for a request without the server's token; the comparison takes constant time.

    Examples
    --------
    >>> check_token([(b"authorization", b"Bearer opensesame-opensesame")], "opensesame-opensesame")
    >>> check_token([], "opensesame-opensesame")
    Traceback (most recent call last):
    ...
    dpcml.serving.errors.APIError: 401: the token is missing or wrong
    """
    scheme, _, sent = _header(headers, b"authorization").partition(b" ")
    if scheme.lower() != b"bearer" or not hmac.compare_digest(sent.strip(), token.encode()):
        raise APIError(
            401,
            "unauthorized",
            "the token is missing or wrong",
            "send the header 'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": "Bearer"},
        )


def check_host(headers: Headers, hosts: Collection[str]) -> None:
    """Raise `APIError` 403 unless ``Host`` is an address, ``localhost`` or one of ``hosts``.

    Otherwise a web site could name this machine in its own domain, and its scripts could read the answers.
    """
    if not _is_own(_header(headers, b"host").decode("latin-1").lower(), hosts):
        hint = "use the server's address or localhost, or start the server with --allow-host NAME"
        raise APIError(403, "unknown_host", "the header Host names a host that this server does not know", hint)


def check_origin(headers: Headers, hosts: Collection[str]) -> None:
    """Raise `APIError` 403 for a request that another web site makes a browser send.

    ``Host`` is checked, see `check_host`, and ``Origin``, where a browser sends it, must be the server itself.

    Examples
    --------
    >>> check_origin([(b"host", b"127.0.0.1:8000"), (b"origin", b"http://127.0.0.1:8000")], ())
    >>> check_origin([(b"host", b"127.0.0.1:8000"), (b"origin", b"https://example.org")], ())
    Traceback (most recent call last):
    ...
    dpcml.serving.errors.APIError: 403: the request comes from another web site
    """
    check_host(headers, hosts)
    origin = _header(headers, b"origin").decode("latin-1").lower()
    if origin and origin.partition("://")[2] != _header(headers, b"host").decode("latin-1").lower():
        hint = "only the server's own page and programs may do this"
        raise APIError(403, "foreign_origin", "the request comes from another web site", hint)


def _is_own(host: str, hosts: Collection[str]) -> bool:
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    if name == "localhost" or name in hosts:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _header(headers: Headers, wanted: bytes) -> bytes:
    """Return the value of a header; empty if there is none, or more than one."""
    found = [value for name, value in headers if name == wanted]
    return found[0] if len(found) == 1 else b""


class RequestMiddleware:
    """An ASGI middleware that checks, limits, counts and logs requests.

    The token, ``Host`` and ``Origin`` are checked before the body is read. Logs hold the path, never the query or the
    body.

    Parameters
    ----------
    app
        The application that handles the requests.
    metrics
        Where requests are counted.
    settings
        Token, names of the server, limits.
    pools
        The threads that compute.
    changing
        Paths that change something; other web sites must not reach them through a browser.
    direct
        Handlers of requests that are answered without the application, by path.
    """

    def __init__(
        self,
        app: App,
        metrics: Metrics,
        settings: ServeSettings,
        pools: Pools,
        changing: Collection[str] = (),
        direct: Mapping[str, DirectHandler] | None = None,
    ) -> None:
        self.app, self.metrics, self.settings, self.pools = app, metrics, settings, pools
        self.changing, self.direct = frozenset(changing), direct or {}
        self.hosts = frozenset(name.lower() for name in settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an HTTP request; pass on other events, such as the start and end of the server."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        self.metrics.begin()
        try:
            return await self._handle(scope, receive, send)
        finally:
            self.metrics.end()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, status, request_id = time.perf_counter(), 0, f"{next(_NUMBERS):016x}"
        path, client = self.metrics.path(scope["path"]), scope.get(CLIENT)
        added = [*HEADERS, (b"x-request-id", request_id.encode())]
        if not is_public(scope["path"]):
            added.append(PRIVATE)
        CURRENT_CLIENT.set(client)
        CURRENT_POOLS.set(self.pools)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            self._check(scope)
            direct, limited = self.direct.get(scope["path"]), _limited(receive, self.settings.max_body)
            if direct is None:
                await self.app(scope, limited, send_with_headers)
            else:
                await direct(self.app, scope, limited, send_with_headers)
        except APIError as error:
            await error.response()(scope, receive, send_with_headers)
        except (asyncio.CancelledError, ClientLeftError, ClientDisconnect) as error:
            if isinstance(error, asyncio.CancelledError) and (client is None or not client.left):
                raise
            status = CLIENT_LEFT
        except Exception as error:
            log_event("failed", logging.ERROR, error=error, path=path, request=request_id)
            if not status:
                hint = "this is a fault of the server: search its log for the id of this request"
                failed = APIError(500, "internal", f"request {request_id} failed", hint)
                await failed.response()(scope, receive, send_with_headers)
        finally:
            if client is not None and client.left:
                status = client.status
            seconds = time.perf_counter() - start
            self.metrics.observe(path, status, seconds)
            if self.settings.log_requests:
                took = round(1000 * seconds, 2)
                log_event(
                    "request", method=scope["method"], path=path, status=status, milliseconds=took, request=request_id
                )

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]
        if self.settings.token is not None and not is_public(scope["path"]):
            check_token(headers, self.settings.token)
        if scope["path"] in self.changing:
            check_origin(headers, self.hosts)
        elif self.settings.known_hosts_only and not is_public(scope["path"]):
            check_host(headers, self.hosts)
        if _content_length(headers) > self.settings.max_body:
            raise body_too_large(self.settings.max_body)


def is_public(path: str) -> bool:
    """Return whether a path needs no token: the page, its files, the probes and the description of the requests.

    Examples
    --------
    >>> is_public("/health"), is_public("/static/main.js"), is_public("/metrics"), is_public("/api/v1/model")
    (True, True, False, False)
    """
    return path in PUBLIC or path.startswith("/static/")


def _content_length(headers: Headers) -> int:
    """Return the length of the body from the request's headers, 0 if they do not give it."""
    length = _header(headers, b"content-length")
    return int(length) if length.isdigit() else 0


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
