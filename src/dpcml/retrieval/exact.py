"""Exact search: scores of all items, and the best items of each user, in blocks of bounded memory on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.kernels.nearest import nearest_of_pairs, nearest_top_k, score_by_nearest
from dpcml.kernels.ranking import top_k
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray, repeats_first
from dpcml.utils.threads import over_rows

SCORE_BYTES = 64 * 2**20  # scores held at once
NEAREST_BYTES = 8 * 2**20  # inner products that `nearest_scores` holds at once
CROSS_BYTES = 2 * 2**20  # inner products held at once: small enough to stay in the cache
VECTORS_AT_ONCE = 256  # rows of a matrix product; more do not make it faster
LONG = 512  # longer lists are sorted, not inserted into

_Tile = tuple[FloatArray, FloatArray, FloatArray, IntArray]  # products, squares of users and items, positions
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
    block = max(1, NEAREST_BYTES // (4 * n_vectors * max(len(items), 1)))
    for first in range(0, n_users, block):
        some = slice(first, min(first + block, n_users))
        cross = (users[some].reshape(-1, dim) @ items.T).reshape(-1, n_vectors, len(items))
        out, squares = scores[some], user_squares[some]
        over_rows(lambda a, b: score_by_nearest(cross, squares, item_squares, out, a, b), len(out))  # noqa: B023
    return scores


def nearest_vector(users: FloatArray, items: FloatArray, rows: IntArray, columns: IntArray) -> IntArray:
    """Return the index of the nearest of a user's vectors for pairs of a user and an item; ties go to the first.

    Parameters
    ----------
    users
        Shape (users, vectors, dimension).
    items
        Shape (items, dimension).
    rows, columns
        User and item of each pair; shape (pairs,).

    Examples
    --------
    >>> ann = np.array([[[0, 0], [3, 4]]], dtype=np.float32)
    >>> nearest_vector(ann, np.array([[0, 1], [3, 3]], dtype=np.float32), np.array([0, 0]), np.array([0, 1])).tolist()
    [0, 1]
    """
    found = np.empty(len(rows), dtype=np.int64)
    n_vectors, dim = users.shape[1:]
    vectors = users.reshape(-1, dim)
    over_rows(lambda a, b: nearest_of_pairs(vectors, n_vectors, items, rows, columns, found, a, b), len(rows))
    return found


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


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The items that are candidates of anybody.

    Parameters
    ----------
    vectors
        Shape (candidates, d), float32.
    squares
        Their squared norms.
    positions
        Where they stand among all items, ascending.

    Examples
    --------
    >>> films = Catalogue.of(np.array([[0, 2], [3, 4], [0, 1]], dtype=np.float32))
    >>> films.only(np.array([1, 2])).squares.tolist()
    [25.0, 1.0]
    """

    vectors: FloatArray
    squares: FloatArray
    positions: IntArray

    @classmethod
    def of(cls, items: FloatArray) -> Catalogue:
        """Return the catalogue of all items."""
        return cls(items, _squares(items), np.arange(len(items), dtype=np.int64))

    def only(self, places: IntArray) -> Catalogue:
        """Return some of these items, by ascending places in this catalogue."""
        return Catalogue(self.vectors[places], self.squares[places], self.positions[places])


def best_by_distance(users: FloatArray, catalogue: Catalogue, n: int, seen: Seen) -> tuple[IntArray, FloatArray]:
    """Return the items nearest to any of each user's vectors; scores are minus squared distances.

    Items go by in tiles: a matrix product for some users at once, whose results are merged while they are in the cache.

    Parameters
    ----------
    users
        Vectors of shape (users, C, d), float32.
    catalogue
        The candidates.
    n
        How many items for each user.
    seen
        CSR of items that are no candidates of a user, by their positions among all items.

    Returns
    -------
    best, scores
        As `best_by_scores`.

    Examples
    --------
    >>> ann = np.array([[[0, 0], [3, 4]]], dtype=np.float32)
    >>> films = np.array([[0, 2], [3, 4], [0, 1]], dtype=np.float32)
    >>> best, scores = best_by_distance(ann, Catalogue.of(films), 2, nothing_seen(1))
    >>> best.tolist(), scores.tolist()
    ([[1, 2]], [[0.0, -1.0]])
    """
    best, best_scores = _empty((len(users), n))

    def merge(first: int, last: int, mine: Seen, tiles: Iterator[_Tile]) -> None:
        if n > LONG:
            scores = np.concatenate([_scores(*tile).max(axis=1) for tile in tiles], axis=1)
            best[first:last], best_scores[first:last] = _sorted(scores, catalogue.positions, n, mine)
            return
        found = np.zeros(last - first, dtype=np.int64)
        for tile in tiles:
            given = *tile, *mine, found, best[first:last], best_scores[first:last]
            over_rows(lambda a, b: nearest_top_k(*given, a, b), last - first)  # noqa: B023

    _walk(users, catalogue, seen, merge)
    return best, best_scores


def _walk(
    users: FloatArray, catalogue: Catalogue, seen: Seen, merge: Callable[[int, int, Seen, Iterator[_Tile]], None]
) -> None:
    """Call ``merge`` for blocks of users, with the tiles of all items against them."""
    n_users, n_vectors, dim = users.shape
    step = max(1, VECTORS_AT_ONCE // n_vectors)
    for first in range(0, n_users, step):
        last = min(first + step, n_users)
        some = np.ascontiguousarray(users[first:last]).reshape(-1, dim)
        own = _squares(some).reshape(-1, n_vectors)
        own[repeats_first(some.reshape(-1, n_vectors, dim))] = np.inf  # equal vectors differ in the last bit of `cross`
        merge(first, last, (seen[0][first : last + 1], seen[1]), _tiles(some, own, catalogue))


def _tiles(some: FloatArray, own: FloatArray, catalogue: Catalogue) -> Iterator[_Tile]:
    size = max(1, CROSS_BYTES // (4 * len(some)))
    for low in range(0, len(catalogue.vectors), size):
        part = slice(low, low + size)
        cross = (some @ catalogue.vectors[part].T).reshape(*own.shape, -1)
        yield cross, own, catalogue.squares[part], catalogue.positions[part]


def _scores(cross: FloatArray, own: FloatArray, squares: FloatArray, positions: IntArray) -> FloatArray:
    """Return minus the squared distance to each vector; shape (users, C, tile)."""
    return np.asarray(2 * cross - own[:, :, None] - squares)


def _empty(shape: tuple[int, int]) -> tuple[IntArray, FloatArray]:
    return np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf, dtype=np.float32)


def _top(scores: FloatArray, users: IntArray, n: int, seen: Seen) -> tuple[IntArray, FloatArray]:
    if n > LONG:
        mine = seen[0][users[0] : users[-1] + 2], seen[1]
        return _sorted(scores, np.arange(scores.shape[1]), n, mine)
    best, best_scores = np.empty((len(users), n), np.int64), np.empty((len(users), n), np.float32)
    over_rows(lambda a, b: top_k(scores, users, *seen, best, best_scores, a, b), len(users))
    return best, best_scores


def _sorted(scores: FloatArray, positions: IntArray, n: int, seen: Seen) -> tuple[IntArray, FloatArray]:
    """Return the best of each row by sorting all of it; of equal scores, the lower position first."""
    best, best_scores = _empty((len(scores), n))
    for u, row in enumerate(scores):
        mine = slice(*seen[0][u : u + 2])
        left = ~np.isin(positions, seen[1][mine]) & (row > -np.inf)
        order = np.flatnonzero(left)
        order = order[np.argsort(-row[order], kind="stable")][:n]
        best[u, : len(order)], best_scores[u, : len(order)] = positions[order], row[order]
    return best, best_scores


def _squares(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("rd,rd->r", vectors, vectors))


@dataclass(frozen=True)
class VectorScorer:
    """Scores of given vectors, of shapes (users, C, d) and (items, d)."""

    users: FloatArray
    items: FloatArray

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        vectors = self.users[users]
        missing = self.items.shape[1] - vectors.shape[2]
        return nearest_scores(np.pad(vectors, ((0, 0), (0, 0), (0, missing))), self.items)
