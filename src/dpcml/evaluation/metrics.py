"""Accuracy metrics as pure functions of ranks: one value per user.

Every value is an expectation over the order of tied candidates. A held-out item with g candidates ahead of it, in a
group of m tied ones (itself included), stands at each of the places g+1 .. g+m with equal probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpcml.evaluation.ranks import Ranks, sums
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.packages import gammaln


def precision(ranks: Ranks, k: int) -> FloatArray:
    """Return the share of the first k places that held-out items take.

    Examples
    --------
    >>> precision(Ranks.from_places([[0, 4], [2]]), 2)
    array([0.5, 0. ])
    """
    return _hits(ranks, k) / k


def recall(ranks: Ranks, k: int) -> FloatArray:
    """Return the share of a user's held-out items that stand among the first k.

    Examples
    --------
    >>> recall(Ranks.from_places([[0, 4], [2]]), 3)
    array([0.5, 1. ])
    """
    return _per_held(ranks, _hits(ranks, k))


def hit_rate(ranks: Ranks, k: int) -> FloatArray:
    """Return 1 for users with a held-out item among the first k, else 0; with ties, the probability of one.

    Examples
    --------
    >>> hit_rate(Ranks.from_places([[0, 4], [2]]), 2)
    array([1., 0.])
    """
    groups = _first_groups(_groups(ranks))
    inside = np.clip(k - groups.ahead, 0, groups.size)
    # Probability that no held-out item falls into the places inside: C(size - inside, held) / C(size, held).
    free = groups.size - inside
    possible = free >= groups.held
    free = np.where(possible, free, groups.held)
    log_none = _log_choose(free, groups.held) - _log_choose(groups.size, groups.held)
    hit = np.where(inside == 0, 0.0, np.where(possible, -np.expm1(np.minimum(log_none, 0)), 1.0))
    return _spread(ranks, groups, hit)


def ndcg(ranks: Ranks, k: int, *, full_ideal: bool = False) -> FloatArray:
    """Return the discounted gain of the first k places over the largest possible gain.

    Parameters
    ----------
    ranks
        Ranks of held-out items.
    k
        Cut-off.
    full_ideal
        Take the gain of k held-out items on top as the largest, even for users who have fewer.

    Examples
    --------
    >>> ndcg(Ranks.from_places([[0, 1], [2]]), 3)
    array([1. , 0.5])
    """
    gains = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])
    size = ranks.tied + 1
    gain = (gains[np.minimum(ranks.ahead + size, k)] - gains[np.minimum(ranks.ahead, k)]) / size
    ideal = gains[k] if full_ideal else gains[np.minimum(ranks.n_held, k)]
    return np.where(ranks.n_held > 0, ranks.per_user(gain) / np.maximum(ideal, 1e-12), np.nan)


def average_precision(ranks: Ranks) -> FloatArray:
    """Return the mean, over a user's held-out items, of the precision at their places.

    Examples
    --------
    >>> average_precision(Ranks.from_places([[0, 3], [1]]))
    array([0.75, 0.5 ])
    """
    groups = _groups(ranks)
    g, m, t = groups.ahead, groups.size, groups.held
    inverse = _harmonic(ranks)[g + m] - _harmonic(ranks)[g]  # sum of 1 / place over the group
    # The p-th place of the group holds a held-out item with probability t / m; the places of the group before it then
    # hold (p - 1) (t - 1) / (m - 1) other held-out items on average.
    others = (t - 1) / np.maximum(m - 1, 1)
    value = t / m * ((groups.before + 1) * inverse + others * (m - (g + 1) * inverse))
    return _per_held(ranks, sums(groups.owner, value, len(ranks.users)))


def reciprocal_rank(ranks: Ranks) -> FloatArray:
    """Return one over the rank of the first held-out item.

    Examples
    --------
    >>> reciprocal_rank(Ranks.from_places([[1, 3], [0]]))
    array([0.5, 1. ])
    """
    groups = _first_groups(_groups(ranks))
    shapes, shape = np.unique(np.stack([groups.ahead, groups.size, groups.held]), axis=1, return_inverse=True)
    values = np.array([_expected_first(*column) for column in shapes.T.tolist()])
    return _spread(ranks, groups, values[shape.ravel()])


def reciprocal_rank_sum(ranks: Ranks) -> FloatArray:
    """Return the sum of one over the rank of every held-out item (the MRR of the paper's text).

    Examples
    --------
    >>> reciprocal_rank_sum(Ranks.from_places([[0, 3], [1]]))
    array([1.25, 0.5 ])
    """
    size = ranks.tied + 1
    harmonic = _harmonic(ranks)
    return ranks.per_user((harmonic[ranks.ahead + size] - harmonic[ranks.ahead]) / size)


def auc(ranks: Ranks) -> FloatArray:
    """Return the share of (held-out, other) pairs of candidates in the right order; NaN without others.

    Examples
    --------
    >>> auc(Ranks.from_places([[0, 1], [5]], n_candidates=11))
    array([1. , 0.5])
    """
    held = ranks.n_held.astype(np.float64)
    ahead = ranks.per_user(ranks.ahead + ranks.tied / 2) - held * (held - 1) / 2  # without other held-out items
    others = ranks.candidates - held
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(others > 0, 1 - ahead / (held * others), np.nan)


class _Groups(NamedTuple):
    """Groups of tied candidates that hold at least one held-out item; one entry per group."""

    owner: IntArray
    ahead: IntArray  # candidates before the group
    size: IntArray  # candidates in the group
    held: IntArray  # held-out items in the group
    before: IntArray  # held-out items of the user before the group


def _groups(ranks: Ranks) -> _Groups:
    order = np.lexsort((ranks.ahead, ranks.owner))
    owner, ahead, size = ranks.owner[order], ranks.ahead[order].astype(np.int64), ranks.tied[order].astype(np.int64) + 1
    first = np.ones(len(order), dtype=bool)
    first[1:] = (owner[1:] != owner[:-1]) | (ahead[1:] != ahead[:-1])
    starts = np.flatnonzero(first)
    held = np.diff(np.append(starts, len(order)))
    return _Groups(owner[starts], ahead[starts], size[starts], held, starts - ranks.indptr[owner[starts]])


def _first_groups(groups: _Groups) -> _Groups:
    first = groups.before == 0
    return _Groups(*(column[first] for column in groups))


def _spread(ranks: Ranks, groups: _Groups, values: FloatArray) -> FloatArray:
    """Return one value per user from one per first group; NaN for users without held-out items."""
    spread = np.full(len(ranks.users), np.nan)
    spread[groups.owner] = values
    return spread


def _per_held(ranks: Ranks, values: FloatArray) -> FloatArray:
    """Return values per user divided by the number of held-out items; NaN for users without any."""
    ratio: FloatArray = np.divide(values, ranks.n_held, out=np.full(len(values), np.nan), where=ranks.n_held > 0)
    return ratio


def _hits(ranks: Ranks, k: int) -> FloatArray:
    size = ranks.tied + 1
    return ranks.per_user(np.clip(k - ranks.ahead, 0, size) / size)


def _harmonic(ranks: Ranks) -> FloatArray:
    """Return the harmonic numbers up to the largest possible rank."""
    last = int((ranks.ahead.astype(np.int64) + ranks.tied + 1).max(initial=0))
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, last + 1))])


def _expected_first(ahead: int, size: int, held: int) -> float:
    """Return the expected reciprocal of the first of ``held`` places, drawn from ``size`` places behind ``ahead``."""
    if size == 1:
        return 1 / (ahead + 1)
    p = np.arange(1, size - held + 1)
    later = np.cumprod((size - p - held + 1) / (size - p))
    chance = held / size * np.concatenate([[1.0], later])
    return float((chance / (ahead + np.arange(1, size - held + 2))).sum())


def _log_choose(n: IntArray, k: IntArray) -> FloatArray:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
