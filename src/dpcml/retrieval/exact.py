"""The best items of users, exactly: in blocks of bounded memory, on all threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from dpcml.arrays import BoolArray, FloatArray, IntArray
from dpcml.kernels.nearest_top import nearest_top
from dpcml.kernels.ranking import top
from dpcml.threads import over_rows

SCORE_BYTES = 64 * 2**20  # scores held at once
CROSS_BYTES = 2 * 2**20  # inner products held at once: small enough to stay in the cache
VECTORS_AT_ONCE = 256  # rows of a matrix product; more do not make it faster
LONG = 512  # longer lists are sorted, not inserted into

Seen = tuple[IntArray, IntArray]  # indptr, indices: items that are no candidates


def nothing_seen(n_users: int) -> Seen:
    """Return the CSR of users who have seen nothing.

    Examples
    --------
    >>> nothing_seen(2)[0].tolist()
    [0, 0, 0]
    """
    return np.zeros(n_users + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)


def seen_of(likes: sparse.csr_array) -> Seen:
    """Return the CSR of likes as kernels take it."""
    return likes.indptr.astype(np.int64), likes.indices.astype(np.int32)


def best_by_scores(
    score: Callable[[int, int], FloatArray], n_users: int, n: int, seen: Seen, allowed: BoolArray
) -> tuple[IntArray, FloatArray]:
    """Return the best items of each user from scores of all items.

    Parameters
    ----------
    score
        Scores of users ``first`` to ``last``, shape (last - first, items), larger is better.
    n_users, n
        How many users, and how many items for each.
    seen
        CSR of items that are no candidates of a user.
    allowed
        Items that are candidates of anybody; shape (items,).

    Returns
    -------
    best, scores
        Positions and scores of shape (users, n), best first, -1 and minus infinity where candidates run out.

    Examples
    --------
    >>> fixed = np.array([[0.1, 0.9, 0.5]], dtype=np.float32)
    >>> best, scores = best_by_scores(lambda a, b: fixed[a:b], 1, 2, nothing_seen(1), np.array([True, False, True]))
    >>> best.tolist()
    [[2, 0]]
    """
    best = np.empty((n_users, n), dtype=np.int64)
    best_scores = np.empty((n_users, n), dtype=np.float32)
    block = max(1, SCORE_BYTES // (4 * max(len(allowed), 1)))
    for first in range(0, n_users, block):
        last = min(first + block, n_users)
        scores = np.ascontiguousarray(score(first, last), dtype=np.float32)
        if not allowed.all():
            scores = np.where(allowed, scores, np.float32(-np.inf))
        best[first:last], best_scores[first:last] = _top(scores, np.arange(first, last), n, seen)
    return best, best_scores


def best_by_distance(
    users: FloatArray,
    items: FloatArray,
    n: int,
    seen: Seen,
    *,
    columns: IntArray | None = None,
    item_squares: FloatArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """Return the items nearest to any of each user's vectors; scores are minus squared distances.

    Items go by in tiles: a matrix product for some users at once, whose results are merged while they are in the cache.

    Parameters
    ----------
    users, items
        Vectors of shapes (users, C, d) and (items, d), float32.
    n
        How many items for each user.
    seen
        CSR of items that are no candidates of a user.
    columns
        Positions of the only candidates, ascending; all items by default.
    item_squares
        Squared norms of all items, if they are known already.

    Returns
    -------
    best, scores
        As `best_by_scores`.

    Examples
    --------
    >>> ann = np.array([[[0, 0], [3, 4]]], dtype=np.float32)
    >>> films = np.array([[0, 2], [3, 4], [0, 1]], dtype=np.float32)
    >>> best, scores = best_by_distance(ann, films, 2, nothing_seen(1))
    >>> best.tolist(), scores.tolist()
    ([[1, 2]], [[0.0, -1.0]])
    """
    if columns is not None:
        items = items[columns]
    squares = _squares(items) if item_squares is None else item_squares if columns is None else item_squares[columns]
    positions = np.arange(len(items), dtype=np.int64) if columns is None else columns.astype(np.int64)
    n_users, n_vectors, dim = users.shape
    best = np.full((n_users, n), -1, dtype=np.int64)
    best_scores = np.full((n_users, n), -np.inf, dtype=np.float32)
    if not len(items) or not n_users:
        return best, best_scores
    step = max(1, VECTORS_AT_ONCE // n_vectors)
    for first in range(0, n_users, step):
        last = min(first + step, n_users)
        some = np.ascontiguousarray(users[first:last]).reshape(-1, dim)
        own = _squares(some).reshape(-1, n_vectors)
        mine = seen[0][first : last + 1], seen[1]
        if n > LONG:
            near = np.empty((last - first, len(items)), dtype=np.float32)
            _fill_scores(some, own, items, squares, near)
            best[first:last], best_scores[first:last] = _sorted(near, positions, n, mine)
            continue
        found = np.zeros(last - first, dtype=np.int64)
        tile = max(1, CROSS_BYTES // (4 * len(some)))
        out = best[first:last], best_scores[first:last]
        for low in range(0, len(items), tile):
            part = slice(low, low + tile)
            cross = (some @ items[part].T).reshape(last - first, n_vectors, -1)
            given = own, squares[part], positions[part], *mine, found, *out
            over_rows(lambda a, b: nearest_top(cross, *given, a, b), last - first)  # noqa: B023
    return best, best_scores


def _fill_scores(some: FloatArray, own: FloatArray, items: FloatArray, squares: FloatArray, near: FloatArray) -> None:
    n_users, n_vectors = own.shape
    tile = max(1, CROSS_BYTES // (4 * len(some)))
    for low in range(0, len(items), tile):
        part = slice(low, low + tile)
        cross = (some @ items[part].T).reshape(n_users, n_vectors, -1)
        near[:, part] = (2 * cross - own[:, :, None]).max(axis=1) - squares[part]


def _top(scores: FloatArray, users: IntArray, n: int, seen: Seen) -> tuple[IntArray, FloatArray]:
    if n > LONG:
        mine = seen[0][users[0] : users[-1] + 2], seen[1]
        return _sorted(scores, np.arange(scores.shape[1]), n, mine)
    best, best_scores = np.empty((len(users), n), np.int64), np.empty((len(users), n), np.float32)
    over_rows(lambda a, b: top(scores, users, *seen, best, best_scores, a, b), len(users))
    return best, best_scores


def _sorted(scores: FloatArray, positions: IntArray, n: int, seen: Seen) -> tuple[IntArray, FloatArray]:
    """Return the best of each row by sorting all of it; of equal scores, the lower position first."""
    best = np.full((len(scores), n), -1, dtype=np.int64)
    best_scores = np.full((len(scores), n), -np.inf, dtype=np.float32)
    for u, row in enumerate(scores):
        left = ~np.isin(positions, seen[1][seen[0][u] : seen[0][u + 1]]) & (row > -np.inf)
        order = np.flatnonzero(left)
        order = order[np.argsort(-row[order], kind="stable")][:n]
        best[u, : len(order)], best_scores[u, : len(order)] = positions[order], row[order]
    return best, best_scores


def _squares(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("rd,rd->r", vectors, vectors))
