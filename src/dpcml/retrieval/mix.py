"""Lists over interests, with a dial from pure relevance to equal service of all interests."""

from __future__ import annotations

import numpy as np

from dpcml.arrays import FloatArray, IntArray


def targets(shares: FloatArray, mix: float) -> FloatArray:
    """Return the part of a list that each interest should get.

    Up to the middle of the dial these are the shares in the history; from there on they move to equal parts for all
    interests that have any. Without a history, all interests count.

    Examples
    --------
    >>> targets(np.array([0.8, 0.2, 0.0]), 0.5).tolist()
    [0.8, 0.2, 0.0]
    >>> targets(np.array([0.8, 0.2, 0.0]), 1.0).tolist()
    [0.5, 0.5, 0.0]
    """
    has = shares > 0 if shares.any() else np.ones(len(shares), dtype=bool)
    equal = has / has.sum()
    beyond = max(0.0, 2 * mix - 1)
    return np.asarray((1 - beyond) * (shares if shares.any() else equal) + beyond * equal)


def mixed_list(
    queues: IntArray, scores: FloatArray, shares: FloatArray, n: int, mix: float
) -> tuple[IntArray, FloatArray]:
    """Build one list from the best items of each interest, greedily.

    At each place the interests offer their next item. What counts is its score, and how far its interest is behind its
    part of the list; the dial moves the weight from the first to the second, which alone counts from 0.5 on.

    Parameters
    ----------
    queues
        Items of each interest, best first, -1 where it has no more; shape (C, m), each item once.
    scores
        Their scores, larger is better.
    shares
        Of the interests in the history; shape (C,).
    n
        Length of the list.
    mix
        The dial, from 0 to 1.

    Returns
    -------
    items, scores
        Shape (n,), in the order of choice; -1 and minus infinity where items run out.

    Examples
    --------
    >>> queues, scores = np.array([[0, 1, 2], [7, 8, 9]]), -np.array([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]])
    >>> for mix in (0.0, 0.5, 1.0):
    ...     print(mixed_list(queues, scores, np.array([0.7, 0.3]), 3, mix)[0].tolist())
    [0, 1, 2]
    [0, 7, 1]
    [0, 7, 1]
    """
    wanted, weight = targets(shares, mix), min(1.0, 2 * mix)
    items, chosen = np.full(n, -1, dtype=np.int64), np.full(n, -np.inf, dtype=np.float32)
    heads, taken = np.zeros(len(queues), dtype=np.int64), np.zeros(len(queues))
    scale = _spread(scores[queues >= 0], n)
    for place in range(n):
        inside = np.minimum(heads, queues.shape[1] - 1)
        offered = scores[np.arange(len(queues)), inside]
        left = (heads < queues.shape[1]) & (queues[np.arange(len(queues)), inside] >= 0)
        if not left.any():
            break
        behind = wanted * (place + 1) - taken
        value = (1 - weight) * (offered - offered[left].max()) / scale + weight * behind
        c = int(np.where(left, value, -np.inf).argmax())
        items[place], chosen[place] = queues[c, heads[c]], offered[c]
        heads[c], taken[c] = heads[c] + 1, taken[c] + 1
    return items, chosen


def _spread(scores: FloatArray, n: int) -> float:
    """Return how far the n-th best score is below the best: the unit in which scores are compared with places."""
    best = np.sort(scores)[::-1][:n]
    return max(float(best[0] - best[-1]), 1e-9) if len(best) else 1.0
