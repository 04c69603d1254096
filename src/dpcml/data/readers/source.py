"""The file that a reader reads: unpacked, as UTF-8 text, and cut into cells.

Polars' CSV reader cuts; Python's csv module finds the line of an error.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import near_hint

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
        raise DataError(f"{path}: no such file{near_hint(path)}") from None
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


QUOTE, NEWLINE, RETURN = b'"\n\r'
SPARE = (
    b"\x1f\x1e\x1d\x1c\x01\x02\x03\x04\x05\x06\x07"  # polars wants separators of one byte: these replace longer ones
)


@dataclass(frozen=True)
class Lines:
    """Where the records of a delimited text begin; read again only when an error needs it."""

    source: SourceFile
    data: bytes
    separator: str
    quoting: bool

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line and the fields of each record, as Python's csv module reads them."""
        lines = (line.decode() for line in io.BytesIO(self.data))
        if not self.quoting:
            for number, line in enumerate(lines, 1):
                if fields := line.removesuffix("\n").removesuffix("\r"):
                    yield number, fields.split(self.separator)
            return
        reader = csv.reader(lines, delimiter=self.separator, strict=True)
        begin = 1
        try:
            for row in reader:
                if row:
                    yield begin, row
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"{self.source.line(begin)}: the quoted field that begins here goes wrong ({error});"
                ' quote whole fields, and double a quote within them ("")'
            ) from None

    def where(self, row: int) -> str:
        """Return file and line of a record, for messages."""
        line, _ = next(islice(self.records(), row, None))
        return self.source.line(line)


def read_delimited(source: SourceFile, data: bytes, separator: str) -> tuple[pl.DataFrame, Lines]:
    r"""Split delimited text into text columns ``"0"``, ``"1"``, ...; empty fields are null.

    Fields may be quoted with ``"`` to hold separators and line breaks; a quote within them is doubled. Quotes
    have no meaning where the separator is longer than a byte. Empty lines are skipped. All records must have
    as many fields as the first.

    Parameters
    ----------
    source
        The file, for messages.
    data
        Its text, as UTF-8.
    separator
        One or more characters.

    Examples
    --------
    >>> from pathlib import Path
    >>> cells, lines = read_delimited(SourceFile(Path("a.csv"), b""), b'user,item\nann,"tea, green"\n', ",")
    >>> cells.rows(), lines.where(1)
    ([('user', 'item'), ('ann', 'tea, green')], 'a.csv, line 2')
    """
    mark = separator.encode()
    quoting = len(mark) == 1 and b'"' in data
    lines = Lines(source, data, separator, quoting)
    text = data.strip(b"\r\n")
    if b"\n\n" in text or b"\n\r\n" in text:
        if quoting:  # it may stand within a field
            return _by_module(lines), lines
        text = re.sub(rb"(\r?\n)+", b"\n", text)
    if len(mark) > 1:
        mark, text = _short_separator(source, text, mark)
    if quoting and not _regular(text, mark[0]):
        return _by_module(lines), lines
    width = len(next(lines.records())[1])
    try:
        cells = pl.read_csv(
            text,
            has_header=False,
            schema={str(field): pl.String for field in range(width)},
            separator=mark.decode(),
            quote_char='"' if quoting else None,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # a record with more fields than the first
        return _by_module(lines), lines
    # polars fills up records with fewer fields: then there are fewer separators than the fields need.
    within = sum(column.str.count_matches(separator, literal=True).sum() for column in cells) if quoting else 0
    if text.count(mark) - within != len(cells) * (width - 1):
        return _by_module(lines), lines
    return cells, lines


def _by_module(lines: Lines) -> pl.DataFrame:
    """Read with the csv module, which knows the line of each record, and raise if one has another width."""
    rows: list[list[str | None]] = []
    first = 0
    for number, row in lines.records():
        first = first or number
        if rows and len(row) != len(rows[0]):
            here, there = (f"{len(fields)} field{'s' if len(fields) > 1 else ''}" for fields in (row, rows[0]))
            raise DataError(
                f"{lines.source.line(number)}: {here}, but {there} on line {first};"
                f" quote fields that contain {lines.separator!r}, or name another separator"
            )
        rows.append([field or None for field in row])
    return pl.DataFrame(rows, schema={str(field): pl.String for field in range(len(rows[0]))}, orient="row")


def _short_separator(source: SourceFile, text: bytes, mark: bytes) -> tuple[bytes, bytes]:
    """Return a byte that the text does not hold, and the text with that byte as separator."""
    spare = next((bytes([byte]) for byte in SPARE if byte not in text), None)
    if spare is None:
        raise DataError(f"{source.path}: too many control characters for the separator {mark.decode()!r}")
    return spare, text.replace(mark, spare)


def _regular(data: bytes, mark: int) -> bool:
    """Return whether every quote opens a field, closes one or is doubled within one; polars reads nothing else."""
    text = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(text == QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    before = text[opening[opening > 0] - 1]
    after = closing[closing < len(text) - 1] + 1
    after = after + ((text[after] == RETURN) & (text[np.minimum(after + 1, len(text) - 1)] == NEWLINE))
    edges = np.array([QUOTE, NEWLINE, mark], dtype=np.uint8)
    return bool(np.isin(before, edges).all() and np.isin(text[after], edges).all())
