"""From rows to `Interactions`: check values, apply the rules, collapse duplicates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import polars as pl

from dpcml.data.columns import Columns, assign_columns
from dpcml.data.interactions import Interactions, Preparation
from dpcml.data.items import ItemTable
from dpcml.data.rules import Rules, drop_thin
from dpcml.data.values import Where, encode_ids, numbers, seconds
from dpcml.utils.arrays import BoolArray
from dpcml.utils.errors import DataError


def from_frame(
    frame: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    items: ItemTable | None = None,
    **rules: Any,
) -> Interactions:
    """Build `Interactions` from a pandas or polars frame with one row per interaction.

    Parameters
    ----------
    frame
        A pandas, polars or other eager frame that narwhals knows.
    user, item, rating, time
        Names of the columns; guessed from common names where not given (``preparation.notes`` says what was).
        ``rating=""`` or ``time=""`` leaves that column out.
    items
        Titles and attributes; found by item id.
    **rules
        The fields of `Rules`: ``min_rating``, ``min_user``, ``core``, ``text_ids``.

    Examples
    --------
    >>> rows = pl.DataFrame({"user": [1, 1, 2], "movie_id": [7, 8, 7], "rating": [5, 2, 4]})
    >>> data = from_frame(rows, min_rating=4)
    >>> data
    Interactions(2 users, 1 items, 2 positives)
    >>> for line in data.preparation.lines():
    ...     print(line)
    guessed: user = 'user', item = 'movie_id', rating = 'rating'
    rows below the rating threshold: 1
    items dropped, too few positives: 1
    """
    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(f"a {type(frame).__name__} is no frame: pass a pandas or polars DataFrame") from None
    except nw.exceptions.NarwhalsError as error:
        raise DataError(f"the frame cannot be used: {error}") from None
    by_name = {str(name): name for name in native.columns}  # pandas names columns by any object
    columns, notes = assign_columns(list(by_name), Columns(user, item, rating, time))
    picked = {role: _series(native.get_column(by_name[name]), name) for role, name in columns.named().items()}
    table = pl.DataFrame(picked)
    return prepare(table, _row, Rules.of(rules), items=items, notes=notes, source="the frame")


def _row(row: int) -> str:
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


def prepare(
    table: pl.DataFrame,
    where: Where,
    rules: Rules,
    *,
    items: ItemTable | None = None,
    notes: tuple[str, ...] = (),
    source: str = "the data",
) -> Interactions:
    """Turn a table with columns ``user``, ``item`` and perhaps ``rating``, ``time`` into `Interactions`.

    Columns may be text or typed; a value that breaks a rule is reported with ``where`` it stands.

    Parameters
    ----------
    table
        One row per interaction.
    where
        Says where a row stands, for errors.
    rules
        What counts as a positive, and which users and items stay.
    items
        Titles and attributes; found by item id.
    notes
        What a reader guessed or found.
    source
        What to call the whole table in an error.

    Examples
    --------
    >>> rows = pl.DataFrame({"user": ["1", "1"], "item": ["7", "-8"]})
    >>> prepare(rows, lambda row: f"likes.csv, line {row + 2}", Rules())
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: likes.csv, line 3: item id '-8': whole-number ids must lie between 0 and
    9223372036854775807; pass text_ids=True (--text-ids) to treat ids as text
    """
    if not len(table):
        raise DataError(f"{source}: no rows; at least one interaction is needed")
    users, user_ids = encode_ids(table["user"], "user", where, rules.text_ids)
    columns, item_ids = encode_ids(table["item"], "item", where, rules.text_ids)
    times = seconds(table["time"], where) if "time" in table.columns else None
    keep, said = _positive(table, where, rules, source)
    done = Preparation(rows=len(table), below_rating=len(table) - len(users[keep]), notes=(*notes, *said))
    data = Interactions.from_codes(
        users[keep], columns[keep], user_ids, ItemTable(item_ids),
        timestamps=None if times is None else times[keep], preparation=done,
    )  # fmt: skip
    try:
        data = drop_thin(data, rules)
        return data if items is None else _describe(data, items)
    except DataError as error:
        raise DataError(f"{source}: {error}") from None


def _positive(
    table: pl.DataFrame, where: Where, rules: Rules, source: str
) -> tuple[BoolArray | slice, tuple[str, ...]]:
    """Return which rows are positives, all or by their rating, and a note where ratings differ but do not count."""
    every = slice(None)  # takes no memory, and copies nothing
    if "rating" not in table.columns:
        if rules.min_rating is not None:
            said = f"min_rating={rules.min_rating:g}, but there is no rating column to compare it with"
            raise DataError(f"{source}: {said}")
        return every, ()
    ratings = numbers(table["rating"], "rating", where)
    if rules.min_rating is not None:
        return ratings >= rules.min_rating, ()
    low, high = ratings.min(), ratings.max()
    hint = "every row counts; min_rating (--min-rating) sets a threshold"
    return every, () if low == high else (f"ratings from {low:g} to {high:g}: {hint}",)


def _describe(data: Interactions, items: ItemTable) -> Interactions:
    """Add titles and attributes, and note how many items have none."""
    missing = int((items.find(data.item_ids) < 0).sum())
    if missing == data.n_items:
        ours, theirs = (", ".join(str(value) for value in ids[:3]) for ids in (data.item_ids, items.ids))
        raise DataError(f"no item is in the catalogue given: ids here look like {ours}; there like {theirs}")
    data = data.with_items(items)
    if not missing:
        return data
    notes = (*data.preparation.notes, f"not in the catalogue: {missing:,} of {data.n_items:,} items")
    return replace(data, preparation=replace(data.preparation, notes=notes))
