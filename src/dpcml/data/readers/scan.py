"""The structure of delimited text: where records end, how many fields each has, what quotes enclose."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
import polars as pl

from dpcml.data.readers.compact import joined_compactly
from dpcml.data.readers.source import Source
from dpcml.utils.arrays import Array, BoolArray, IntArray
from dpcml.utils.errors import DataError

QUOTE, NEWLINE, RETURN = b'"\n\r'
BLOCK = 2**18  # bytes of text that are split at a time: what a reader takes beside the file and its result
SPARE = b"\x1f\x1e\x1d\x1c\x01\x02\x03\x04\x05\x06\x07"  # single bytes to put in place of a long separator
# Text without empty lines, and the number of fields and the line of each record in it.
Layout: TypeAlias = tuple[bytes, IntArray, IntArray]


@dataclass(frozen=True)
class Records:
    """The records of a delimited text, all with the same number of fields; blocks of them are split when needed."""

    width: int  # fields per record
    line: Callable[[int], int]  # the line that a record begins on
    frames: Callable[[Sequence[int]], Iterator[pl.DataFrame]]  # text cells of some fields, a block at a time

    def head(self, count: int) -> list[tuple[str, ...]]:
        """Return the cells of the first records."""
        rows = (row for frame in self.frames(range(self.width)) for row in frame.iter_rows())
        return [tuple(cell or "" for cell in row) for row in islice(rows, count)]

    def columns(self, fields: Sequence[int]) -> pl.DataFrame:
        """Return some fields of all records as text columns ``"0"``, ``"1"``, ... in the order asked for."""
        return pl.concat(self.frames(fields))

    def compact(self, fields: Sequence[int], skip: int = 0) -> pl.DataFrame:
        """Return the same without the first records; columns of plain whole numbers come as integers."""
        frames = self.frames(fields)
        return joined_compactly(itertools.chain([next(frames).slice(skip)], frames))


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
    >>> found.head(2), found.line(1)
    ([('user', 'item'), ('ann', 'tea, green')], 2)
    """
    mark = separator.encode()
    quoting = len(mark) == 1 and b'"' in data
    text = _Text(data, mark, mark if len(mark) == 1 else _spare(source, data, mark), quoting)
    blocks: list[_Block] = []
    width, first, line = 0, 0, 1  # fields and line of the first record; the line that a block begins on
    for start, stop in line_blocks(data, quoting):
        plain = text.plain(start, stop)
        if quoting and not _regular(plain, text.spare[0]):
            return _by_module(source, data, separator)
        kept, fields, lines = _layout(plain, text.spare[0], quoting)
        if len(fields):
            if not blocks:
                width, first = int(fields[0]), int(lines[0]) + line - 1
            _check_widths(source, fields, lines + line - 1, width, first, separator)
            blocks.append(_Block(start, stop, line, len(fields), len(kept) < len(plain)))
        line += data.count(b"\n", start, stop)
    return _in_blocks(text, blocks, width)


@dataclass(frozen=True)
class _Text:
    """Delimited text of which a stretch at a time is made plain."""

    data: bytes
    mark: bytes  # the separator
    spare: bytes  # the single byte that takes its place
    quoting: bool

    def plain(self, start: int, stop: int) -> bytes:
        """Return a stretch with a separator of one byte, and lines that end in a newline only."""
        part = self.data[start:stop]
        return _plain_line_ends(part if self.mark == self.spare else part.replace(self.mark, self.spare), self.quoting)

    def layout(self, start: int, stop: int) -> Layout:
        """Return the records of a stretch."""
        return _layout(self.plain(start, stop), self.spare[0], self.quoting)


@dataclass(frozen=True)
class _Block:
    """A stretch of text that ends with a record."""

    start: int  # its bytes
    stop: int
    line: int  # the line that it begins on
    records: int
    gaps: bool  # whether it has empty lines


def line_blocks(data: bytes, quoting: bool = False, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    r"""Cut text into stretches of whole lines, of about ``size`` bytes; with ``quoting``, never within quotes.

    Examples
    --------
    >>> list(line_blocks(b"ab\ncd\nef", size=4))
    [(0, 6), (6, 8)]
    """
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start + size - 1) + 1 or len(data)
        quotes = data.count(b'"', start, stop) if quoting else 0
        while quotes % 2 and stop < len(data):
            within, stop = stop, data.find(b"\n", stop) + 1 or len(data)
            quotes += data.count(b'"', within, stop)
        yield start, stop
        start = stop


def _in_blocks(text: _Text, blocks: Sequence[_Block], width: int) -> Records:
    """Return records that are split, and whose lines are looked up, a block at a time."""
    ends = np.cumsum([block.records for block in blocks])
    schema = {str(field): pl.String for field in range(width)}

    def line(row: int) -> int:
        at = int(np.searchsorted(ends, row, side="right"))
        _, _, lines = text.layout(blocks[at].start, blocks[at].stop)
        return blocks[at].line - 1 + int(lines[row - int(ends[at])])  # counted from the block's end

    def frames(fields: Sequence[int]) -> Iterator[pl.DataFrame]:
        chosen = [pl.col(str(field)).alias(str(place)) for place, field in enumerate(fields)]
        for block in blocks:
            whole = text.layout(block.start, block.stop)[0] if block.gaps else text.plain(block.start, block.stop)
            yield pl.read_csv(
                whole, has_header=False, schema=schema, separator=text.spare.decode(), columns=sorted(fields),
                quote_char='"' if text.quoting else None,
            ).select(chosen)  # fmt: skip

    return Records(width, line, frames)


def _check_widths(source: Source, fields: IntArray, lines: IntArray, width: int, first: int, separator: str) -> None:
    """Raise when a record has another number of fields than the first."""
    odd = np.flatnonzero(fields != width)
    if len(odd):
        row = odd[0]
        here, there = (f"{count} field{'s' if count > 1 else ''}" for count in (fields[row], width))
        raise DataError(
            f"{source.line(int(lines[row]))}: {here}, but {there} on line {first};"
            f" quote fields that contain {separator!r}, or name another separator"
        )


def _spare(source: Source, data: bytes, mark: bytes) -> bytes:
    """Return a single unused byte to put in place of a separator of several bytes."""
    spare = next((bytes([byte]) for byte in SPARE if byte not in data), None)
    if spare is None:
        raise DataError(f"{source.path}: too many control characters for the separator {mark.decode()!r}")
    return spare


def _within_quotes(text: Array) -> BoolArray:
    """Return which bytes lie between an opening quote (included) and the closing one."""
    return (np.cumsum(text == QUOTE, dtype=np.uint8) & 1).astype(bool)  # a sum modulo 256 keeps its parity


def _plain_line_ends(data: bytes, quoting: bool) -> bytes:
    r"""Turn \r\n into \n, except within quotes."""
    if b"\r" not in data:  # a single byte is found many times faster than two
        return data
    if not quoting:
        return data.replace(b"\r\n", b"\n")
    text = np.frombuffer(data, np.uint8)
    drop = (text[:-1] == RETURN) & (text[1:] == NEWLINE) & ~_within_quotes(text)[:-1]
    return bytes(text[~np.append(drop, False)])


def _layout(data: bytes, mark: int, quoting: bool) -> Layout:
    """Find the records of text whose quotes stand around whole fields, if anywhere."""
    text = np.frombuffer(data, np.uint8)
    is_end, is_mark = text == NEWLINE, text == mark
    breaks = np.flatnonzero(is_end)
    if quoting:
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


def _regular(data: bytes, mark: int) -> bool:
    """Return whether every quote opens a field, closes one or is doubled within one.

    Elsewhere, counting quotes does not find the fields.
    """
    text = np.frombuffer(data, np.uint8)
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
    _check_widths(source, widths, np.array(lines), len(rows[0]), lines[0], separator)
    names = [str(field) for field in range(len(rows[0]))]
    cells = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def frames(fields: Sequence[int]) -> Iterator[pl.DataFrame]:
        yield cells.select(pl.col(names[field]).alias(str(place)) for place, field in enumerate(fields))

    return Records(len(names), lines.__getitem__, frames)
