"""Scores by the nearest of a user's vectors: ``max_c (2 <u_c, v> - |u_c|^2) - |v|^2``, and the nearest items."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.compilation import NO_NAN, PLAIN, cached_njit
from dpcml.kernels.ranking import insert
from dpcml.kernels.sampling import is_positive
from dpcml.kernels.simd import LANES, load, multiply_add, splat, total

CHUNK = 256  # items that are skipped together if none scores above the last of the list


@cached_njit(**{**PLAIN, "fastmath": NO_NAN})
def score_by_nearest(cross, user_squares, item_squares, scores, start, stop):
    """Compute minus the squared distance of each item to the nearest of a user's vectors, from inner products.

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


@cached_njit(**PLAIN)
def nearest_of_pairs(users, n_vectors, items, rows, columns, found, start, stop):
    """Find the nearest of a user's vectors for pairs of a user and an item; ties go to the first.

    It sums squared differences, not inner products: equal vectors of a user have equal distances to the last bit.

    Parameters
    ----------
    users, n_vectors
        Vectors of all users, shape (users * vectors, d), and how many each user has.
    items
        Vectors of shape (items, d).
    rows, columns
        User and item of each pair; shape (pairs,).
    found
        Output of shape (pairs,).
    """
    dim = users.shape[1]
    whole = dim - dim % LANES
    for p in range(start, stop):
        item, least = columns[p], np.float32(np.inf)
        for c in range(n_vectors):
            vector = rows[p] * n_vectors + c
            sums = splat(np.float32(0))
            for k in range(0, whole, LANES):
                apart = load(users, vector, k) - load(items, item, k)
                sums = multiply_add(apart, apart, sums)
            distance = total(sums)
            for k in range(whole, dim):
                rest = users[vector, k] - items[item, k]
                distance = multiply_add(rest, rest, distance)
            if c == 0 or distance < least:
                least = distance
                found[p] = c


@cached_njit(nogil=True, fastmath=NO_NAN)
def nearest_top_k(cross, user_squares, item_squares, columns, seen_ptr, seen, found, best, best_scores, start, stop):
    """Merge a tile of items into the top n of each user; ties go to the lower position.

    Parameters
    ----------
    cross
        Inner products of shape (users, vectors, tile).
    user_squares, item_squares
        Squared norms of shapes (users, vectors) and (tile,).
    columns
        Positions of the tile's items, ascending; shape (tile,).
    seen_ptr, seen
        CSR of items that are not ranked, ascending within each user.
    found
        Number of items each user has so far; changed.
    best, best_scores
        Positions and scores of shape (users, n), best first; changed.
    """
    n_vectors, n_items = cross.shape[1], cross.shape[2]
    n = best.shape[1]
    two = np.float32(2)  # a Python 2 would turn the arithmetic into float64
    # Two buffers in turn: an update in place would be compiled to masked stores, which are slow.
    buffer = np.empty((2, CHUNK), dtype=np.float32)
    for u in range(start, stop):
        for first in range(0, n_items, CHUNK):
            size = min(CHUNK, n_items - first)
            for c in range(n_vectors):
                row, square = cross[u, c, first : first + size], user_squares[u, c]
                before, scores = buffer[1 - c % 2], buffer[c % 2]
                if c == 0:
                    for i in range(size):
                        scores[i] = two * row[i] - square
                else:
                    for i in range(size):
                        scores[i] = max(before[i], two * row[i] - square)
            scores, squares = buffer[(n_vectors - 1) % 2], item_squares[first : first + size]
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
