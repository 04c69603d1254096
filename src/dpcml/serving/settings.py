"""What a server is told beside the directory of its model."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError, ParameterError

MAX_BODY = 2**20  # bytes of a request
SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True)
class ServeSettings:
    """How to serve a model.

    Parameters
    ----------
    token
        What callers must send as ``Authorization: Bearer TOKEN``; without it everybody may call.
    compare
        Directory of a second model, for the page to show beside the first.
    max_body
        Bytes of a request at most; larger ones are answered with status 413.
    log_requests
        Write a line of JSON for every request.
    index
        Make an approximate index of large catalogues, if there is none yet; without it only one that is there is used.
    workers
        Processes of the server.
    shared
        Folder that they share, for their counters and to tell who is at work; none for a single process.

    Examples
    --------
    >>> ServeSettings(token="short")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: a token of 5 characters: it must have at least 16 printable ones, without spaces
    """

    token: str | None = field(default=None, repr=False)
    compare: Path | None = None
    max_body: int = MAX_BODY
    log_requests: bool = True
    index: bool = False
    workers: int = 1
    shared: Path | None = None

    def __post_init__(self) -> None:
        at_least("max_body", self.max_body, 1)
        if self.token is not None and not _good(self.token):
            raise ParameterError(
                f"a token of {len(self.token)} characters: it must have at least {SHORTEST_TOKEN} printable ones,"
                " without spaces"
            )


def read_token(file: str | Path) -> str:
    """Return the token in a file: its only line.

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
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise DataError(f"{file}: the token cannot be read ({reason}); name a file with one line") from None
    if not _good(token):
        raise DataError(
            f"{file}: holds no token of at least {SHORTEST_TOKEN} printable characters without spaces; make one with"
            " python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


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


def threads_for_work() -> int:
    """Return how many requests a process works on at once; the others wait their turn.

    Examples
    --------
    >>> threads_for_work() >= 2
    True
    """
    return 2 * (os.cpu_count() or 1)


def _good(token: str) -> bool:
    return len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable() and " " not in token
