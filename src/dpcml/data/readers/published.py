"""Formats of published data sets with fixed columns: MovieLens and Steam-200k."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpcml.data.columns import reject
from dpcml.data.readers.base import READERS, Options, Parsed, Reader, first_lines
from dpcml.data.readers.delimited import read_delimited
from dpcml.data.readers.source import SourceFile
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
