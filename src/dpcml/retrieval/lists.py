"""Finished lists: popular items for users of whom nothing is known, and lists as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.items import as_integer, id_row, positions
from dpcml.retrieval.explain import Reason
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import polars as pl

ON_UNKNOWN = ("error", "skip", "popular")


class Lists(NamedTuple):
    """Recommended items by position."""

    items: IntArray  # (users, n), best first, -1 where candidates run out
    scores: FloatArray  # (users, n), minus infinity where candidates run out
    reasons: list[list[Reason]]  # per user and item; empty unless asked for


def popular_list(train: Interactions, n: int, allowed: BoolArray, *, explain: bool = False) -> Lists:
    """Return the list of a user of whom nothing is known: the allowed items with the most likes, which are the scores.

    Parameters
    ----------
    train
        Training data.
    n
        Length of the list; it ends in -1 where candidates run out.
    allowed
        Mask of the items that may be recommended.
    explain
        Also give reasons.

    Examples
    --------
    >>> train = Interactions.from_csr(np.array([[1, 1, 0], [0, 1, 0]]))
    >>> found = popular_list(train, 1, np.ones(3, dtype=bool), explain=True)
    >>> found.items, found.scores, found.reasons[0][0].text
    (array([[1]]), array([[2.]], dtype=float32), 'popular: 2 users like it')
    """
    candidates = np.flatnonzero(allowed)
    likes = train.per_item[candidates]
    first = np.argsort(-likes, kind="stable")[:n]
    items, scores = np.full((1, n), -1, dtype=np.int64), np.full((1, n), -np.inf, dtype=np.float32)
    items[0, : len(first)], scores[0, : len(first)] = candidates[first], likes[first]
    texts = [f"popular: {count:,} users like it" for count in likes[first].tolist()] if explain else []
    return Lists(items, scores, [[Reason(None, 1.0, "popular", (), (), text) for text in texts]] if explain else [])


def fill_in(lists: Lists, there: BoolArray, other: Lists, *, explain: bool = False) -> Lists:
    """Return lists of all users: one of ``lists`` after the other where ``there`` is true, ``other`` elsewhere.

    Examples
    --------
    >>> own, popular = (Lists(np.array([[k]]), np.array([[1.0]]), []) for k in (3, 7))
    >>> fill_in(own, np.array([False, True]), popular).items.tolist()
    [[7], [3]]
    """
    if there.all():
        return lists
    items, scores = np.repeat(other.items, len(there), axis=0), np.repeat(other.scores, len(there), axis=0)
    items[there], scores[there] = lists.items, lists.scores
    own = iter(lists.reasons)
    reasons = [next(own) if known else other.reasons[0] for known in there.tolist()] if explain else []
    return Lists(items, scores, reasons)


def request_ids(train: Interactions, users: Any) -> tuple[Array, IntArray]:
    """Return the user ids of a request, of the kind of the training data's where possible, and their rows or -1.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(2), user_ids=[5, 7])
    >>> request_ids(train, ["7", "9"])
    (array([7, 9]), array([ 1, -1]))
    """
    wanted = id_row(users, "user")
    rows = positions(train.user_ids, wanted, train.user_order)
    if train.user_ids.dtype.kind == wanted.dtype.kind:
        return wanted, rows
    if train.user_ids.dtype.kind == "O":
        return np.array([str(one) for one in wanted.tolist()], dtype=object), rows
    numbers = [as_integer(one) for one in wanted.tolist()]
    return wanted if None in numbers else np.array(numbers, dtype=np.int64), rows


def request_columns(train: Interactions, items: Any, on_unknown: str) -> IntArray:
    """Return the columns of the items of a request; unknown ones are left out, or an error.

    Examples
    --------
    >>> request_columns(Interactions.from_csr(np.eye(3)), [2, 99], "skip").tolist()
    [2]
    """
    if on_unknown == "error":
        return train.item_columns(items) if len(items) else np.zeros(0, dtype=np.int64)
    found = positions(train.item_ids, id_row(items, "item"), train.items.order)
    return found[found >= 0]


def list_frame(by: str, keys: Array, found: tuple[Any, ...]) -> pl.DataFrame:
    """Return lists as a polars frame with one row per user and item.

    Parameters
    ----------
    by
        Name of the first column.
    keys
        What it holds: one value per list.
    found
        Ids and scores of shape (users, n), and perhaps reasons, as from ``recommend``.

    Examples
    --------
    >>> list_frame("user_id", np.array([7]), (np.array([[3, -1]]), np.array([[0.5, -np.inf]]))).rows()
    [(7, 1, 3, 0.5)]
    """
    import polars as pl

    ids, scores, *reasons = found
    there = np.isfinite(scores)
    row, place = np.nonzero(there)
    columns: dict[str, Any] = {
        by: keys[row].tolist(),
        "rank": place + 1,
        "item_id": ids[there].tolist(),
        "score": scores[there],
    }
    if reasons:
        given = [reason for one in reasons[0] for reason in one]
        columns["interest"] = pl.Series([reason.interest for reason in given], dtype=pl.Int32)
        columns["share"] = pl.Series([reason.share for reason in given], dtype=pl.Float32)
        columns["reason"] = pl.Series([reason.text for reason in given], dtype=pl.String)
    return pl.DataFrame(columns)
