"""Settings of a server, apart from the directory of its model."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from dpcml.feedback import MAX_BYTES
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import DataError, ParameterError

MAX_BODY = 2**20  # bytes of a request
MIN_TOKEN_LENGTH = 16


@dataclass(frozen=True)
class Limits:
    """What clients may use of one process of the server.

    Examples
    --------
    >>> Limits(connections=0)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: connections=0: must be a whole number of at least 1
    """

    connections: int = 512  # open at once; beyond it, the connection that has been idle longest is closed
    waiting: int = 256  # requests that wait for a thread; further ones are answered with status 429
    header_seconds: float = 10.0  # from the start of a connection or a request to the end of its headers
    body_seconds: float = 30.0  # from the end of the headers to the end of the body
    idle_seconds: float = 10.0  # between two requests on one connection
    send_seconds: float = 60.0  # for the rest of an answer, once the connection is to be closed

    def __post_init__(self) -> None:
        at_least("connections", self.connections, 1)
        at_least("waiting", self.waiting, 0)
        for name in ("header_seconds", "body_seconds", "idle_seconds", "send_seconds"):
            positive(name, getattr(self, name))


@dataclass(frozen=True)
class ServeSettings:
    """How to serve a model.

    Parameters
    ----------
    token
        Clients must send ``Authorization: Bearer TOKEN``; None lets everybody call.
    compare
        Directory of a second model, which the page shows beside the first.
    max_body
        Largest request body in bytes; larger ones are answered with status 413.
    log_requests
        Log every request as a line of JSON.
    index
        Build an approximate index of a large catalogue, unless there is one; otherwise only an existing index is used.
    workers
        Worker processes of the server.
    hosts
        Names under which clients reach the server, besides ``localhost`` and addresses: requests that change something
        must name one of them in ``Host``.
    known_hosts_only
        Requests that read must do so too. ``dpcml serve`` wants it of a server for this machine without a token:
        otherwise a web site that gives this machine a name of its own could read through the browser.
    limits
        What clients may use.
    feedback
        File that keeps feedback; None takes none.
    feedback_bytes
        Its largest size in bytes.

    Examples
    --------
    >>> ServeSettings(token="short")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: token of 5 characters: it must have at least 16 printable ones, without spaces
    """

    token: str | None = field(default=None, repr=False)
    compare: Path | None = None
    max_body: int = MAX_BODY
    log_requests: bool = True
    index: bool = False
    workers: int = 1
    hosts: tuple[str, ...] = ()
    known_hosts_only: bool = False
    limits: Limits = Limits()
    feedback: Path | None = None
    feedback_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        at_least("max_body", self.max_body, 1)
        at_least("workers", self.workers, 1)
        at_least("feedback_bytes", self.feedback_bytes, 1)
        if self.token is not None and not _is_valid(self.token):
            raise ParameterError(
                f"token of {len(self.token)} characters: it must have at least {MIN_TOKEN_LENGTH} printable ones,"
                " without spaces"
            )


def read_token(file: str | Path) -> str:
    """Return the token from a file of one line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / "token").write_text("opensesame-opensesame")
    ...     read_token(Path(place) / "token")
    'opensesame-opensesame'
    """
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise DataError(f"{file}: the token cannot be read ({reason}); name a file with one line") from None
    if not _is_valid(token):
        raise DataError(
            f"{file}: holds no token of at least {MIN_TOKEN_LENGTH} printable characters without spaces; make one with"
            " python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


def is_readable_by_others(file: str | Path) -> bool:
    """Return whether other users of this machine can read a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     is_readable_by_others(file.name)
    False
    """
    return bool(Path(file).stat().st_mode & 0o044)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("::1"), is_loopback("localhost")
    (True, False, True, True)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_valid(token: str) -> bool:
    return len(token) >= MIN_TOKEN_LENGTH and token.isascii() and token.isprintable() and " " not in token
