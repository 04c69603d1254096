"""One user per line: a count and then item ids, or the user's id and then item ids."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpcml.data.columns import LARGEST_ID
from dpcml.data.readers.base import READERS, Options, Parsed, Reader, first_lines
from dpcml.data.readers.scan import line_blocks
from dpcml.data.readers.source import Source
from dpcml.utils.arrays import Array, IntArray
from dpcml.utils.errors import DataError

NUMBERS = re.compile(r"-?\d+( +-?\d+)* *")
BLANK = b" \t\r\n"


@dataclass(frozen=True)
class Lists(Reader):
    """Lines of whole numbers between spaces.

    Parameters
    ----------
    counted
        The first number is how many ids follow, and the user's id is the line's number from 0.
        Otherwise the first number is the user's id.
    """

    counted: bool

    def matches(self, name: str, head: str) -> int:
        """Certain where most lines begin with the right count, likely where they are but numbers."""
        lines = [line.strip() for line in first_lines(head)]
        fits = [line.split() for line in lines if NUMBERS.fullmatch(line)]
        if not fits or 2 * len(fits) < len(lines):
            return 0
        if self.counted:
            return 3 * (2 * sum(int(words[0][:18]) == len(words) - 1 for words in fits) > len(fits))
        # Lines of the same width and users that repeat: a table with spaces between its columns.
        widths, users = {len(words) for words in fits}, {words[0] for words in fits}
        is_table = len(widths) == 1 and len(users) < len(fits) and widths != {2}
        return 2 * (max(widths) > 1 and not is_table)

    def parse(self, source: Source, options: Options) -> Parsed:
        """Return one row per id, with the user that it stands behind."""
        data = source.text().rstrip(BLANK)
        values, lengths = numbers_by_line(source, data)
        if self.counted:
            users = np.arange(len(lengths))
            firsts, counts = _counts(source, values, lengths)
            lines = users + 1
        else:
            lines = np.flatnonzero(lengths) + 1
            firsts = np.cumsum(lengths)[lines - 1] - lengths[lines - 1]  # place of each line's first number
            users, counts = values[firsts], lengths[lines - 1] - 1
        items = np.delete(values, firsts)
        table = pl.DataFrame({"user": np.repeat(users, counts), "item": items})
        ends = np.cumsum(counts)

        def where(row: int) -> str:
            return source.line(int(lines[np.searchsorted(ends, row, side="right")]))

        return Parsed(table, where)


def numbers_by_line(source: Source, data: bytes) -> tuple[IntArray, IntArray]:
    r"""Return all numbers of a text, and how many stand on each line.

    Examples
    --------
    >>> from pathlib import Path
    >>> values, lengths = numbers_by_line(Source(Path("users.dat"), b""), b"2 7 9\n\n1 4")
    >>> values.tolist(), lengths.tolist()
    ([2, 7, 9, 1, 4], [3, 0, 2])
    """
    blocks = [_numbers(source, data, start, stop) for start, stop in line_blocks(data)]
    values, lengths = zip(*blocks, strict=True)  # there is a block: a file of blanks is refused before
    return np.concatenate(values), np.concatenate(lengths)


def _numbers(source: Source, data: bytes, start: int, stop: int) -> tuple[IntArray, IntArray]:
    """Return the numbers of a stretch of whole lines, and how many stand on each."""
    part = data[start:stop]
    text = np.frombuffer(part, np.uint8)
    digit = (text >= ord("0")) & (text <= ord("9"))
    blank = np.isin(text, np.frombuffer(BLANK, np.uint8))
    bad = np.flatnonzero(~(digit | blank))
    if len(bad):
        raise _bad_word(source, data, start + int(bad[0]))
    edges = np.diff(digit.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    _check_size(source, data, starts + start, ends + start)
    breaks = np.flatnonzero(text == ord("\n"))
    if not part.endswith(b"\n"):
        breaks = np.append(breaks, len(text))
    values: IntArray = np.fromstring(part, dtype=np.int64, sep=" ")
    if values.size and values.max() < 2**31:
        values = values.astype(np.int32)
    return values, np.diff(np.searchsorted(starts, breaks), prepend=0)


def _check_size(source: Source, data: bytes, starts: Array, ends: Array) -> None:
    """Raise where a number does not fit into 64 bits; shorter ones than the largest need no look."""
    for word in np.flatnonzero(ends - starts >= len(str(LARGEST_ID))):
        if len(data[starts[word] : ends[word]].lstrip(b"0")) > 19 or int(data[starts[word] : ends[word]]) > LARGEST_ID:
            raise _bad_word(source, data, int(starts[word]))


def _bad_word(source: Source, data: bytes, place: int) -> DataError:
    """Return the error for the word around a place in the text."""
    start = max(data.rfind(mark, 0, place) for mark in (b" ", b"\t", b"\n")) + 1
    word = data[start:].split(maxsplit=1)[0].decode(errors="replace")
    shown = word if len(word) <= 40 else f"{word[:37]}..."
    line = data.count(b"\n", 0, start) + 1
    return DataError(f"{source.line(line)}: {shown!r}: ids must be whole numbers between 0 and {LARGEST_ID}")


def _counts(source: Source, values: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return the place of each line's count among the numbers, and the counts, if they are right."""
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        line = source.line(int(empty[0]) + 1)
        raise DataError(f"{line}: empty; each line needs a count, 0 for a user without items")
    firsts = np.cumsum(lengths) - lengths
    wrong = np.flatnonzero(values[firsts] != lengths - 1)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{source.line(row + 1)}: the count {values[firsts][row]} is followed by {lengths[row] - 1} ids;"
            " pass format='id-then-items' (--format id-then-items) if the first number is the user's id"
        )
    return firsts, lengths - 1


READERS.add("count-then-ids", Lists(counted=True))
READERS.add("id-then-items", Lists(counted=False))
