"""Formats of published data sets: MovieLens, Steam-200k, and lists of ids as CiteULike and Gowalla have them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpcml.data.columns import LARGEST_ID, reject
from dpcml.data.readers.base import READERS, Options, Parsed, Reader, first_lines
from dpcml.data.readers.source import SourceFile, read_delimited
from dpcml.utils.arrays import IntArray
from dpcml.utils.errors import DataError, ParameterError

ROLES = ("user", "item", "rating", "time")
RATING_LINE = re.compile(r"\s*\d+::\d+::[^:]*(::[^:]*)?\s*")
U_FILES = re.compile(r"u[1-5ab]?\.(data|base|test)")


@dataclass(frozen=True)
class MovieLens(Reader):
    """One rating per line: user, movie, stars and seconds since 1970.

    Parameters
    ----------
    separator
        Separator of the fields.
    catalogue
        Name of the file of titles that comes with it.
    """

    separator: str
    catalogue: str
    takes = frozenset({"weight"})

    def matches(self, name: str, head: str) -> int:
        """Return 3 (certain) if most lines look like ratings."""
        lines = first_lines(head)
        if self.separator == "::":
            return 3 * (2 * sum(RATING_LINE.fullmatch(line) is not None for line in lines) > len(lines))
        return 3 * (U_FILES.fullmatch(name) is not None and self.separator in head)

    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return the first three or four fields by position."""
        cells, lines = read_delimited(source, source.text(fallback="latin-1"), self.separator)
        if cells.width not in (3, 4):
            raise DataError(
                f"{lines.where(0)}: {cells.width} fields between {self.separator!r};"
                " a rating has three or four: user, item, rating, time"
            )
        table = cells.rename(dict(zip(cells.columns, ROLES, strict=False)))
        if _weighs(options, "rating"):
            table = table.with_columns(weight="rating")
        return Parsed(table, lines.where)

    def titles(self, name: str) -> tuple[str, ...]:
        """Return the name of the catalogue."""
        return (self.catalogue,)


READERS.add("movielens", MovieLens("::", "movies.dat"))
READERS.add("movielens-100k", MovieLens("\t", "u.item"))


LINE = re.compile(r'\s*\d+,(".*"|[^,]*),(purchase|play),[^,]*,\s*0\s*')
BEHAVIOURS = ("purchase", "play")


@dataclass(frozen=True)
class Steam(Reader):
    """The raw CSV of Steam-200k; games go by their titles.

    Parameters
    ----------
    behaviour
        Which rows count: ``"purchase"`` as in the paper, or ``"play"``.
    """

    behaviour: str = "purchase"
    takes = frozenset({"weight"})

    def matches(self, name: str, head: str) -> int:
        """Return 3 (certain) if most lines end in behaviour, hours and 0."""
        lines = first_lines(head)
        fits = 2 * sum(LINE.fullmatch(line) is not None for line in lines) > len(lines)
        return 3 * (fits and self.behaviour == BEHAVIOURS[0])

    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return user and title of the rows whose behaviour counts."""
        cells, lines = read_delimited(source, source.text(), ",")
        if cells.width < 3:
            raise DataError(f"{source.path}: {cells.width} fields; Steam-200k has user, title, behaviour, hours, 0")
        behaviour = cells["2"].fill_null("")
        unknown = ~behaviour.is_in(BEHAVIOURS)
        reject(unknown, lines.where, lambda row: f"behaviour {behaviour[row]!r}: must be {' or '.join(BEHAVIOURS)}")
        kept = np.flatnonzero((behaviour == self.behaviour).to_numpy())
        table = cells.select(user="0", item="1")[kept]
        if _weighs(options, "hours"):
            if cells.width < 4:
                raise DataError(f"{source.path}: {cells.width} fields; weight='hours' needs the fourth")
            table = _with_hours(table, cells.filter(behaviour == "play"))
        note = f"counted: {self.behaviour}, {len(kept):,} of {len(cells):,} rows"
        return Parsed(table, lambda row: lines.where(int(kept[row])), (note,))


def _with_hours(table: pl.DataFrame, plays: pl.DataFrame) -> pl.DataFrame:
    """Return pairs with the hours that the game was played, 0 if never."""
    hours = plays.select(user="0", item="1", weight=pl.col("3").cast(pl.Float64, strict=False))
    summed = hours.group_by("user", "item").agg(pl.col("weight").sum())
    joined = table.join(summed, on=["user", "item"], how="left", maintain_order="left")
    # Purchases of a pair may repeat, and its weights are added up later.
    return joined.with_columns(pl.col("weight").fill_null(0.0) / pl.len().over("user", "item"))


def _weighs(options: Options, name: str) -> bool:
    """Return whether positives are weighted by the one column that the format has for it."""
    if options.weight not in (None, name):
        raise ParameterError(f"weight={options.weight!r}: files of this format have {name!r} only")
    return options.weight is not None


READERS.add("steam", Steam())
READERS.add("steam-play", Steam("play"))


NUMBERS = re.compile(r"-?\d+( +-?\d+)* *")


@dataclass(frozen=True)
class ListFiles(Reader):
    """Lines of whole numbers between spaces.

    Parameters
    ----------
    counted
        The first number is how many ids follow, and the user's id is the line's number from 0.
        Otherwise the first number is the user's id.
    """

    counted: bool

    def matches(self, name: str, head: str) -> int:
        """Return 3 (certain) if most lines begin with the right count, 2 (likely) if they hold only numbers."""
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

    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return one row per id, with the user of its line."""
        values, lengths = numbers_by_line(source)
        if self.counted:
            lines = np.arange(len(lengths))
            check_counts(
                source, values, lengths,
                "; pass format='id-then-items' (--format id-then-items) if the first number is the user's id",
            )  # fmt: skip
        else:
            lines = np.flatnonzero(lengths)
        firsts, counts = (np.cumsum(lengths) - lengths)[lines], lengths[lines] - 1
        users = lines if self.counted else values[firsts]
        table = pl.DataFrame({"user": np.repeat(users, counts), "item": np.delete(values, firsts)})
        ends = np.cumsum(counts)
        return Parsed(table, lambda row: source.line(int(lines[np.searchsorted(ends, row, side="right")]) + 1))


def numbers_by_line(source: SourceFile) -> tuple[IntArray, IntArray]:
    r"""Return all numbers of a text file, and how many stand on each line; blank lines at the end do not count.

    Examples
    --------
    >>> from pathlib import Path
    >>> values, lengths = numbers_by_line(SourceFile(Path("users.dat"), b"2 7 9\n\n1 4\n"))
    >>> values.tolist(), lengths.tolist()
    ([2, 7, 9, 1, 4], [3, 0, 2])
    """
    text = source.text().decode().rstrip(" \t\r\n")
    if any(blank in text for blank in ("\t", "\r", "  ")):
        text = re.sub(r"[ \t\r]+", " ", text)
    lines = pl.Series(text.split("\n")).str.strip_chars(" ")
    filled = (lines != "").to_numpy()
    words = lines.filter(filled).str.split(" ")
    lengths = np.zeros(len(lines), dtype=np.int64)
    lengths[filled] = words.list.len().to_numpy()
    words = words.explode()
    values = words.cast(pl.Int64, strict=False)  # null for other texts, and beyond 64 bits
    if "+" in text or values.null_count() or (values < 0).any():
        bad = ~words.str.contains(r"^[0-9]+$") | values.is_null()
        word = words.filter(bad)[0]
        shown = word if len(word) <= 40 else f"{word[:37]}..."
        line = int(np.searchsorted(np.cumsum(lengths), bad.arg_true()[0], side="right")) + 1
        raise DataError(f"{source.line(line)}: {shown!r}: ids must be whole numbers between 0 and {LARGEST_ID}")
    return values.to_numpy(), lengths


def check_counts(source: SourceFile, values: IntArray, lengths: IntArray, hint: str = "") -> None:
    """Raise unless each line begins with how many numbers follow on it."""
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        line = source.line(int(empty[0]) + 1)
        raise DataError(f"{line}: empty; each line needs a count, 0 where no ids follow")
    counts = values[np.cumsum(lengths) - lengths]
    wrong = np.flatnonzero(counts != lengths - 1)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{source.line(row + 1)}: the count {counts[row]} is followed by {lengths[row] - 1} ids{hint}")


READERS.add("count-then-ids", ListFiles(counted=True))
READERS.add("id-then-items", ListFiles(counted=False))
