"""MovieLens: ``ratings.dat`` with ``::`` between the fields, and ``u.data`` with tabs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpcml.data.readers.base import READERS, Options, Parsed, Reader, first_lines
from dpcml.data.readers.scan import records
from dpcml.data.readers.text import Source
from dpcml.utils.errors import DataError

ROLES = ("user", "item", "rating", "time")
RATING_LINE = re.compile(r"\s*\d+::\d+::[^:]*(::[^:]*)?\s*")
U_FILES = re.compile(r"u[1-5ab]?\.(data|base|test)")


@dataclass(frozen=True)
class MovieLens(Reader):
    """One rating per line: user, movie, stars and seconds since 1970.

    Parameters
    ----------
    separator
        What stands between the fields.
    catalogue
        Name of the file of titles that comes with it.
    """

    separator: str
    catalogue: str

    def matches(self, name: str, head: str) -> int:
        """Certain where most lines look like ratings."""
        lines = first_lines(head)
        if self.separator == "::":
            return 3 * (2 * sum(RATING_LINE.fullmatch(line) is not None for line in lines) > len(lines))
        return 3 * (U_FILES.fullmatch(name) is not None and self.separator in head)

    def parse(self, source: Source, options: Options) -> Parsed:
        """Return the first three or four fields by position."""
        rows = records(source, source.text(fallback="latin-1"), self.separator)
        if rows.width not in (3, 4):
            raise DataError(
                f"{source.line(rows.line(0))}: {rows.width} fields between {self.separator!r};"
                " a rating has three or four: user, item, rating, time"
            )
        roles = ROLES[: rows.width]
        cells = rows.compact(range(rows.width))
        table = cells.rename(dict(zip(cells.columns, roles, strict=True)))
        return Parsed(table, lambda row: source.line(rows.line(row)))

    def titles(self, name: str) -> tuple[str, ...]:
        """Return the name of the catalogue."""
        return (self.catalogue,)


READERS.add("movielens", MovieLens("::", "movies.dat"))
READERS.add("movielens-100k", MovieLens("\t", "u.item"))
