"""Delimited text on polars' CSV reader; Python's csv module finds the line of an error."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import polars as pl

from dpcml.data.readers.source import SourceFile
from dpcml.utils.errors import DataError

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
