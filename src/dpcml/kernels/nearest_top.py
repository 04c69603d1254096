"""The nearest items of users, from one tile of inner products after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.negatives import is_positive
from dpcml.kernels.ranking import insert

CHUNK = 256  # items whose scores are compared with the last of the list before any of them is looked at


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "contract"})
def nearest_top(cross, user_squares, item_squares, columns, seen_ptr, seen, found, best, best_scores, start, stop):
    """Merge the items of a tile into the best of each user; of equal scores, the lower position comes first.

    Parameters
    ----------
    cross
        Inner products of shape (users, vectors, tile).
    user_squares, item_squares
        Squared norms of shapes (users, vectors) and (tile,).
    columns
        Positions of the tile's items, ascending; shape (tile,).
    seen_ptr, seen
        CSR of items that are no candidates, ascending within each user.
    found
        How many items each user has so far; changed.
    best, best_scores
        Positions and scores of shape (users, n), best first; changed.
    """
    n_vectors, n_items = cross.shape[1], cross.shape[2]
    n = best.shape[1]
    two = np.float32(2)  # a plain 2 would make everything float64
    # Two rows in turn: the larger of a number and what is in its place would be written with a mask, which is slow.
    room = np.empty((2, CHUNK), dtype=np.float32)
    for u in range(start, stop):
        for first in range(0, n_items, CHUNK):
            size = min(CHUNK, n_items - first)
            for c in range(n_vectors):
                row, square = cross[u, c, first : first + size], user_squares[u, c]
                before, scores = room[1 - c % 2], room[c % 2]
                if c == 0:
                    for i in range(size):
                        scores[i] = two * row[i] - square
                else:
                    for i in range(size):
                        scores[i] = max(before[i], two * row[i] - square)
            scores, squares = room[(n_vectors - 1) % 2], item_squares[first : first + size]
            last, above = best_scores[u, n - 1], 0
            for i in range(size):
                scores[i] -= squares[i]
                above += scores[i] > last
            if found[u] == n and not above:
                continue
            for i in range(size):
                if found[u] == n and scores[i] <= best_scores[u, n - 1]:
                    continue
                item = columns[first + i]
                if not is_positive(seen, seen_ptr[u], seen_ptr[u + 1], item):
                    insert(best, best_scores, u, found[u], item, scores[i])
                    found[u] = min(found[u] + 1, n)


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "contract"})
def nearest_queues(cross, user_squares, item_squares, columns, seen_ptr, seen, found, best, best_scores, start, stop):
    """Merge the items of a tile into the best of each of a user's vectors: those that are nearest to that vector.

    Takes what `nearest_top` takes, but ``found``, ``best`` and ``best_scores`` have a row for each vector, of shapes
    (users * vectors,) and (users * vectors, n).
    """
    n_vectors, n_items = cross.shape[1], cross.shape[2]
    n, two = best.shape[1], np.float32(2)
    for u in range(start, stop):
        for i in range(n_items):
            winner, score = 0, two * cross[u, 0, i] - user_squares[u, 0]
            for c in range(1, n_vectors):
                other = two * cross[u, c, i] - user_squares[u, c]
                if other > score:
                    winner, score = c, other
            score -= item_squares[i]
            row = u * n_vectors + winner
            if found[row] == n and score <= best_scores[row, n - 1]:
                continue
            if not is_positive(seen, seen_ptr[u], seen_ptr[u + 1], columns[i]):
                insert(best, best_scores, row, found[row], columns[i], score)
                found[row] = min(found[row] + 1, n)
