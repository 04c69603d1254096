"""One file on its way over HTTP, in as many attempts as it takes; used through `dpcml.data.catalog.download`."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import BinaryIO

from dpcml.utils.errors import DownloadError
from dpcml.utils.files import write_text

Progress = Callable[[int, int | None], None]  # bytes done, bytes in total if known
BLOCK = 1 << 16  # bytes read at once
PASSING = {408, 425, 429, 500, 502, 503, 504}  # HTTP states that a later attempt may not meet


def beside(target: Path, suffix: str) -> Path:
    """Return the path of a companion of a file.

    Examples
    --------
    >>> beside(Path("a.zip"), ".part").name
    'a.zip.part'
    """
    return target.with_name(target.name + suffix)


class _BrokenOffError(Exception):
    """An attempt that broke off; the next one may go on."""


@dataclass(frozen=True)
class Origin:
    """What a partial file is a part of; kept beside it."""

    url: str
    validator: str | None = None  # strong ETag or date of the remote file
    total: int | None = None  # bytes


class Transfer:
    """One file on its way: the address, the locked partial file and what is known of the remote one."""

    def __init__(
        self,
        url: str,
        target: Path,
        part: BinaryIO,
        progress: Progress | None,
        timeout: float,
        *,
        checked: bool,
    ) -> None:
        self.url = url
        self.path = beside(target, ".part")
        self.notes = beside(target, ".part.json")  # the origin of the partial file, for a later run
        self.part = part
        self.progress = progress or (lambda done, total: None)
        self.timeout = timeout
        self.checked = checked  # a checksum will tell whether bytes of two files were mixed
        self.blind = False  # bytes were continued that nothing but the checksum vouches for
        self.origin = self._read_notes()

    def run(self, retries: int, pause: float) -> None:
        """Bring the partial file to its full length, in several attempts if need be."""
        for attempt in range(retries + 1):
            try:
                self._attempt()
                break
            except _BrokenOffError as cut:
                if attempt == retries:
                    raise DownloadError(f"{self.url}: {cut}; {self._way_out()}") from None
            time.sleep(pause * 2**attempt)
        self.part.flush()
        os.fsync(self.part.fileno())

    def forget(self) -> None:
        """Drop the bytes there are."""
        self.part.truncate(0)
        self.notes.unlink(missing_ok=True)
        self.origin, self.blind = None, False

    def size(self) -> int:
        """Return how many bytes there are."""
        return self.part.seek(0, os.SEEK_END)

    def _way_out(self) -> str:
        self.part.flush()
        if kept := self.size():
            return f"{kept:,} bytes are kept in {self.path}: run it again to go on"
        return "check the connection and run it again"

    def _attempt(self) -> None:
        """Ask for the bytes that are missing, or for all of them where what is there cannot be continued."""
        sure = self.origin is not None and self.origin.validator is not None
        start = self.size() if sure or self.checked else 0
        with self._ask(start) as answer:
            found = _origin(self.url, answer.headers)
            same = self.origin is None or _same(self.origin, found)
            if answer.status == 206 and same and _range_start(answer.headers) == start:
                self.blind |= not sure
                return self._copy(answer, start, found.total)
            if answer.status == 416 and same and found.total == start:
                # all bytes are there: an earlier run ended between the last one and the rename
                self.blind |= not sure
                return self.progress(start, start)
            if answer.status == 200:
                self._begin(found)
                return self._copy(answer, 0, found.total)
        self.forget()  # the file has changed on the server, or it answers with a range that nobody asked for
        if not start:
            raise _BrokenOffError(f"the server answers {answer.status} to a request for the whole file")
        return self._attempt()

    def _ask(self, start: int) -> http.client.HTTPResponse:
        headers = {"User-Agent": "dpcml", "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            if self.origin and self.origin.validator:
                headers["If-Range"] = self.origin.validator
        try:
            request = urllib.request.Request(self.url, headers=headers)
            # An opener of our own: the shared one keeps the proxies of the first call in the process.
            answer = urllib.request.build_opener().open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                return error  # type: ignore[return-value]  # it has status, headers and a body like any answer
            reason = f"the server answers {error.code} {error.reason}"
            if error.code in PASSING:
                raise _BrokenOffError(reason) from None
            raise DownloadError(f"{self.url}: {reason}; check the address, or fetch it by hand") from None
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", None) or error
            if isinstance(cause, socket.gaierror):  # no such host, or no name server: soon is no better
                raise DownloadError(f"{self.url}: no answer ({cause.strerror}); {self._way_out()}") from None
            raise _BrokenOffError(f"no answer ({cause})") from None
        assert isinstance(answer, http.client.HTTPResponse)
        return answer

    def _copy(self, answer: http.client.HTTPResponse, done: int, total: int | None) -> None:
        self.part.seek(done)
        self.progress(done, total)
        while True:
            try:
                block = answer.read(BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise _BrokenOffError(f"the connection broke off after {done:,} bytes ({error})") from None
            if not block:
                break
            self.part.write(block)
            done += len(block)
            self.progress(done, total)
        if total is not None and done < total:
            raise _BrokenOffError(f"the connection broke off after {done:,} of {total:,} bytes")

    def _begin(self, origin: Origin) -> None:
        """Start from nothing; the origin is on disk before the first byte."""
        self.forget()
        write_text(self.notes, json.dumps(asdict(origin)))
        self.origin = origin

    def _read_notes(self) -> Origin | None:
        """Return what is known of the partial file, if it stems from this address."""
        try:
            origin = Origin(**json.loads(self.notes.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return origin if origin.url == self.url else None


def _origin(url: str, headers: Message) -> Origin:
    etag = headers.get("ETag", "")
    # A weak ETag cannot vouch for bytes.
    validator = etag if etag.startswith('"') else headers.get("Last-Modified")
    whole = headers.get("Content-Range", "").rpartition("/")[2] or headers.get("Content-Length", "")
    return Origin(url, validator, int(whole) if whole.isdigit() else None)


def _range_start(headers: Message) -> int:
    first = headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1


def _same(kept: Origin, found: Origin) -> bool:
    """Say whether nothing tells two states of a remote file apart; partial answers may leave headers out."""
    pairs = ((kept.validator, found.validator), (kept.total, found.total))
    return all(a == b for a, b in pairs if a is not None and b is not None)
