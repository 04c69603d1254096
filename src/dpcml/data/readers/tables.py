"""CSV, TSV and Parquet: tables with a column each for user, item, rating and time."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import polars as pl

from dpcml.data.columns import COMMON_NAMES, OPTIONAL, Where, assign_columns, normalized
from dpcml.data.readers.base import READERS, Options, Parsed, Reader
from dpcml.data.readers.source import Lines, SourceFile, read_delimited
from dpcml.utils.errors import DataError, ParameterError

SAMPLE = 200  # records that separator, header and numeric columns are guessed from
WORDS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SPELLED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
INTERACTION_NAMES = frozenset(name for names in COMMON_NAMES.values() for name in names)


@dataclass(frozen=True)
class TextTable:
    """A delimited file whose separator and header are settled."""

    source: SourceFile
    names: tuple[str, ...]
    header: bool
    cells: pl.DataFrame  # all records, the header included
    lines: Lines
    notes: tuple[str, ...]

    @property
    def where(self) -> Where:
        """A function that returns file and line of a row, not counting the header."""
        lines, skipped = self.lines, int(self.header)  # not self: the cells must not stay in memory
        return lambda row: lines.where(row + skipped)

    def columns(self, named: Mapping[str, str]) -> pl.DataFrame:
        """Return columns by role and name, without the header."""
        chosen = [pl.col(str(self.names.index(name))).alias(role) for role, name in named.items()]
        return self.cells.select(chosen).slice(int(self.header))

    def parsed(self, columns: Mapping[str, str], notes: tuple[str, ...] = ()) -> Parsed:
        """Return the columns that play a role under the names of their roles."""
        return Parsed(self.columns(columns), self.where, (*self.notes, *notes))

    def sample(self) -> list[tuple[str, ...]]:
        """Return the first rows, without the header."""
        return _sample(self.cells)[int(self.header) :]


@dataclass(frozen=True)
class Tables(Reader):
    """Delimited text with one interaction per line."""

    separators: tuple[str, ...] = tuple(WORDS)
    endings: tuple[str, ...] = (".csv",)
    takes = frozenset({"user", "item", "rating", "time", "weight", "separator", "header"})

    def matches(self, name: str, head: str) -> int:
        """Return 2 (likely) by the ending of the file name, else 1: any text may be a table."""
        if not any(separator in head for separator in self.separators):
            return int(len(self.separators) > 1)  # the widest choice is the last resort
        return 2 if name.endswith(self.endings) else int(len(self.separators) > 1)

    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return the columns for user, item, rating and time."""
        given = {role: name for role, name in options.columns.items() if name is not None}
        table = open_table(source, options, self.separators, INTERACTION_NAMES, given.values())
        if not table.header:
            return table.parsed(*_by_position(table, given))
        try:
            return table.parsed(*assign_columns(table.names, given, source.name))
        except DataError as error:
            hint = (
                "" if options.header else " (line 1 was taken for a header; header=False (--no-header) says it is data)"
            )
            raise DataError(f"{error}{hint}") from None

    def titles(self, name: str) -> tuple[str, ...]:
        """MovieLens since 2015 comes as ``ratings.csv`` and ``movies.csv``."""
        return ("movies.csv",) if name == "ratings.csv" else ()


def open_table(
    source: SourceFile,
    options: Options,
    separators: Sequence[str] = tuple(WORDS),
    known: Collection[str] = (),
    given: Collection[str] = (),
) -> TextTable:
    r"""Settle separator and header of a delimited file.

    Parameters
    ----------
    source
        The file.
    options
        ``separator`` and ``header``, where the caller named them.
    separators
        Those to try.
    known
        Column names, as `normalized` spells them, that give a header away.
    given
        Column names the caller chose; one of them in the first line makes it a header.

    Examples
    --------
    >>> from pathlib import Path
    >>> table = open_table(SourceFile(Path("a.csv"), b"who;what\n1;2\n"), Options())
    >>> table.names, table.notes
    (('who', 'what'), ('separator: semicolon', 'header: line 1'))
    """
    data = source.text()
    separator, notes = options.separator, []
    if separator is None:
        separator = sniff(source.head(), separators)
        notes.append(f"separator: {WORDS.get(separator, separator)}")
    else:
        separator = _checked(separator)
    cells, lines = read_delimited(source, data, separator)
    if cells.width == 1:
        tried = [separator] if options.separator else separators
        said = ", ".join(WORDS.get(mark, repr(mark)) for mark in tried)
        raise DataError(
            f"{source.path}: one column only, but users and items need two; separators tried: {said};"
            " name the right one with separator='...' (--separator)"
        )
    first = _sample(cells)
    header = options.header
    if header is None:
        header = _is_header(first, known, given)
        notes.append(f"header: line {next(lines.records())[0]}" if header else "no header")
    names = [name.strip() for name in first[0]] if header else [f"column_{n + 1}" for n in range(cells.width)]
    return TextTable(source, tuple(names), header, cells, lines, tuple(notes))


def _sample(cells: pl.DataFrame) -> list[tuple[str, ...]]:
    return cells.head(SAMPLE).fill_null("").rows()


def sniff(head: str, separators: Sequence[str] = tuple(WORDS)) -> str:
    r"""Return the separator that splits most lines into the same number of fields, more than one.

    Examples
    --------
    >>> sniff("user;item;rating\n1;2;3,5\n"), sniff("user\titem\n1\ta, b\n")
    (';', '\t')
    """
    best, separator = (0.5, 0), separators[0]
    head = head.replace("\r\n", "\n").replace("\r", " ")  # the csv module takes no return within a field
    for candidate in separators:
        try:
            rows = islice(csv.reader(io.StringIO(head, newline="\n"), delimiter=candidate), SAMPLE)
            widths = Counter(len(row) for row in rows if row)
        except csv.Error:
            continue
        common = [(count / widths.total(), width) for width, count in widths.items() if width > 1]
        if common and max(common) > best:
            best, separator = max(common), candidate
    return separator


def _checked(separator: str) -> str:
    separator = SPELLED.get(separator, separator)
    if not separator or any(mark in '"\n\r\0' for mark in separator):
        raise ParameterError(f"separator={separator!r}: pass one or more characters such as ',' or '::'")
    return separator


def _is_header(rows: Sequence[Sequence[str]], known: Collection[str], given: Collection[str]) -> bool:
    """Return whether the first row names columns: by a common or chosen name, or by text above numbers."""
    first, rest = rows[0], rows[1:]
    chosen = {name for name in given if name and _position(name) is None}
    if any(normalized(cell) in known or cell.strip() in chosen for cell in first):
        return True
    if any(is_number(cell) for cell in first):
        return False
    return any(share_of_numbers([row[place] for row in rest]) > 0.5 for place in range(len(first)))


def _by_position(table: TextTable, given: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Give columns without names their roles: user, item, then rating and time if they are numbers."""
    chosen = {role: f"column_{_position(name)}" if _position(name) else name for role, name in given.items()}
    taken = {name for role, name in chosen.items() if role != "weight"}  # ratings may be weights too
    free = [name for name in table.names if name not in taken]
    sample = table.sample()
    found: dict[str, str] = {}
    for role, names in COMMON_NAMES.items():
        if not names:
            continue
        if role in chosen:
            if not chosen[role]:
                free = free[1:]  # the column that would have played the role is left out
            continue
        if not free:
            break
        place = table.names.index(free[0])
        if role in OPTIONAL and share_of_numbers([row[place] for row in sample]) < 0.5:
            break  # a few bad values are an error in a column of numbers, most of them are another column
        found[role] = free.pop(0)
    said = ", ".join(f"{role} = {name}" for role, name in found.items())
    columns, _ = assign_columns(table.names, {**chosen, **found}, table.source.name)
    return columns, (f"guessed by position: {said}",) if said else ()


def _position(name: str) -> int | None:
    digits = name.removeprefix("column_")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def is_number(cell: str) -> bool:
    """Return whether a cell reads as a number, NaN and infinity included."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def share_of_numbers(cells: Sequence[str]) -> float:
    """Return the share of numbers among the cells that are not empty, 0 where all are.

    Examples
    --------
    >>> share_of_numbers(["4", "3.5", "", "x", "y"])
    0.5
    """
    filled = [cell for cell in cells if cell.strip()]
    return sum(is_number(cell) for cell in filled) / max(len(filled), 1)


READERS.add("csv", Tables())
READERS.add("tsv", Tables(("\t",), (".tsv", ".tab")))


MAGIC = "PAR1"


class Parquet(Reader):
    """Parquet, told by its first four bytes."""

    takes = frozenset({"user", "item", "rating", "time", "weight"})

    def matches(self, name: str, head: str) -> int:
        """Return 3 (certain) if the file begins with Parquet's magic bytes, 2 (likely) by its name."""
        return 3 if head.startswith(MAGIC) else 2 * name.endswith((".parquet", ".pq"))

    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return the columns for user, item, rating and time, with their types."""
        return parquet_columns(source, lambda names: assign_columns(names, options.columns, source.name))


def parquet_columns(
    source: SourceFile, assign: Callable[[list[str]], tuple[Mapping[str, str], tuple[str, ...]]]
) -> Parsed:
    """Return the columns that ``assign`` picks in a Parquet file, under the names of their roles."""
    try:
        names = list(pl.read_parquet_schema(io.BytesIO(source.raw)))
        columns, notes = assign(names)
        table = pl.read_parquet(io.BytesIO(source.raw), columns=list(dict.fromkeys(columns.values())))
    except DataError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        panic = isinstance(error, pl.exceptions.PanicException)  # its text speaks of polars' inside
        reason = "its bytes make no sense" if panic else str(error).partition("\n")[0]
        raise DataError(f"{source.path}: no readable Parquet file ({reason}); write or fetch it again") from None
    chosen = table.select(pl.col(name).alias(role) for role, name in columns.items())
    return Parsed(chosen, lambda row: f"{source.name}, row {row + 1}", notes)


READERS.add("parquet", Parquet())
