"""What every reader shares: options, the parsed table, the registry, and finding the format of a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from dpcml.data.columns import COMMON_NAMES, Where
from dpcml.data.readers.source import SourceFile
from dpcml.utils.checks import optional_text
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.names import Registry


@dataclass(frozen=True)
class Options:
    """What a caller may say of a file; ``None`` leaves it to the reader."""

    user: str | None = None  # column names, or positions from 1 in files without header
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    weight: str | None = None
    separator: str | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        optional_text(**self.columns, separator=self.separator)
        if not (self.header is None or isinstance(self.header, bool)):
            raise ParameterError(f"header={self.header!r}: must be True, False, or None to find out")

    def given(self) -> dict[str, object]:
        """Return the options that were set."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in pairs if value is not None}

    @property
    def columns(self) -> dict[str, str | None]:
        """The names of columns by role."""
        return {role: getattr(self, role) for role in COMMON_NAMES}


@dataclass(frozen=True)
class Parsed:
    """Rows of a file: a table of ``user``, ``item`` and perhaps ``rating``, ``time``, ``weight``, text or typed."""

    table: pl.DataFrame
    where: Where  # returns file and line of a row
    notes: tuple[str, ...] = ()  # what was guessed


class Reader(ABC):
    """A file format; a new one is a subclass in a file of its own, put into `READERS`."""

    takes: frozenset[str] = frozenset()  # the options that make sense for the format

    @abstractmethod
    def matches(self, name: str, head: str) -> int:
        """Return how sure it is that a file has this format: 0 for no, 1 for perhaps, 2 likely, 3 certain.

        Parameters
        ----------
        name
            File name in small letters, without ``.gz``.
        head
            The file's first lines.
        """

    @abstractmethod
    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return the rows of a file, or raise a `DataError` that names file, line and rule."""

    def titles(self, name: str) -> tuple[str, ...]:
        """Return names of files with titles that may lie beside a file of this format."""
        return ()


def first_lines(head: str, count: int = 300) -> list[str]:
    """Return the first lines of a text that are not empty."""
    return [line for line in head.split("\n", count)[:count] if line.strip()]


READERS: Registry[Reader] = Registry("format")


def detect(source: SourceFile) -> str:
    r"""Return the name of the format that fits a file best.

    Examples
    --------
    >>> from pathlib import Path
    >>> import dpcml.data.readers
    >>> detect(SourceFile(Path("ratings.dat"), b"1::1193::5::978300760\n"))
    'movielens'
    >>> detect(SourceFile(Path("users.dat"), b"2 7 9\n1 4\n"))
    'count-then-ids'
    """
    name, head = source.name.lower().removesuffix(".gz"), source.head()
    scores = {known: READERS[known].matches(name, head) for known in READERS}
    return max(scores, key=scores.__getitem__)


def check_options(name: str, reader: Reader, options: Options) -> None:
    """Refuse options that the format has no use for, rather than ignore them.

    Examples
    --------
    >>> from dpcml.data.readers import Steam
    >>> check_options("steam", Steam(), Options(header=True))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: header=True: files of format 'steam' take no such option
    """
    for option, value in options.given().items():
        if option not in reader.takes:
            raise ParameterError(f"{option}={value!r}: files of format {name!r} take no such option")


def joined(parts: Sequence[Parsed]) -> Parsed:
    """Return the rows of several files as one table; each row still knows its file.

    Examples
    --------
    >>> rows = pl.DataFrame({"user": [1], "item": [2]})
    >>> both = joined([Parsed(rows, lambda row: "a.csv, line 1"), Parsed(rows, lambda row: "b.csv, line 1")])
    >>> len(both.table), both.where(1)
    (2, 'b.csv, line 1')
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for part in parts[1:]:
        if part.table.schema != first.table.schema:
            raise DataError(
                f"{part.where(0)}: the columns are {', '.join(part.table.columns)}, but"
                f" {', '.join(first.table.columns)} in {first.where(0)}; files read together need the same"
            )
    starts = np.cumsum([0, *(len(part.table) for part in parts)])

    def where(row: int) -> str:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return parts[part].where(row - int(starts[part]))

    notes = dict.fromkeys(note for part in parts for note in part.notes)
    return Parsed(pl.concat([part.table for part in parts]), where, tuple(notes))
