"""From cross products to the score of the nearest of a user's vectors."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, fastmath={"nnan", "ninf", "nsz", "contract"})
def nearest(cross, user_squares, item_squares, scores, start, stop):
    """Turn inner products into minus the squared distance to the nearest vector of each user.

    Parameters
    ----------
    cross
        Inner products of shape (users, vectors, items).
    user_squares, item_squares
        Squared norms of shapes (users, vectors) and (items,).
    scores
        Output of shape (users, items): ``max_c (2 cross_c - user_squares_c) - item_squares``.
    """
    n_vectors, n_items = cross.shape[1], cross.shape[2]
    for u in range(start, stop):
        out = scores[u]
        for c in range(n_vectors):
            row = cross[u, c]
            square = user_squares[u, c]
            if c == 0:
                for i in range(n_items):
                    out[i] = 2 * row[i] - square
            else:
                for i in range(n_items):
                    out[i] = max(out[i], 2 * row[i] - square)
        for i in range(n_items):
            out[i] -= item_squares[i]
