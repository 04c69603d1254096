"""The feedback journal: what people said about items while a model was served, as lines that are only ever appended."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
import weakref
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpcml.utils.checks import at_least, choice
from dpcml.utils.errors import DataError

ACTIONS = ("like", "dislike", "hide", "clear")
FIRST_LINE = b"dpcml feedback 1\n"
MAX_BYTES = 64 * 2**20  # about half a million entries


class JournalFullError(DataError):
    """The journal has reached its largest size."""


@dataclass(frozen=True)
class Feedback:
    """What a person said about an item.

    Parameters
    ----------
    user, item
        External ids, whole numbers or texts.
    action
        ``like``; ``dislike`` (not for this person, and no part of their history); ``hide`` (do not show it);
        ``clear`` takes back what was said before.
    time
        Seconds since 1970; now by default.

    Examples
    --------
    >>> Feedback("ann", 7, "love", time=0.0)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: action='love': known: clear, dislike, hide, like
    """

    user: int | str
    item: int | str
    action: str
    time: float = -1.0

    def __post_init__(self) -> None:
        choice("action", self.action, ACTIONS)
        if self.time < 0:
            object.__setattr__(self, "time", round(time.time(), 3))


class FeedbackJournal:
    """An append-only file of feedback, which several processes may write and read at once.

    Each entry is a line with a checksum. It is on the disk when `append` returns. A line that was cut by a kill, or
    damaged, is left out when the journal is read; the lines before and after it stay. Entries that were read and are
    gone later, because the disk did not keep them or somebody has cut the file, are noticed: all others are read again.

    Parameters
    ----------
    file
        The journal; it is made if it is not there.
    max_bytes
        Largest size; beyond it, `append` raises `JournalFullError`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     journal = FeedbackJournal(Path(place) / "journal")
    ...     journal.append(Feedback("ann", 7, "like"))
    ...     [(one.user, one.item, one.action) for one in FeedbackJournal(Path(place) / "journal").read_new()]
    [('ann', 7, 'like')]
    """

    def __init__(self, file: str | Path, max_bytes: int = MAX_BYTES) -> None:
        at_least("max_bytes", max_bytes, 1)
        self.path, self._max_bytes = Path(file), max_bytes
        self.damaged = 0  # lines that were left out
        self.restarts = 0  # times that entries which had been read were gone
        self._offset, self._last = len(FIRST_LINE), FIRST_LINE  # how far it was read, and the last line before that
        # Two locks: who reads must not wait until an entry of another thread is on the disk.
        self._writing, self._reading = threading.Lock(), threading.Lock()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataError(f"{file}: the feedback journal cannot be opened ({error.strerror})") from None
        self._close = weakref.finalize(self, os.close, self._file)
        try:
            self._begin()
        except BaseException:
            self._close()
            raise

    def _begin(self) -> None:
        """Write the first line of a new journal; refuse a file that is something else."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            start = os.pread(self._file, len(FIRST_LINE), 0)
            if start != FIRST_LINE and FIRST_LINE.startswith(start):  # new, or cut while it was made
                os.ftruncate(self._file, 0)
                self._write(FIRST_LINE)
            elif start != FIRST_LINE:
                raise DataError(f"{self.path}: is no feedback journal; name a new file, or one that dpcml serve wrote")
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def append(self, entry: Feedback) -> None:
        """Write an entry; when this returns, it survives the end of the process and of the machine."""
        content = json.dumps(asdict(entry), separators=(",", ":")).encode("ascii")
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        with self._writing:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                size = os.fstat(self._file).st_size
                if size + len(line) > self._max_bytes:
                    raise JournalFullError(
                        f"{self.path}: the journal has {size:,} bytes, {self._max_bytes:,} is the most; put the likes"
                        " into the model with 'dpcml update' and begin a new journal"
                    )
                self._write(self._before(size) + line)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _before(self, size: int) -> bytes:
        """Return what is missing before a new line: the end of one that was cut, the first one of an emptied file."""
        if not size:
            return FIRST_LINE
        return b"" if os.pread(self._file, 1, size - 1) == b"\n" else b"\n"

    def _write(self, data: bytes) -> None:
        """Write all of the data or nothing; the file is locked."""
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, data) != len(data):
                raise OSError(28, os.strerror(28))  # the disk is full
            os.fdatasync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            raise DataError(f"{self.path}: the feedback cannot be written ({error.strerror})") from None

    def read_new(self) -> list[Feedback]:
        """Return the entries since the last call, those of other processes included.

        Where entries that were read are gone, ``restarts`` is one more, and all entries are returned once more.
        """
        with self._reading:
            data = self._unread()
            if data is None:
                self._offset, self._last, self.damaged = len(FIRST_LINE), FIRST_LINE, 0
                self.restarts += 1
                data = self._unread() or b""
            data = data[: data.rfind(b"\n") + 1]  # an entry without an end is being written, or was cut
            if not data:
                return []
            self._offset += len(data)
            self._last = data[data.rfind(b"\n", 0, -1) + 1 :]
            found = [_parse(line) for line in data.split(b"\n") if line]
            self.damaged += sum(one is None for one in found)
            return [one for one in found if one is not None]

    def _unread(self) -> bytes | None:
        """Return what follows the last line that was read; None if that line is not there any more.

        The size alone does not tell: other entries may have taken the place of one that is gone.
        """
        start = self._offset - len(self._last)
        data = os.pread(self._file, max(0, os.fstat(self._file).st_size - start), start)
        return data[len(self._last) :] if data.startswith(self._last) else None

    def close(self) -> None:
        """Close the file."""
        self._close()


def _parse(line: bytes) -> Feedback | None:
    """Return the entry of a line, None for a damaged one."""
    checksum, _, content = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(content):
            return None
        return Feedback(**json.loads(content))
    except (ValueError, TypeError):
        return None


def latest(entries: Iterable[Feedback]) -> dict[tuple[str, str], Feedback]:
    """Return the last word of each person about each item, by the texts of their ids; what was cleared is left out.

    Examples
    --------
    >>> said = [Feedback("ann", 7, "like"), Feedback("ann", "7", "hide"), Feedback("bob", 7, "like")]
    >>> [(one.user, one.action) for one in latest([*said, Feedback("bob", 7, "clear")]).values()]
    [('ann', 'hide')]
    """
    found: dict[tuple[str, str], Feedback] = {}
    for one in entries:
        key = str(one.user), str(one.item)
        found.pop(key, None)
        if one.action != "clear":
            found[key] = one
    return found


def read_journal(file: str | Path) -> tuple[list[Feedback], int]:
    """Return all entries of a journal and the number of damaged lines, without changing the file.

    Examples
    --------
    >>> read_journal("no-such-journal")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: no-such-journal: the feedback journal cannot be read (No such file or directory)
    """
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise DataError(f"{file}: the feedback journal cannot be read ({error.strerror})") from None
    if not data.startswith(FIRST_LINE):
        raise DataError(f"{file}: is no feedback journal; name a file that 'dpcml serve --feedback' wrote")
    found: list[Any] = [_parse(line) for line in data[len(FIRST_LINE) :].split(b"\n") if line]
    return [one for one in found if one is not None], sum(one is None for one in found)
