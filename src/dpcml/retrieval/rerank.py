"""Re-rankers by name: lists for a user's smaller interests, chosen from the candidates that a model scored best.

A re-ranker needs scores, how much each candidate belongs to each of a user's interests, and the shares of these
interests in the history. Where interests come from is not its concern: see `dpcml.retrieval.aspects`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.names import Registry

POOL = 100  # candidates of a short list
STRENGTH = 5.0  # largest bonus at mix=1, in standard deviations of the candidates' scores
FAMILIAR = 0.05  # share in the history at which an interest counts half as known
SMOOTHING = 0.01  # share of the history in a list's shares, so that the divergence is finite (Steck, 2018)


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """The best items of some users, and the interests they belong to.

    Parameters
    ----------
    items, scores
        Best first, shape (users, m); -1 and minus infinity where candidates run out.
    affinity
        How much each candidate belongs to each interest, shape (users, m, interests); rows add up to at most 1.
    shares
        Shares of the interests in the histories, shape (users, interests).

    Examples
    --------
    >>> scores = np.array([[0.9, 0.5, -np.inf]])
    >>> ann = CandidateLists(np.array([[7, 8, -1]]), scores, np.zeros((1, 3, 2)), np.ones((1, 2)))
    >>> ann.relevance.tolist(), ann.standard_scores.round(6).tolist()
    ([[1.0, 0.0, -inf]], [[1.0, -1.0, -inf]])
    """

    items: IntArray
    scores: FloatArray
    affinity: FloatArray
    shares: FloatArray

    @property
    def relevance(self) -> FloatArray:
        """Scores from 0, the last candidate, to 1, the best."""
        there, scores = self._finite()
        low = np.where(there, scores, np.inf).min(axis=1, initial=np.inf, keepdims=True)
        high = np.where(there, scores, -np.inf).max(axis=1, initial=-np.inf, keepdims=True)
        span = np.subtract(high, low, out=np.ones_like(low), where=high > low)
        above = scores - np.where(np.isfinite(low), low, 0)
        return np.asarray(np.where(there, above / span, -np.inf))

    @property
    def standard_scores(self) -> FloatArray:
        """Scores with mean 0 and standard deviation 1 over a user's candidates."""
        there, scores = self._finite()
        count = np.maximum(there.sum(axis=1, keepdims=True), 1)
        apart = np.where(there, scores - scores.sum(axis=1, keepdims=True) / count, 0)
        deviation = np.sqrt((apart**2).sum(axis=1, keepdims=True) / count)
        return np.where(there, apart / np.where(deviation > 0, deviation, 1), -np.inf)

    def _finite(self) -> tuple[BoolArray, FloatArray]:
        there = self.items >= 0
        return there, np.where(there, self.scores, 0).astype(np.float64)


Reranker = Callable[[CandidateLists, int, float], IntArray]
RERANKERS: Registry[Reranker] = Registry("re-ranker")


def pool_size(n: int) -> int:
    """Return how many candidates a list of ``n`` items is chosen from.

    Examples
    --------
    >>> pool_size(10), pool_size(80)
    (100, 160)
    """
    return max(POOL, 2 * n)


def rerank(
    name: str, candidates: CandidateLists, n: int, mix: float, *, by_score: bool = True
) -> tuple[IntArray, FloatArray]:
    """Return lists of ``n`` candidates, chosen by a re-ranker.

    Parameters
    ----------
    name
        A name in `RERANKERS`: ``minority``, ``xquad``, ``calibrated`` or ``mmr``.
    candidates
        The users' best items.
    n
        Length of the lists.
    mix
        From 0, the best scores, to 1.
    by_score
        Sort each list by score, so that the re-ranker decides which items are in it, not their order. NDCG is higher
        than in the order of choice, and recall is the same.

    Returns
    -------
    items, scores
        Shape (users, n), -1 and minus infinity where candidates run out.

    Examples
    --------
    >>> affinity = np.array([[[1, 0], [1, 0], [1, 0], [0, 1]]])
    >>> scores = np.array([[4.0, 3.0, 2.0, 1.0]])
    >>> ann = CandidateLists(np.array([[4, 5, 6, 7]]), scores, affinity, np.array([[0.8, 0.2]]))
    >>> rerank("minority", ann, 2, 0.0)[0].tolist(), rerank("minority", ann, 2, 1.0)[0].tolist()
    ([[4, 5]], [[4, 7]])
    """
    places = RERANKERS[name](candidates, n, mix)
    if by_score:
        places = np.sort(places, axis=1)
    return np.take_along_axis(candidates.items, places, 1), np.take_along_axis(candidates.scores, places, 1)


@RERANKERS.register("minority")
def minority(candidates: CandidateLists, n: int, mix: float) -> IntArray:
    """Choose greedily by score plus a bonus for items of the user's smaller interests.

    The bonus is at most ``5 mix^2`` standard deviations of the candidates' scores. It is that times the
    `minority_weight` of an item, in which each interest c of the list so far counts less: its familiarity is
    multiplied by ``1 - (1 - mix) a_jc`` for each item j that is already in the list, where a are affinities. So a
    little room goes to interests that the list does not serve yet, and much room to all smaller interests: at
    ``mix=1`` no list with as large a sum of weights has better scores.

    Returns
    -------
    IntArray
        Places of the chosen candidates, in the order of choice; shape (users, n).

    Examples
    --------
    >>> affinity = np.array([[[1, 0], [1, 0], [0, 1]]])
    >>> ann = CandidateLists(np.array([[4, 5, 6]]), np.array([[3.0, 2.0, 1.0]]), affinity, np.array([[0.8, 0.2]]))
    >>> minority(ann, 2, 0.5).tolist(), minority(ann, 2, 0.7).tolist(), minority(ann, 2, 1.0).tolist()
    ([[0, 1]], [[0, 2]], [[2, 0]])
    """
    scores, bonus = candidates.standard_scores, STRENGTH * mix**2 * (1 - _typicality(candidates))
    known = candidates.shares.any(axis=0)  # of many categories, a user has few
    relative, familiar = _relative_affinity(candidates)[:, :, known], _familiarity(candidates.shares[:, known])

    def value() -> FloatArray:
        return np.asarray(scores + bonus * _largest(relative, familiar))

    def add(chosen: FloatArray) -> None:
        np.multiply(familiar, 1 - (1 - mix) * chosen[:, known], out=familiar)

    return _greedy(candidates, n, value, add)


def minority_weight(candidates: CandidateLists) -> FloatArray:
    """Return how much each candidate belongs to its user's smaller interests, from 0 to 1; shape (users, m).

    It is ``k (1 - t)``. The typicality t is the largest of ``share / largest share`` over the interests of the item,
    so that items of the largest interest have weight 0. The familiarity k is the largest of ``share / (share + 0.05)``,
    so that items without any interest of the user have weight 0 too. An interest counts in both by the item's affinity
    to it, relative to the item's largest affinity.

    Examples
    --------
    >>> affinity = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]]])
    >>> ann = CandidateLists(np.array([[4, 5, 6, 7]]), np.zeros((1, 4)), affinity, np.array([[0.8, 0.2, 0]]))
    >>> minority_weight(ann).round(6).tolist()
    [[0.0, 0.0, 0.6, 0.0]]
    """
    familiar = _largest(_relative_affinity(candidates), _familiarity(candidates.shares))
    return np.asarray(familiar * (1 - _typicality(candidates)))


def _typicality(candidates: CandidateLists) -> FloatArray:
    """Return the largest share of an item's interests, relative to the user's largest; shape (users, m)."""
    largest = candidates.shares.max(axis=1, initial=0, keepdims=True)
    return _largest(_relative_affinity(candidates), candidates.shares / np.where(largest > 0, largest, 1))


def _familiarity(shares: FloatArray) -> FloatArray:
    """Return how well a user knows each interest, from 0 to 1; shape (users, interests)."""
    return np.asarray(shares / (shares + FAMILIAR), dtype=np.float64)


def _relative_affinity(candidates: CandidateLists) -> FloatArray:
    """Return affinities relative to an item's largest; shape (users, m, interests)."""
    largest = candidates.affinity.max(axis=2, initial=0, keepdims=True)
    return np.asarray(candidates.affinity / np.where(largest > 0, largest, 1))


def _largest(affinity: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the largest product of an item's affinity and the user's weight over all interests; shape (users, m)."""
    return np.asarray((affinity * weights[:, None]).max(axis=2, initial=0))


@RERANKERS.register("xquad")
def xquad(candidates: CandidateLists, n: int, mix: float) -> IntArray:
    """Choose greedily by relevance and by the interests that the list does not cover yet (Santos et al., 2010).

    The value of an item is ``(1 - mix) relevance + mix sum_c share_c a_c prod_j (1 - a_jc)`` over its affinities a_c
    and those of the items j that are already in the list.

    Examples
    --------
    >>> affinity = np.array([[[1, 0], [1, 0], [0, 1]]])
    >>> ann = CandidateLists(np.array([[4, 5, 6]]), np.array([[3.0, 2.0, 1.0]]), affinity, np.array([[0.8, 0.2]]))
    >>> xquad(ann, 2, 0.9).tolist()
    [[0, 2]]
    """
    left = np.array(candidates.shares, dtype=np.float64)
    relevance, affinity = candidates.relevance, candidates.affinity

    def value() -> FloatArray:
        return np.asarray((1 - mix) * relevance + mix * np.einsum("umc,uc->um", affinity, left))

    def add(chosen: FloatArray) -> None:
        np.multiply(left, 1 - chosen, out=left)

    return _greedy(candidates, n, value, add)


@RERANKERS.register("calibrated")
def calibrated(candidates: CandidateLists, n: int, mix: float) -> IntArray:
    """Choose greedily such that the list has the interests in the shares of the history (Steck, 2018).

    The value of an item is ``(1 - mix) relevance - mix KL(history, list with the item)``.

    Examples
    --------
    >>> affinity = np.array([[[1, 0], [1, 0], [0, 1]]])
    >>> ann = CandidateLists(np.array([[4, 5, 6]]), np.array([[3.0, 2.0, 1.0]]), affinity, np.array([[0.5, 0.5]]))
    >>> calibrated(ann, 2, 0.9).tolist()
    [[0, 2]]
    """
    relevance, affinity = candidates.relevance, candidates.affinity
    shares = candidates.shares[:, None, :].astype(np.float64)
    entropy = (shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=2)
    total, length = np.zeros(candidates.shares.shape), 0

    def value() -> FloatArray:
        found = (1 - SMOOTHING) * (total[:, None] + affinity) / (length + 1) + SMOOTHING * shares
        return np.asarray((1 - mix) * relevance - mix * (entropy - (shares * _log(found)).sum(axis=2)))

    def add(chosen: FloatArray) -> None:
        nonlocal length
        np.add(total, chosen, out=total)
        length += 1

    return _greedy(candidates, n, value, add)


@RERANKERS.register("mmr")
def mmr(candidates: CandidateLists, n: int, mix: float) -> IntArray:
    """Choose greedily by relevance and dissimilarity to the list (Carbonell and Goldstein, 1998).

    The value of an item is ``(1 - mix) relevance - mix s``, where s is the largest cosine of its affinities with those
    of an item in the list. The shares of the interests do not count.

    Examples
    --------
    >>> affinity = np.array([[[1, 0], [1, 0], [0, 1]]])
    >>> ann = CandidateLists(np.array([[4, 5, 6]]), np.array([[3.0, 2.0, 1.0]]), affinity, np.array([[0.8, 0.2]]))
    >>> mmr(ann, 2, 0.9).tolist()
    [[0, 2]]
    """
    relevance = candidates.relevance
    length = np.linalg.norm(candidates.affinity, axis=2, keepdims=True)
    units = candidates.affinity / np.where(length > 0, length, 1)
    nearest = np.zeros(candidates.items.shape)

    def add(chosen: FloatArray) -> None:
        size = np.linalg.norm(chosen, axis=1, keepdims=True)
        cosine = np.einsum("umc,uc->um", units, chosen / np.where(size > 0, size, 1))
        np.maximum(nearest, cosine, out=nearest)

    return _greedy(candidates, n, lambda: (1 - mix) * relevance - mix * nearest, add)


def _greedy(
    candidates: CandidateLists, n: int, value: Callable[[], FloatArray], add: Callable[[FloatArray], None]
) -> IntArray:
    """Take the candidate with the largest value, the first of equals, n times; ``add`` gets its affinities."""
    rows, free = np.arange(len(candidates.items)), candidates.items >= 0
    places = np.empty((len(rows), min(n, candidates.items.shape[1])), dtype=np.int64)
    for place in range(places.shape[1]):
        # at mix=1 the relevance of what is not there, minus infinity, has no weight
        with np.errstate(invalid="ignore"):
            values = np.where(free, value(), -np.inf)
        best = values.argmax(axis=1)
        best = np.where(free.any(axis=1), best, (candidates.items < 0).argmax(axis=1))
        places[:, place] = best
        free[rows, best] = False
        add(candidates.affinity[rows, best])
    return places


def _log(values: FloatArray) -> FloatArray:
    return np.asarray(np.log(values, out=np.zeros_like(values), where=values > 0))
