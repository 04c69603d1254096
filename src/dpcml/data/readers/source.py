"""From a path to UTF-8 text: unpacks gzip, obeys byte order marks, and says what is wrong with a file."""

from __future__ import annotations

import codecs
import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import near_files

HEAD = 65_536  # bytes that formats, separators and headers are guessed from
# UTF-32 first: its mark begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class SourceFile:
    r"""The bytes of one file, unpacked, and the encoding that the caller named, if any.

    Examples
    --------
    >>> SourceFile(Path("likes.csv"), b"user,item\nJos\xe9,tea\n", "latin-1").text().decode()
    'user,item\nJosé,tea\n'
    """

    path: Path
    raw: bytes
    encoding: str | None = None

    @property
    def name(self) -> str:
        """File name without folder, for messages."""
        return self.path.name

    def line(self, number: int) -> str:
        """Return file and line, for messages.

        Examples
        --------
        >>> SourceFile(Path("data/likes.csv"), b"").line(7)
        'likes.csv, line 7'
        """
        return f"{self.name}, line {number}"

    def head(self) -> str:
        """Return the first whole lines; bytes that make no sense are replaced."""
        encoding = self.encoding or self._marked() or "utf-8"
        start = self.raw[:HEAD].decode(encoding, errors="replace").lstrip("\ufeff")
        if "\n" not in start:
            start = start.replace("\r", "\n")
        whole = start.rpartition("\n")[0] if len(self.raw) > HEAD else start
        return whole or start

    def text(self, fallback: str | None = None) -> bytes:
        """Return the whole file as UTF-8, without byte order mark.

        Parameters
        ----------
        fallback
            Encoding of files that are neither marked nor valid UTF-8; None makes them an error.
        """
        encoding = self.encoding or self._marked()
        if encoding is None and fallback is not None and not _is_utf8(self.raw):
            encoding = fallback
        data = self.raw if encoding is None else self._decoded(encoding).encode()
        data = data.removeprefix(codecs.BOM_UTF8)
        if b"\0" in data:
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            raise DataError(
                f"{self.line(line)}: a NUL byte, so this is no plain text; if it is text all the same, name"
                " its encoding, such as encoding='utf-16' (--encoding utf-16)"
            )
        if encoding is None and not data.isascii():
            self._decoded("UTF-8")
        if not data or data.isspace():
            raise DataError(f"{self.path}: the file is empty")
        return data if b"\n" in data else data.replace(b"\r", b"\n")

    def _marked(self) -> str | None:
        return next((encoding for mark, encoding in MARKS if self.raw.startswith(mark)), None)

    def _decoded(self, encoding: str) -> str:
        try:
            return self.raw.decode(encoding)
        except UnicodeDecodeError as error:
            line = self.raw.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{self.line(line)}: byte 0x{self.raw[error.start]:02x} is not {encoding}: save the file as UTF-8,"
                " or pass its encoding, such as encoding='latin-1' (--encoding latin-1)"
            ) from None
        except UnicodeError as error:
            raise DataError(f"{self.path}: cannot be read as {encoding}: {error}") from None


def open_source(path: str | Path, encoding: str | None = None) -> SourceFile:
    """Read a file as a whole, unpacking gzip, or say why that cannot be.

    Examples
    --------
    >>> open_source("no-such-file.csv")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: no-such-file.csv: no such file
    """
    path = Path(path)
    _check_encoding(encoding)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        near = near_files(path)
        raise DataError(f"{path}: no such file" + (f"; did you mean {near[0]!r}?" if near else "")) from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise DataError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if raw.startswith(b"\x1f\x8b"):
        raw = _unpacked(raw, path)
    if raw.startswith(b"PK\x03\x04"):
        raise DataError(f"{path}: a zip archive or an Excel workbook; unpack it, or save it as CSV")
    if not raw:
        raise DataError(f"{path}: the file is empty")
    return SourceFile(path, raw, encoding)


def _unpacked(raw: bytes, path: Path) -> bytes:
    try:
        return gzip.decompress(raw)
    except EOFError:
        raise DataError(f"{path}: the gzip file is truncated; copy or fetch it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is damaged ({error}); copy or fetch it again") from None


def _check_encoding(encoding: str | None) -> None:
    if encoding is None:
        return
    try:
        "a".encode(encoding)
        b"".decode(encoding)
    except (LookupError, ValueError, TypeError):
        raise ParameterError(
            f"encoding={encoding!r}: unknown; pass a text encoding such as 'utf-8', 'latin-1' or 'utf-16'"
        ) from None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
