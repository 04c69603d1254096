"""Columns of a pandas, polars or other frame as a polars frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw
import polars as pl

from dpcml.utils.errors import DataError


def frame_columns(
    frame: Any, assign: Callable[[list[str]], tuple[Mapping[str, str], tuple[str, ...]]]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return some columns of a frame under the names of their roles, and what was guessed.

    Parameters
    ----------
    frame
        A frame that narwhals knows; of a lazy one only these columns are collected.
    assign
        Returns column names by role, and notes, from the names of all columns.

    Examples
    --------
    >>> lazy = pl.LazyFrame({"who": [1], "what": [2]})
    >>> frame_columns(lazy, lambda names: ({"user": "who"}, ()))[0].to_dicts()
    [{'user': 1}]
    """
    try:
        native = nw.from_native(frame)
    except TypeError:
        raise DataError(f"a {type(frame).__name__} is no frame: pass a pandas or polars DataFrame") from None
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"the frame cannot be used: {error}") from None
    try:
        by_name = {str(name): name for name in native.collect_schema().names()}  # pandas names columns by any object
        columns, notes = assign(list(by_name))
        if isinstance(native, nw.LazyFrame):
            native = native.select([by_name[name] for name in dict.fromkeys(columns.values())]).collect()
    except DataError:
        raise
    except (nw.exceptions.NarwhalsError, pl.exceptions.PolarsError) as error:
        raise DataError(f"the frame cannot be used: {error}") from None
    picked = {role: _series(native.get_column(by_name[name]), name) for role, name in columns.items()}
    return pl.DataFrame(picked), notes


def row_of_frame(row: int) -> str:
    """Return the place of a row for messages."""
    return f"row {row}"


def _series(column: nw.Series[Any], name: str) -> pl.Series:
    """Return a column of any frame as a polars series, missing values as nulls."""
    if column.implementation.is_polars():
        return pl.Series(column.to_native())
    missing = column.is_null().to_numpy()
    try:
        if column.dtype == nw.Datetime:
            values = pl.Series(column.dt.timestamp("us").fill_null(0).to_numpy() / 1e6)
        elif column.dtype.is_numeric():
            values = pl.Series(column.fill_null(0).to_numpy())
        else:
            pairs = zip(column.to_list(), missing.tolist(), strict=True)
            return pl.Series([None if gone else value for value, gone in pairs], strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} of the frame cannot be used: {error}") from None
    return values.zip_with(pl.Series(~missing), pl.Series([None], dtype=values.dtype))
