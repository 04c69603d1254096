"""Parquet files with one interaction per row."""

from __future__ import annotations

import io

import polars as pl

from dpcml.data.columns import Columns, assign_columns
from dpcml.data.readers.base import READERS, Options, Parsed, Reader
from dpcml.data.readers.text import Source
from dpcml.utils.errors import DataError

MAGIC = "PAR1"


class Parquet(Reader):
    """Parquet, told by its first four bytes."""

    takes = frozenset({"user", "item", "rating", "time"})

    def matches(self, name: str, head: str) -> int:
        """Certain where the magic letters stand, likely by name."""
        return 3 if head.startswith(MAGIC) else 2 * name.endswith((".parquet", ".pq"))

    def parse(self, source: Source, options: Options) -> Parsed:
        """Return the columns for user, item, rating and time, with their types."""
        given = Columns(options.user, options.item, options.rating, options.time)
        columns, notes = assign_columns(parquet_names(source), given, source.name)
        named = columns.named()
        table = parquet_columns(source, list(named.values())).select(
            pl.col(name).alias(role) for role, name in named.items()
        )
        return Parsed(table, lambda row: f"{source.name}, row {row + 1}", notes)


def parquet_names(source: Source) -> list[str]:
    """Return the names of a Parquet file's columns, or say that the file is damaged."""
    try:
        return list(pl.read_parquet_schema(io.BytesIO(source.raw)))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise _damaged(source, error) from None


def parquet_columns(source: Source, names: list[str]) -> pl.DataFrame:
    """Return some columns of a Parquet file, or say that the file is damaged."""
    try:
        return pl.read_parquet(io.BytesIO(source.raw), columns=names)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise _damaged(source, error) from None


def _damaged(source: Source, error: BaseException) -> DataError:
    panic = isinstance(error, pl.exceptions.PanicException)  # its text speaks of polars' inside
    reason = "its bytes make no sense" if panic else str(error).partition("\n")[0]
    return DataError(f"{source.path}: no readable Parquet file ({reason}); write or fetch it again")


READERS.add("parquet", Parquet())
