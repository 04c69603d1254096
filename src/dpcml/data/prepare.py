"""From rows to `Interactions`: typed values, rating threshold, k-core filter, duplicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import polars as pl

from dpcml.data.columns import Where, amounts, assign_columns, encode_ids, numbers, seconds
from dpcml.data.csr import check_rating
from dpcml.data.frames import frame_columns, row_of_frame
from dpcml.data.interactions import Interactions, Preparation
from dpcml.data.items import ItemTable
from dpcml.utils.arrays import BoolArray
from dpcml.utils.checks import at_least, choice
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.names import rename_arguments, renamed

MOST_ITEMS = 100_000_000  # in a catalogue that is filled up
OLD_NAMES = {"min_user": "min_user_interactions", "min_item": "min_item_interactions"}


@dataclass(frozen=True)
class Rules:
    """Which rows count as positives, and which users and items are kept.

    Examples
    --------
    >>> Rules.of({"min_rating": 4, "min_user_interactions": 5})
    Rules(min_rating=4, min_user_interactions=5, min_item_interactions=1, core=1, text_ids=False,
          item_space='positives')
    >>> Rules.of({"min_ratings": 5})
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown option 'min_ratings': did you mean 'min_rating'?
    """

    min_rating: float | None = None  # rows with a lower rating are no positives; None: every row is one
    min_user_interactions: int = 1  # users with fewer positives are dropped
    min_item_interactions: int = 1  # items with fewer positives are dropped
    core: int = 1  # k of the k-core: the least number of positives for users and items alike
    text_ids: bool = False  # keep ids as text, even where all of them are whole numbers
    item_space: str = "positives"  # the catalogue: items with a positive, or all ``ids`` from 0 to the largest of them

    def __post_init__(self) -> None:
        for name in ("min_user_interactions", "min_item_interactions", "core"):
            at_least(name, getattr(self, name), 1)
        if self.min_rating is not None:
            check_rating(self.min_rating)
        if not isinstance(self.text_ids, (bool, np.bool_)):
            raise ParameterError(f"text_ids={self.text_ids!r}: must be True or False")
        choice("item_space", self.item_space, ("positives", "ids"))

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Rules:
        """Build from options by name; old names give a warning, unknown ones an error."""
        options = rename_arguments("reading data", options, OLD_NAMES, stacklevel=5)
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ParameterError(f"unknown option {name!r}: {did_you_mean(name, known)}")
        return cls(**options)

    def nothing_left(self, n_users: int, most_of_user: int, most_of_item: int) -> str:
        """Return why no positive is left, and the way out; the most positives of a user and an item were these."""
        if not most_of_user:
            least = self.min_rating
            return "there are no positives" if least is None else f"no rating reaches min_rating={least:g}; lower it"
        names = ("min_user_interactions", "min_item_interactions", "core")
        limits = " and ".join(f"{name}={getattr(self, name)}" for name in names if getattr(self, name) > 1)
        return (
            f"all {n_users:,} users are filtered out by {limits}: the most active user has {most_of_user} positives,"
            f" the most popular item {most_of_item}; lower it"
        )


def k_core(data: Interactions, rules: Rules) -> Interactions:
    """Drop users and items with too few positives, again and again until all that are left have enough.

    ``preparation`` of the result counts what was dropped. Every user and item that is left has a positive.

    Examples
    --------
    >>> data = Interactions.from_csr(np.array([[1, 1, 0], [0, 1, 0]]))
    >>> core = k_core(data, Rules(min_user_interactions=2))
    >>> core, core.preparation.users_dropped, core.preparation.items_dropped
    (Interactions(1 users, 2 items, 2 positives), 1, 1)
    """
    least_user = max(rules.min_user_interactions, rules.core)
    least_item = max(rules.min_item_interactions, rules.core)
    if data.n_positives and data.per_user.min() >= least_user and data.per_item.min() >= least_item:
        return data
    rows = data.rows
    keep = np.ones(data.n_positives, dtype=bool)
    while True:
        per_user = np.bincount(rows[keep], minlength=data.n_users)
        per_item = np.bincount(data.indices[keep], minlength=data.n_items)
        drop = keep & ((per_user < least_user)[rows] | (per_item < least_item)[data.indices])
        if not drop.any():
            break
        keep &= ~drop
    if not keep.any():
        raise DataError(rules.nothing_left(data.n_users, data.per_user.max(initial=0), data.per_item.max(initial=0)))
    left = data.select(keep)
    some_users, some_items = left.per_user > 0, left.per_item > 0
    done = replace(
        data.preparation,
        users_dropped=data.preparation.users_dropped + int((~some_users).sum()),
        items_dropped=data.preparation.items_dropped + int((~some_items).sum()),
    )
    new_item = np.cumsum(some_items, dtype=np.int32) - 1
    low = None if data.low_rated is None else data.low_rated[some_users][:, some_items]
    return replace(
        left,
        indptr=left.indptr[np.append(True, some_users)],  # users who are dropped have nothing between theirs
        indices=new_item[left.indices],
        user_ids=data.user_ids[some_users],
        items=data.items.select(some_items),
        preparation=done,
        split_hash=data.split_hash,
        low_rated=low if low is not None and low.nnz else None,
    )


def fill_item_ids(data: Interactions) -> Interactions:
    """Return the data with every whole number up to the largest item id as an item, as the paper counts items.

    The items that are added have no positive.

    Examples
    --------
    >>> data = Interactions.from_csr(np.array([[1, 1]]), items=ItemTable(np.array([1, 4])))
    >>> fill_item_ids(data).n_items, fill_item_ids(data).of(0).tolist()
    (5, [1, 4])
    """
    if data.item_ids.dtype.kind not in "iu":
        raise DataError("item_space='ids' needs item ids that are whole numbers; leave it out")
    space = data.item_id_space
    if space > MOST_ITEMS:
        raise DataError(f"item_space='ids': the largest item id makes {space:,} items, the limit is {MOST_ITEMS:,}")
    added = ItemTable(np.arange(space, dtype=np.int64))
    low = None if data.low_rated is None else data.low_rated.tocoo().coords
    return Interactions.from_codes(
        data.rows, data.item_ids[data.indices], data.user_ids, added,
        timestamps=data.timestamps, weights=data.weights, preparation=data.preparation,
        low_rated=None if low is None else (low[0], data.item_ids[low[1]]),
    )  # fmt: skip


@renamed(**OLD_NAMES)
def from_frame(
    frame: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    items: Any = None,
    min_rating: float | None = None,
    min_user_interactions: int = 1,
    min_item_interactions: int = 1,
    core: int = 1,
    text_ids: bool = False,
    item_space: str = "positives",
) -> Interactions:
    """Build `Interactions` from a pandas or polars frame with one row per interaction.

    Parameters
    ----------
    frame
        A pandas or polars frame, a polars LazyFrame, or another frame that narwhals knows. Of a lazy one only the
        columns that are needed are collected.
    user, item, rating, time
        Names of the columns; guessed from common names where not given (``preparation.notes`` says what was).
        ``rating=""`` or ``time=""`` leaves that column out.
    weight
        Name of a column that says how much a positive counts, such as play counts; it may be that of the ratings. The
        weights of a pair that repeats are added up.
    items
        Titles and attributes, found by item id: a frame with a column of item ids and perhaps columns of titles and
        genres, or an `ItemTable`.
    min_rating
        Rows with a lower rating are no positives; None: every row is one.
    min_user_interactions, min_item_interactions, core
        Users and items with fewer positives are dropped; ``core`` is for both.
    text_ids
        Keep ids as text, even where all of them are whole numbers.
    item_space
        ``positives``: items with a positive; ``ids``: all whole numbers up to the largest item id.

    Examples
    --------
    >>> rows = pl.DataFrame({"user": [1, 1, 2], "movie_id": [7, 8, 7], "rating": [5, 2, 4]})
    >>> films = pl.DataFrame({"movie_id": [7, 8], "title": ["Heat", "Emma"], "genres": ["Action|Crime", "Romance"]})
    >>> data = from_frame(rows, items=films, min_rating=4)
    >>> data, data.items.title(0), data.items.attributes.of(0)
    (Interactions(2 users, 1 items, 2 positives), 'Heat', ['Action', 'Crime'])
    >>> for line in data.preparation.lines():
    ...     print(line)
    guessed: user = 'user', item = 'movie_id', rating = 'rating'
    rows below the rating threshold: 1
    items dropped, too few positives: 1
    """
    from dpcml.data.readers.items import items_from_frame

    rules = Rules(min_rating, min_user_interactions, min_item_interactions, core, text_ids, item_space)
    given = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight}
    table, notes = frame_columns(frame, lambda names: assign_columns(names, given))
    if items is not None and not isinstance(items, ItemTable):
        items = items_from_frame(items, text_ids=text_ids, like=item)
    return prepare(table, row_of_frame, rules, items=items, notes=notes, source="the frame")


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

    Columns may be text or typed; a value that breaks a rule is reported with its file and line.

    Parameters
    ----------
    table
        One row per interaction.
    where
        Returns file and line of a row, for errors.
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
    weights = amounts(table["weight"], where) if "weight" in table.columns else None
    keep, said = _positive(table, where, rules, source)
    done = Preparation(rows=len(table), below_rating=len(table) - len(users[keep]), notes=(*notes, *said))
    data = Interactions.from_codes(
        users[keep], columns[keep], user_ids, ItemTable(item_ids),
        timestamps=None if times is None else times[keep], preparation=done,
        weights=None if weights is None else weights[keep],
        low_rated=None if isinstance(keep, slice) else (users[~keep], columns[~keep]),
    )  # fmt: skip
    try:
        data = k_core(data, rules)
        if rules.item_space == "ids":
            data = fill_item_ids(data)
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
