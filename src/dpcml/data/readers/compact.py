"""Joining blocks of text cells so that columns of whole numbers take little memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

KINDS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.String)  # each can hold what those before it hold


def joined_compactly(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Join frames of text; columns whose cells are all whole numbers, plainly written, become integers.

    Nothing is lost: an integer takes the place of a cell only where it is written the same, so that ``007``
    stays text, and one such cell leaves its whole column text.

    Examples
    --------
    >>> first, second = pl.DataFrame({"user": ["1"], "item": ["7"]}), pl.DataFrame({"user": ["2"], "item": ["007"]})
    >>> joined_compactly([first, second]).rows()
    [(1, '7'), (2, '007')]
    """
    parts = [[_compact(column) for column in frame] for frame in frames]
    return pl.DataFrame([joined_pieces(pieces) for pieces in zip(*parts, strict=True)])


def joined_pieces(pieces: Sequence[pl.Series]) -> pl.Series:
    """Join pieces of a column, each of one of `KINDS`, as the first kind that holds all of them.

    Examples
    --------
    >>> joined_pieces([pl.Series([1, 2]), pl.Series(["x"])]).to_list()
    ['1', '2', 'x']
    """
    kind = max((piece.dtype for piece in pieces), key=KINDS.index)
    return pl.concat([piece.cast(kind) for piece in pieces])


def _compact(cells: pl.Series) -> pl.Series:
    """Return text as integers where each is written the same as its text."""
    numbers = cells.cast(pl.Int64, strict=False)  # null where it is none
    if not numbers.cast(pl.String).eq_missing(cells).all():
        return cells
    return numbers.shrink_dtype()
