"""Requests by external ids, and their lists: popular items for users of whom nothing is known, lists by id."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.items import as_integer, id_row, positions
from dpcml.retrieval.explain import Reason
from dpcml.retrieval.request import UserBatch, allowed_items, histories_of, likes_matrix
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import choice
from dpcml.utils.errors import NothingLeftError, UnknownIdError

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
    return Lists(items, scores, [[popular_reason(count) for count in likes[first].tolist()]] if explain else [])


def popular_reason(likes: int) -> Reason:
    """Return why an item is recommended to a user of whom nothing is known.

    Examples
    --------
    >>> popular_reason(1200).text
    'popular: 1,200 users like it'
    """
    return Reason(None, 1.0, "popular", (), (), f"popular: {likes:,} users like it")


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


def popular_without_likes(
    train: Interactions,
    users: UserBatch,
    lists: Lists,
    allowed: BoolArray,
    exclude_seen: bool,
    *,
    explain: bool = False,
) -> Lists:
    """Return the lists of a batch, with popular items for users of the training data who like none of its items.

    No model knows anything of them: an item-item model scores all items 0, a vector was never trained.

    Examples
    --------
    >>> train = Interactions.from_csr(np.array([[0, 0, 0], [0, 1, 0]]))
    >>> lists = Lists(np.array([[0], [2]]), np.zeros((2, 1)), [])
    >>> users = UserBatch.known(train, np.array([0, 1]))
    >>> popular_without_likes(train, users, lists, np.ones(3, dtype=bool), True).items.tolist()
    [[1], [2]]
    """
    places = np.flatnonzero(np.diff(users.likes.indptr) == 0)
    if not len(places):
        return lists
    indptr, seen = users.seen(exclude_seen)
    items, scores, reasons = lists.items.copy(), lists.scores.copy(), list(lists.reasons)
    for place in places.tolist():
        own = allowed.copy()
        own[seen[indptr[place] : indptr[place + 1]]] = False
        found = popular_list(train, items.shape[1], own, explain=explain)
        items[place], scores[place] = found.items[0], found.scores[0]
        if explain:
            reasons[place] = found.reasons[0]
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
    wanted = id_row(items, "item")
    if on_unknown == "error":
        return train.item_columns(wanted) if len(wanted) else np.zeros(0, dtype=np.int64)
    found = positions(train.item_ids, wanted, train.items.order)
    return found[found >= 0]


def known_columns(train: Interactions, items: Any, on_unknown: str) -> IntArray:
    """Return the columns of items of which at least one must be known; ``skip`` leaves out the others.

    Examples
    --------
    >>> known_columns(Interactions.from_csr(np.eye(3)), [2, 99], "skip").tolist()
    [2]
    >>> known_columns(Interactions.from_csr(np.eye(3)), [99], "skip")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.UnknownIdError: unknown item '99': not among the 3 items of the data; ids look like 0, 1, 2
    """
    choice("on_unknown", on_unknown, ("error", "skip"))
    columns = request_columns(train, items, on_unknown)
    return columns if len(columns) else train.item_columns(items)


def known_users(train: Interactions, users: Any, on_unknown: str) -> tuple[Array, UserBatch, BoolArray]:
    """Return the users of a request, and where those that are in the training data stand among them.

    Parameters
    ----------
    train
        Training data.
    users
        One external id, or a sequence of them.
    on_unknown
        An error for unknown users, or ``skip`` them, or keep their places for ``popular`` items.

    Returns
    -------
    ids, batch, known
        External ids, the known users among them, and a mask of shape (ids,).

    Examples
    --------
    >>> ids, batch, known = known_users(Interactions.from_csr(np.eye(2)), [1, 99], "popular")
    >>> ids, batch.rows, known
    (array([ 1, 99]), array([1]), array([ True, False]))
    """
    choice("on_unknown", on_unknown, ON_UNKNOWN)
    ids, rows = request_ids(train, users)
    if on_unknown == "error":
        train.user_rows(users)  # raises the error that names one
    elif on_unknown == "skip":
        ids, rows = ids[rows >= 0], rows[rows >= 0]
    return ids, UserBatch.known(train, rows[rows >= 0]), rows >= 0


def new_users(train: Interactions, history: Any, on_unknown: str) -> tuple[UserBatch, BoolArray, bool]:
    """Return the users with given histories, a mask of the histories with a known item, and whether there is only one.

    Parameters
    ----------
    train
        Training data, which has the item ids.
    history
        External item ids of one user, or a sequence of such sequences.
    on_unknown
        What to do with unknown items: an error, or leave them out; ``skip`` raises an error if no other is left.
    """
    choice("on_unknown", on_unknown, ON_UNKNOWN)
    given, single = histories_of(history)
    columns = [request_columns(train, one, on_unknown) for one in given]
    for one, found in zip(given, columns, strict=True):
        if len(one) and not len(found) and on_unknown == "skip":
            text = "no other item of the history is left; on_unknown='popular' (--on-unknown) gives popular items"
            try:
                train.item_columns(one)
            except UnknownIdError as error:  # it names one
                raise UnknownIdError(f"{error}: {text}") from None
    known = np.array([len(found) > 0 for found in columns], dtype=bool)
    if not known.all():
        text = f"{np.count_nonzero(~known)} of {len(known)} histories hold no known item: they get popular items"
        warnings.warn(text, UserWarning, stacklevel=3)
    return UserBatch(likes_matrix([found for found in columns if len(found)], train.n_items)), known, single


def candidate_mask(train: Interactions, items: Any, where: Any, exclude: Any, on_unknown: str) -> BoolArray:
    """Return a mask of the items that may be recommended; the parameters are those of ``recommend``.

    Examples
    --------
    >>> candidate_mask(Interactions.from_csr(np.eye(3)), [0, 1, 99], None, [1], "skip")
    array([ True, False, False])
    """
    items, exclude = (list(ids) if isinstance(ids, Set) else ids for ids in (items, exclude))
    if items is not None and on_unknown != "error":
        known = request_columns(train, items, on_unknown)
        items = train.item_ids[known] if len(known) else items  # none known: the error names one
    allowed = allowed_items(train, items, where)
    if exclude is not None:
        allowed[request_columns(train, exclude, on_unknown)] = False
        if not allowed.any():
            raise NothingLeftError("exclude: no item is left to choose from; exclude fewer items")
    return allowed


def with_ids(train: Interactions, lists: Lists, *, explain: bool, single: bool = False) -> tuple[Any, ...]:
    """Return ids, scores and perhaps reasons of lists, or of the only one; places that are empty in all are cut off.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(2), item_ids=["dune", "emma"])
    >>> with_ids(train, Lists(np.array([[1, -1]]), np.array([[0.5, -np.inf]]), []), explain=False, single=True)
    (array(['emma'], dtype=object), array([0.5]))
    """
    longest = int((lists.items >= 0).sum(axis=1).max(initial=0))
    best, scores = lists.items[:, :longest], lists.scores[:, :longest]
    ids = train.item_ids[best]
    if (best < 0).any():
        ids[best < 0] = -1 if ids.dtype.kind == "i" else None
    found = (ids, scores, lists.reasons) if explain else (ids, scores)
    if single and not len(ids):  # the only user was left out
        return (ids.ravel(), scores.ravel(), []) if explain else (ids.ravel(), scores.ravel())
    return tuple(part[0] for part in found) if single else found


def list_frame(
    by: str, keys: Array, found: tuple[Any, ...], names: tuple[str, str] = ("item_id", "score")
) -> pl.DataFrame:
    """Return lists as a polars frame with one row per user and item.

    Parameters
    ----------
    by
        Name of the first column.
    keys
        What it holds: one value per list.
    found
        Ids and scores of shape (users, n), and perhaps reasons, as from ``recommend``.
    names
        Columns of ids and scores.

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
        by: _id_column(keys[row]),
        "rank": place + 1,
        names[0]: _id_column(ids[there]),
        names[1]: scores[there],
    }
    if reasons:
        given = [reason for one in reasons[0] for reason in one]
        columns["interest"] = pl.Series([reason.interest for reason in given], dtype=pl.Int32)
        columns["share"] = pl.Series([reason.share for reason in given], dtype=pl.Float32)
        columns["reason"] = pl.Series([reason.text for reason in given], dtype=pl.String)
    return pl.DataFrame(columns)


def _id_column(ids: Array) -> pl.Series:
    """Return ids as a column whose type does not depend on how many there are."""
    import polars as pl

    return pl.Series(ids.tolist(), dtype=pl.Int64 if ids.dtype.kind in "iu" else pl.String)


def most_similar(similarities: Iterable[FloatArray], own: IntArray, n_all: int, n: int) -> tuple[IntArray, FloatArray]:
    """Return positions and values of the largest similarities, without the item or user itself.

    Parameters
    ----------
    similarities
        For each item or user its similarity to all; taken one by one.
    own
        Its position.
    n_all, n
        How many there are, and how many are wanted, at most.

    Examples
    --------
    >>> most_similar([np.array([1.0, 0.2, 0.7])], np.array([0]), 3, 1)
    (array([[2]]), array([[0.7]], dtype=float32))
    """
    shape = len(own), min(int(n), n_all - 1)
    best, values = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.float32)
    for row, (position, found) in enumerate(zip(own.tolist(), similarities, strict=True)):
        similarity = found.astype(np.float32)
        similarity[position] = -np.inf
        best[row] = np.argsort(-similarity, kind="stable")[: shape[1]]
        values[row] = similarity[best[row]]
    return best, values


def similar_lists(
    ids: Array, own: IntArray, best: IntArray, values: FloatArray, kind: str, *, single: bool, as_frame: bool
) -> Any:
    """Return what `most_similar` found by external ids, as arrays or as a frame.

    Examples
    --------
    >>> ids = np.array(["dune", "emma"], dtype=object)
    >>> given = ids, np.array([0]), np.array([[1]]), np.array([[0.5]])
    >>> similar_lists(*given, "item", single=True, as_frame=False)
    (array(['emma'], dtype=object), array([0.5]))
    >>> similar_lists(*given, "item", single=True, as_frame=True).to_dicts()
    [{'item_id': 'dune', 'rank': 1, 'similar_id': 'emma', 'similarity': 0.5}]
    """
    if not as_frame:
        return (ids[best[0]], values[0]) if single else (ids[best], values)
    return list_frame(f"{kind}_id", ids[own], (ids[best], values), names=("similar_id", "similarity"))
