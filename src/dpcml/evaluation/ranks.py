"""Ranks of held-out items among all candidates: computed once, in blocks of users, for every metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from dpcml.data.csr import csr_of_pairs, take_rows
from dpcml.data.interactions import Interactions
from dpcml.kernels import ranking
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray, frozen
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.threads import over_rows

BLOCK_BYTES = 32 * 2**20  # scores held at once
CHECKED = 2**22  # training positives that are compared with held-out ones at once


class Scorer(Protocol):
    """Anything that scores all items for some users: every model, and classes of your own."""

    def score(self, users: IntArray, /) -> FloatArray:
        """Return scores of shape (users, items), larger is better, for rows of the training data."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of held-out items among all candidates of their user.

    An item with ``ahead`` candidates of a higher score and ``tied`` others of the same score has the expected rank
    ``1 + ahead + tied / 2``. Metrics are expectations over the order of ties, so a model that gives all items the same
    score gets exactly the figures of a random ranking.

    Parameters
    ----------
    users
        Rows of the users that have held-out items; shape (users,).
    indptr
        ``ahead[indptr[k]:indptr[k + 1]]`` belong to ``users[k]``.
    items
        Held-out items.
    ahead, tied
        Candidates with a higher and with the same score; parallel to ``items``.
    candidates
        Number of candidates of each user; shape (users,).
    top
        The first items of each user's ranking, padded with -1; shape (users, n).

    Examples
    --------
    >>> Ranks.from_places([[0, 4], [2]], n_candidates=10).rank
    array([1., 5., 3.])
    """

    users: IntArray
    indptr: IntArray
    items: IntArray
    ahead: IntArray
    tied: IntArray
    candidates: IntArray
    top: IntArray

    @classmethod
    def from_places(
        cls,
        ahead: Sequence[Sequence[int]],
        tied: Sequence[Sequence[int]] | None = None,
        n_candidates: int = 100,
    ) -> Ranks:
        """Build from known numbers of candidates ahead, one sequence per user."""
        flat = np.array([place for user in ahead for place in user], dtype=np.int64)
        level = np.zeros_like(flat) if tied is None else np.array([place for user in tied for place in user])
        n_users = len(ahead)
        return cls(
            users=np.arange(n_users),
            indptr=np.cumsum([0, *(len(user) for user in ahead)]),
            items=flat,
            ahead=flat,
            tied=level,
            candidates=np.full(n_users, n_candidates),
            top=np.full((n_users, 0), -1),
        )

    @property
    def rank(self) -> FloatArray:
        """Expected rank of each held-out item, from 1."""
        return 1 + self.ahead + self.tied / 2

    @property
    def n_held(self) -> IntArray:
        """Held-out items of each user; shape (users,)."""
        return np.diff(self.indptr)

    @cached_property
    def owner(self) -> IntArray:
        """Position in ``users`` of each held-out item."""
        return np.repeat(np.arange(len(self.users)), self.n_held)

    def per_user(self, values: FloatArray) -> FloatArray:
        """Return each user's sum of values that are parallel to ``items``."""
        return sums(self.owner, values, len(self.users))

    def only(self, relevant: BoolArray) -> Ranks:
        """Return the ranks of a part of the held-out items; the other items remain candidates, and all users remain.

        Examples
        --------
        >>> few = Ranks.from_places([[0, 4], [2]]).only(np.array([False, True, False]))
        >>> few.n_held.tolist(), few.rank.tolist()
        ([1, 0], [5.0])
        """
        kept = np.bincount(self.owner[relevant], minlength=len(self.users))
        indptr = np.concatenate([[0], np.cumsum(kept)])
        return replace(
            self, indptr=indptr, items=self.items[relevant], ahead=self.ahead[relevant], tied=self.tied[relevant]
        )


def sums(owner: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Return the sum of the values of each of n owners."""
    total: FloatArray = np.bincount(owner, weights=values, minlength=n).astype(np.float64)
    return total


def rank_held_out(
    model: Scorer,
    train: Interactions,
    test: Interactions,
    *,
    also_masked: Interactions | None = None,
    users: IntArray | None = None,
    top: int = 20,
    n_threads: int | None = None,
) -> Ranks:
    """Rank each user's held-out items among all items that are no training positives.

    Parameters
    ----------
    model
        Anything with ``score(rows) -> (rows, items)``.
    train
        Positives that are no candidates.
    test
        Held-out positives over the same users and items.
    also_masked
        Further positives that are no candidates (validation).
    users
        Rows of the users; all with held-out items by default.
    top
        How many first items of each ranking to keep.
    n_threads
        Threads for ranking; all cores by default.

    Examples
    --------
    >>> from dpcml.models.popularity import Popularity
    >>> train = Interactions.from_csr(np.array([[1, 0, 0], [1, 1, 0]]))
    >>> test = Interactions.from_csr(np.array([[0, 1, 0], [0, 0, 1]]))
    >>> rank_held_out(Popularity().fit(train), train, test).rank
    array([1., 1.])
    """
    parts = [train]
    if also_masked is not None:
        _check_shape("validation", also_masked, test)
        parts.append(also_masked)
    for part in parts:
        check_held_out(part, test)
    chosen = _with_held_out(test, users)
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(test.per_user[chosen])])
    items, ahead, tied = (np.zeros(indptr[-1], dtype=np.int32) for _ in range(3))
    n_masked = np.zeros(len(chosen), dtype=np.int64)
    best = np.empty((len(chosen), min(top, test.n_items)), dtype=np.int64)
    best_scores = np.empty(best.shape, dtype=np.float32)
    block = max(1, BLOCK_BYTES // (4 * max(test.n_items, 1)))
    for first in range(0, len(chosen), block):
        some = chosen[first : first + block]
        scores = _scores(model, some, test.n_items)
        place = slice(indptr[first], indptr[first + len(some)])
        held_ptr, items[place] = take_rows(test.indptr, test.indices, some)
        seen_ptr, seen = _masked(parts, some)
        n_masked[first : first + block] = np.diff(seen_ptr)
        known = frozen(seen_ptr), frozen(seen)
        given = np.arange(len(some)), *known, frozen(held_ptr), frozen(items[place]), ahead[place], tied[place]
        out = best[first : first + block], best_scores[first : first + block]
        numbers: list[bool] = []

        def work(start: int, stop: int) -> None:
            numbers.append(ranking.rank_counts(scores, *given, start, stop))  # noqa: B023
            ranking.top_k(scores, given[0], *known, *out, start, stop)  # noqa: B023

        over_rows(work, len(some), n_threads)
        if not all(numbers):
            raise DataError(
                f"{type(model).__name__} scored NaN for an item: scores must be numbers; check the training"
            )
    candidates = test.n_items - n_masked
    return Ranks(users=chosen, indptr=indptr, items=items, ahead=ahead, tied=tied, candidates=candidates, top=best)


def check_held_out(train: Interactions, held: Interactions) -> None:
    """Reject held-out positives that are over other users or items, or are training positives too.

    Examples
    --------
    >>> likes = Interactions.from_csr(np.eye(3))
    >>> check_held_out(likes, likes)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: 3 held-out positives are training or validation positives too: parts must not overlap
    """
    _check_shape("train", train, held)
    cuts = np.searchsorted(train.indptr, np.arange(CHECKED, train.n_positives, CHECKED))
    shared = 0
    for first, last in pairwise([0, *cuts.tolist(), train.n_users]):
        known, asked = (_keys(part, first, last) for part in (train, held))  # both ascend
        shared += int((np.append(known, -1)[np.searchsorted(known, asked)] == asked).sum())
    if shared:
        raise DataError(
            f"{shared:,} held-out positives are training or validation positives too: parts must not overlap"
        )


def _keys(part: Interactions, first: int, last: int) -> IntArray:
    """Return a number for each positive of some users, ascending."""
    rows = np.repeat(np.arange(first, last), np.diff(part.indptr[first : last + 1]))
    return rows * part.n_items + part.indices[part.indptr[first] : part.indptr[last]]


def _check_shape(name: str, part: Interactions, held: Interactions) -> None:
    if (part.n_users, part.n_items) != (held.n_users, held.n_items):
        raise DataError(
            f"{name} is {part!r} but what is held out is {held!r}: split one data set, so that rows and columns agree"
        )


def _masked(parts: Sequence[Interactions], users: IntArray) -> tuple[IntArray, IntArray]:
    """Return row pointers and positions of the items that are no candidates of some users."""
    found = [take_rows(part.indptr, part.indices, users) for part in parts]
    if len(found) == 1:
        return found[0]
    rows = np.concatenate([np.repeat(np.arange(len(users)), np.diff(indptr)) for indptr, _ in found])
    columns = np.concatenate([indices for _, indices in found])
    return csr_of_pairs(rows, columns, (len(users), parts[0].n_items))[:2]


def _with_held_out(test: Interactions, users: IntArray | None) -> IntArray:
    if users is None:
        return np.flatnonzero(test.per_user)
    rows = np.unique(np.asarray(users))
    if len(rows) and (rows[0] < 0 or rows[-1] >= test.n_users):
        raise ParameterError(f"users: rows must be in 0..{test.n_users - 1}, got {rows[0]}..{rows[-1]}")
    return rows[test.per_user[rows] > 0]


def _scores(model: Scorer, users: IntArray, n_items: int) -> FloatArray:
    scores = np.ascontiguousarray(model.score(users))
    if scores.shape != (len(users), n_items):
        raise DataError(f"{type(model).__name__}.score gave shape {scores.shape}: ({len(users)}, {n_items}) is needed")
    return scores.astype(np.float32 if scores.dtype.kind != "f" else scores.dtype, copy=False)
