"""Settings of a server, apart from the directory of its model."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError, ParameterError

MAX_BODY = 2**20  # bytes of a request
MIN_TOKEN_LENGTH = 16


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

    def __post_init__(self) -> None:
        at_least("max_body", self.max_body, 1)
        at_least("workers", self.workers, 1)
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
