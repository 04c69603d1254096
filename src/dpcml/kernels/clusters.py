"""Clusters of each user's items: spherical k-means with a fixed start, one user after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.utils.arrays import FloatArray, IntArray


def cluster_users(
    indptr: IntArray,
    indices: IntArray,
    points: FloatArray,
    n_clusters: IntArray,
    rounds: int,
    owner: IntArray,
    start: int,
    stop: int,
) -> None:
    """Assign the items of the users ``start`` to ``stop`` to clusters; the largest cluster is number 0.

    The first centre is the mean direction of a user's items. Each further centre starts at the item that all centres so
    far are farthest from. Then assignment and means alternate.

    Parameters
    ----------
    indptr, indices
        Positives of all users as a CSR.
    points
        Unit vectors of all items, shape (items, d), float64.
    n_clusters
        Clusters of each user; a user with fewer items gets one per item.
    rounds
        Alternations of assignment and means.
    owner
        Output: the cluster of each positive.

    Examples
    --------
    >>> owner = np.zeros(3, dtype=np.int64)
    >>> points = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
    >>> cluster_users(np.array([0, 3]), np.arange(3, dtype=np.int32), points, np.array([2]), 5, owner, 0, 1)
    >>> owner.tolist()
    [1, 0, 0]
    """
    most = int(n_clusters[start:stop].max(initial=1))
    longest = int(np.diff(indptr[start : stop + 1]).max(initial=0))
    centres, sums = np.zeros((2, most, points.shape[1]))
    nearest, counts, place = np.empty(longest), np.zeros(most, np.int64), np.zeros(most, np.int64)
    _cluster_users(
        indptr, indices, points, n_clusters, rounds, owner, start, stop, centres, sums, nearest, counts, place
    )


@cached_njit(**PLAIN)
def _cluster_users(
    indptr, indices, points, n_clusters, rounds, owner, start, stop, centres, sums, nearest, counts, place
):
    for user in range(start, stop):
        first, last = indptr[user], indptr[user + 1]
        k = min(n_clusters[user], last - first)
        if k > 0:
            _first_centres(indices, points, first, last, k, centres, nearest)
        for _ in range(rounds if k > 1 else 0):
            _assign(indices, points, first, last, k, centres, sums, counts, owner)
            for c in range(k):
                if counts[c]:
                    _write_direction(sums, c, centres)
        if k > 1:
            _assign(indices, points, first, last, k, centres, sums, counts, owner)
            _sort_by_size(counts, k, place)
        for at in range(first, last):
            owner[at] = place[owner[at]] if k > 1 else 0


@njit(**PLAIN)
def _first_centres(indices, points, first, last, k, centres, nearest):
    """Write the first centres of a user's items ``indices[first:last]``."""
    dim = points.shape[1]
    for j in range(dim):
        centres[0, j] = 0.0
    for at in range(first, last):
        for j in range(dim):
            centres[0, j] += points[indices[at], j]
        nearest[at - first] = -np.inf
    _write_direction(centres, 0, centres)
    for c in range(1, k):
        farthest = 0
        for at in range(first, last):
            cosine = 0.0
            for j in range(dim):
                cosine += points[indices[at], j] * centres[c - 1, j]
            if cosine > nearest[at - first]:
                nearest[at - first] = cosine
            if nearest[at - first] < nearest[farthest]:
                farthest = at - first
        for j in range(dim):
            centres[c, j] = points[indices[first + farthest], j]


@njit(**PLAIN)
def _assign(indices, points, first, last, k, centres, sums, counts, owner):
    """Assign each item to the nearest centre, the first of equally near ones, and sum the items of each."""
    dim = points.shape[1]
    for c in range(k):
        counts[c] = 0
        for j in range(dim):
            sums[c, j] = 0.0
    for at in range(first, last):
        best, best_cosine = 0, -np.inf
        for c in range(k):
            cosine = 0.0
            for j in range(dim):
                cosine += points[indices[at], j] * centres[c, j]
            if cosine > best_cosine:
                best, best_cosine = c, cosine
        owner[at] = best
        counts[best] += 1
        for j in range(dim):
            sums[best, j] += points[indices[at], j]


@njit(**PLAIN)
def _write_direction(vectors, c, out):
    """Write row ``c``, scaled to length 1, to the same row of ``out``."""
    square = 0.0
    for j in range(vectors.shape[1]):
        square += vectors[c, j] * vectors[c, j]
    length = np.sqrt(square)
    if length < 1e-12:
        length = 1e-12
    for j in range(vectors.shape[1]):
        out[c, j] = vectors[c, j] / length


@njit(**PLAIN)
def _sort_by_size(counts, k, place):
    """Write the rank of each cluster by size, the largest first; the earlier one of equally large ones."""
    for c in range(k):
        place[c] = 0
        for other in range(k):
            if counts[other] > counts[c] or (counts[other] == counts[c] and other < c):
                place[c] += 1
