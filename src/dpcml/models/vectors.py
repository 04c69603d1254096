"""Scores of models that hold several vectors per user and one per item."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.nearest import score_by_nearest
from dpcml.utils.arrays import FloatArray
from dpcml.utils.threads import over_rows

CROSS_BYTES = 8 * 2**20  # inner products held at once: small enough to stay in the cache


def nearest_scores(users: FloatArray, items: FloatArray) -> FloatArray:
    """Return minus the squared distance of every item to the nearest of each user's vectors.

    Parameters
    ----------
    users
        Shape (users, vectors, dimension), float32.
    items
        Shape (items, dimension), float32.

    Returns
    -------
    FloatArray
        Shape (users, items), larger is better.

    Examples
    --------
    >>> ann = np.array([[[0, 0], [3, 4]]], dtype=np.float32)
    >>> nearest_scores(ann, np.array([[0, 1], [3, 4]], dtype=np.float32))
    array([[-1.,  0.]], dtype=float32)
    """
    n_users, n_vectors, dim = users.shape
    scores = np.empty((n_users, len(items)), dtype=np.float32)
    user_squares = np.einsum("ucd,ucd->uc", users, users)
    item_squares = np.einsum("id,id->i", items, items)
    block = max(1, CROSS_BYTES // (4 * n_vectors * max(len(items), 1)))
    for first in range(0, n_users, block):
        some = slice(first, min(first + block, n_users))
        cross = (users[some].reshape(-1, dim) @ items.T).reshape(-1, n_vectors, len(items))
        out, squares = scores[some], user_squares[some]
        over_rows(lambda a, b: score_by_nearest(cross, squares, item_squares, out, a, b), len(out))  # noqa: B023
    return scores
