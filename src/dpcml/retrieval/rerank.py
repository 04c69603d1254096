"""Lists that mix a user's interests, from pure relevance over calibrated shares to equal shares."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.ranking import mix_lists
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.threads import over_rows


def targets(shares: FloatArray, mix: float) -> FloatArray:
    """Return the share of a list that each interest should get.

    Up to ``mix=0.5`` these are the shares in the history; above, they move to equal shares for all interests with liked
    items. Without a history, all interests count.

    Parameters
    ----------
    shares
        Shares of the interests in the histories, shape (users, C).
    mix
        From 0 to 1, as for ``recommend``.

    Examples
    --------
    >>> targets(np.array([[0.8, 0.2, 0.0]]), 0.5).tolist()
    [[0.8, 0.2, 0.0]]
    >>> targets(np.array([[0.8, 0.2, 0.0]]), 1.0).tolist()
    [[0.5, 0.5, 0.0]]
    """
    has = (shares > 0) | ~shares.any(axis=1, keepdims=True)
    equal = has / has.sum(axis=1, keepdims=True)
    towards_equal = max(0.0, 2 * mix - 1)
    calibrated = np.where(shares.any(axis=1, keepdims=True), shares, equal)
    return np.asarray((1 - towards_equal) * calibrated + towards_equal * equal)


def mixed_lists(
    queues: IntArray, scores: FloatArray, shares: FloatArray, n: int, mix: float
) -> tuple[IntArray, FloatArray]:
    """Build each user's list from the best items of each interest, greedily.

    At each place every interest offers its next item. An item is chosen by its score and by how far its interest is
    behind its target share; ``mix`` moves the weight from the first to the second, which alone counts from 0.5 on.
    Scores are scaled by the difference between the best and the n-th best. The list is then sorted by score: ``mix``
    decides which items are in it, not their order.

    Parameters
    ----------
    queues, scores
        Items of each interest and their scores, best first, -1 where they end; shape (users, C, m), each item once.
    shares
        Shares of the interests in the histories; shape (users, C).
    n
        Length of the lists.
    mix
        From 0 to 1, as for ``recommend``.

    Returns
    -------
    items, scores
        Shape (users, n), best first; -1 and minus infinity where items run out.

    Examples
    --------
    >>> queues = np.array([[[0, 1, 2], [7, 8, 9]]])
    >>> scores = np.array([[[-0.1, -0.2, -0.3], [-0.5, -0.6, -0.7]]], dtype=np.float32)
    >>> for mix in (0.0, 0.5, 1.0):
    ...     print(mixed_lists(queues, scores, np.array([[0.7, 0.3]]), 4, mix)[0].tolist())
    [[0, 1, 2, 7]]
    [[0, 1, 2, 7]]
    [[0, 1, 7, 8]]
    """
    n_users, n_vectors, length = queues.shape
    best = np.empty((n_users, n), dtype=np.int64)
    best_scores = np.empty((n_users, n), dtype=np.float32)
    wanted, scale = targets(shares, mix), _spread(scores.reshape(n_users, n_vectors * length), n)
    given = queues, scores, wanted, min(1.0, 2 * mix), scale, best, best_scores
    over_rows(lambda a, b: mix_lists(*given, a, b), n_users)
    order = np.argsort(-best_scores, axis=1, kind="stable")
    return np.take_along_axis(best, order, 1), np.take_along_axis(best_scores, order, 1)


def _spread(scores: FloatArray, n: int) -> FloatArray:
    """Return how far each user's n-th best score, or the last there is, is below the best; 1 where there is none."""
    ordered = -np.sort(-scores, axis=1)[:, :n].astype(np.float64)
    found = np.isfinite(ordered).sum(axis=1)
    last = np.take_along_axis(ordered, np.maximum(found - 1, 0)[:, None], axis=1)[:, 0]
    spread = np.subtract(ordered[:, 0], last, out=np.ones(len(ordered)), where=found > 0)
    return np.maximum(spread, 1e-9)
