"""Files from the web: resumed where a connection broke, checked, and put in place as a whole."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dpcml.data.catalog.transfer import Progress, Transfer, beside
from dpcml.utils.errors import DownloadError, ParameterError


def download(
    url: str,
    target: str | Path,
    *,
    sha256: str | None = None,
    md5: str | None = None,
    progress: Progress | None = None,
    retries: int = 3,
    timeout: float = 30,
    pause: float = 1.0,
) -> Path:
    """Fetch a file over HTTP, going on where an earlier attempt broke off.

    The bytes gather in ``<target>.part``, which becomes ``target`` once length and checksum are right. A file
    that stands at ``target`` already, with the right checksum where one is given, is left alone. A lock keeps
    two processes from writing the same partial file: the second waits and then finds the file in place.

    Parameters
    ----------
    url
        An http or https address.
    target
        Where to put the file.
    sha256, md5
        Checksums in hexadecimal; each one given is verified.
    progress
        Called with the bytes done and the bytes in total (``None`` where the server does not say).
    retries
        Further attempts after one that broke off.
    timeout
        Seconds without a byte after which an attempt counts as broken off.
    pause
        Seconds before the first further attempt; doubled for each one after it.

    Examples
    --------
    >>> download("ftp://host/a.zip", "a.zip")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: url 'ftp://host/a.zip': only http and https addresses can be downloaded
    """
    if not url.startswith(("http://", "https://")):
        raise ParameterError(f"url {url!r}: only http and https addresses can be downloaded")
    if retries < 0:
        raise ParameterError(f"retries={retries}: must be at least 0")
    target = Path(target)
    given = {"sha256": sha256, "md5": md5}
    checksums = {name: value.lower() for name, value in given.items() if value is not None}
    try:
        if _sound(target, checksums):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(beside(target, ".part")) as part:
            if _sound(target, checksums):  # another process was faster
                _discard(target)
                return target
            transfer = Transfer(url, target, part, progress, timeout, checked=bool(checksums))
            try:
                _complete(transfer, checksums, retries, pause)
            except BaseException:
                if not transfer.size():
                    _discard(target)
                raise
            transfer.notes.unlink(missing_ok=True)
            transfer.path.replace(target)
    except DownloadError:
        raise
    except OSError as error:  # from the disk: what goes wrong on the net is a DownloadError by now
        raise DownloadError(f"{target}: cannot be written: {error.strerror or error}") from None
    return target


def _complete(transfer: Transfer, checksums: dict[str, str], retries: int, pause: float) -> None:
    """Bring the partial file to its full length and check it; a wrong one is emptied."""
    transfer.run(retries, pause)
    if transfer.blind and _wrong(transfer.path, checksums):
        transfer.forget()
        transfer.run(retries, pause)
    if wrong := _wrong(transfer.path, checksums):
        transfer.forget()
        raise DownloadError(f"{transfer.url}: {wrong}; the download is removed, run it again to start anew")


def _discard(target: Path) -> None:
    for suffix in (".part.json", ".part"):
        beside(target, suffix).unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """Open a file, created if need be, that whoever asks in the same way must wait for.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder) / "lock") as file:
    ...     file.write(b"mine")
    4
    """
    while True:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _stands_at(path, file):
                yield file
                return


def _stands_at(path: Path, file: BinaryIO) -> bool:
    """Say whether an open file is still the one at a path: who held the lock may have moved it away."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _sound(path: Path, checksums: dict[str, str]) -> bool:
    return path.is_file() and not _wrong(path, checksums)


def _wrong(path: Path, checksums: dict[str, str]) -> str:
    """Say which checksum of a file is not the one expected; empty where all are right."""
    for name, expected in checksums.items():
        with path.open("rb") as file:
            found = hashlib.file_digest(file, name).hexdigest()
        if found != expected:
            return f"wrong {name}: expected {expected}, found {found}"
    return ""
