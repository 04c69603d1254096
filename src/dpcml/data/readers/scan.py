"""The structure of delimited text: where records end, how many fields each has, what quotes enclose."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpcml.arrays import Array, BoolArray, IntArray
from dpcml.data.readers.text import Source
from dpcml.errors import DataError

QUOTE, NEWLINE, RETURN = b'"\n\r'
SPARE = b"\x1f\x1e\x1d\x1c\x01\x02\x03\x04\x05\x06\x07"  # single bytes to put in place of a long separator


@dataclass(frozen=True)
class Records:
    """The records of a delimited text, all with the same number of fields."""

    width: int  # fields per record
    lines: IntArray  # the line that each record begins on
    load: Callable[[Sequence[int] | None, int | None], pl.DataFrame]  # (fields, number of records) -> text cells

    def head(self, count: int) -> list[tuple[str, ...]]:
        """Return the cells of the first records."""
        return [tuple(cell or "" for cell in row) for row in self.load(None, count).rows()]

    def columns(self, fields: Sequence[int]) -> pl.DataFrame:
        """Return some fields of all records as text columns ``"0"``, ``"1"``, ... in the order asked for."""
        cells = self.load(fields, None)
        return cells.select(pl.col(str(field)).alias(str(place)) for place, field in enumerate(fields))


def records(source: Source, data: bytes, separator: str) -> Records:
    r"""Find the records of delimited text.

    Fields may be quoted with ``"`` to hold separators and line breaks; a quote within them is doubled. Quotes
    have no meaning where the separator is longer than a byte. Empty lines are skipped.

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
    >>> found = records(Source(Path("a.csv"), b""), b'user,item\nann,"tea, green"\n', ",")
    >>> found.head(2), found.lines.tolist()
    ([('user', 'item'), ('ann', 'tea, green')], [1, 2])
    """
    mark = separator.encode()
    quoting = len(mark) == 1 and b'"' in data
    if len(mark) > 1:
        data, mark = _with_spare(source, data, mark)
    layout = _layout(_plain_line_ends(data, quoting), mark[0], quoting)
    if layout is None:
        return _by_module(source, data, separator)
    data, fields, lines = layout
    _check_widths(source, fields, lines, separator)
    schema = {str(field): pl.String for field in range(fields[0])}

    def load(chosen: Sequence[int] | None, count: int | None) -> pl.DataFrame:
        return pl.read_csv(
            data, has_header=False, schema=schema, separator=mark.decode(), n_rows=count,
            quote_char='"' if quoting else None, columns=None if chosen is None else sorted(chosen),
        )  # fmt: skip

    return Records(len(schema), lines, load)


def _check_widths(source: Source, fields: IntArray, lines: IntArray, separator: str) -> None:
    """Raise when a record has another number of fields than the first."""
    odd = np.flatnonzero(fields != fields[0])
    if len(odd):
        row = odd[0]
        here, first = (f"{count} field{'s' if count > 1 else ''}" for count in (fields[row], fields[0]))
        raise DataError(
            f"{source.line(int(lines[row]))}: {here}, but {first} on line {lines[0]};"
            f" quote fields that contain {separator!r}, or name another separator"
        )


def _with_spare(source: Source, data: bytes, mark: bytes) -> tuple[bytes, bytes]:
    """Put a single unused byte in place of a separator of several bytes."""
    spare = next((bytes([byte]) for byte in SPARE if byte not in data), None)
    if spare is None:
        raise DataError(f"{source.path}: too many control characters for the separator {mark.decode()!r}")
    return data.replace(mark, spare), spare


def _within_quotes(text: Array) -> BoolArray:
    """Return which bytes lie between an opening quote (included) and the closing one."""
    return (np.cumsum(text == QUOTE, dtype=np.uint8) & 1).astype(bool)  # a sum modulo 256 keeps its parity


def _plain_line_ends(data: bytes, quoting: bool) -> bytes:
    r"""Turn \r\n into \n, except within quotes."""
    if b"\r\n" not in data:
        return data
    if not quoting:
        return data.replace(b"\r\n", b"\n")
    text = np.frombuffer(data, np.uint8)
    drop = (text[:-1] == RETURN) & (text[1:] == NEWLINE) & ~_within_quotes(text)[:-1]
    return bytes(text[~np.append(drop, False)])


def _layout(data: bytes, mark: int, quoting: bool) -> tuple[bytes, IntArray, IntArray] | None:
    """Return the text without empty lines, and number of fields and line of each record.

    None where quotes stand elsewhere than around whole fields: counting them does not find the fields then.
    """
    text = np.frombuffer(data, np.uint8)
    is_end, is_mark = text == NEWLINE, text == mark
    breaks = np.flatnonzero(is_end)
    if quoting:
        if not _regular(text, mark):
            return None
        outside = ~_within_quotes(text)
        is_end, is_mark = is_end & outside, is_mark & outside
    ends = np.flatnonzero(is_end)
    if data[-1] != NEWLINE:
        ends = np.append(ends, len(text))
    starts = np.concatenate([[0], ends[:-1] + 1])
    fields = np.diff(np.searchsorted(np.flatnonzero(is_mark), ends), prepend=0) + 1
    lines = np.searchsorted(breaks, starts) + 1
    empty = starts == ends
    if empty.any():
        keep = np.ones(len(text), dtype=bool)
        keep[ends[empty]] = False
        data, fields, lines = bytes(text[keep]), fields[~empty], lines[~empty]
    return data, fields, lines


def _regular(text: Array, mark: int) -> bool:
    """Return whether every quote opens a field, closes one or is doubled within one."""
    quotes = np.flatnonzero(text == QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    edges = np.array([QUOTE, NEWLINE, mark], dtype=np.uint8)
    before = text[opening[opening > 0] - 1]
    after = text[closing[closing < len(text) - 1] + 1]
    return bool(np.isin(before, edges).all() and np.isin(after, edges).all())


def _by_module(source: Source, data: bytes, separator: str) -> Records:
    """Split text with irregular quotes one record at a time: slower, but exact about what is wrong."""
    reader = csv.reader(io.StringIO(data.decode(), newline="\n"), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    begin = 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(begin)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{source.line(begin)}: the quoted field that begins here goes wrong ({error});"
            ' quote whole fields, and double a quote within them ("")'
        ) from None
    widths = np.array([len(row) for row in rows])
    _check_widths(source, widths, np.array(lines), separator)
    names = [str(field) for field in range(len(rows[0]))]
    cells = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def load(chosen: Sequence[int] | None, count: int | None) -> pl.DataFrame:
        some = names if chosen is None else [names[field] for field in chosen]
        return cells.select(some).head(len(cells) if count is None else count)

    return Records(len(names), np.array(lines), load)
