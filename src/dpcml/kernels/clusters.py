"""Clusters of each user's items: spherical k-means with a fixed start, one user after the other."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.compilation import cached_njit


@cached_njit(nogil=True)
def cluster_users(indptr, indices, points, n_clusters, rounds, owner, start, stop):
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
    """
    dim, most = points.shape[1], 1
    for user in range(start, stop):
        most = max(most, n_clusters[user])
    centres, sums = np.zeros((most, dim)), np.zeros((most, dim))
    counts, place = np.zeros(most, np.int64), np.zeros(most, np.int64)
    for user in range(start, stop):
        first, last = indptr[user], indptr[user + 1]
        k = min(n_clusters[user], last - first)
        if k > 0:
            _start(indices, points, first, last, k, centres)
        for _ in range(rounds if k > 1 else 0):
            _assign(indices, points, first, last, k, centres, sums, counts, owner)
            for c in range(k):
                if counts[c]:
                    centres[c] = sums[c] / max(np.sqrt((sums[c] ** 2).sum()), 1e-12)
        if k > 1:
            _assign(indices, points, first, last, k, centres, sums, counts, owner)
            order = np.argsort(-counts[:k], kind="mergesort")
            for c in range(k):
                place[order[c]] = c
        for at in range(first, last):
            owner[at] = place[owner[at]] if k > 1 else 0


@cached_njit()
def _start(indices, points, first, last, k, centres):
    """Write the first centres of a user's items ``indices[first:last]``."""
    dim = points.shape[1]
    centres[:k] = 0
    for at in range(first, last):
        centres[0] += points[indices[at]]
    centres[0] /= max(np.sqrt((centres[0] ** 2).sum()), 1e-12)
    nearest = np.full(last - first, -np.inf)
    for c in range(1, k):
        farthest = 0
        for at in range(first, last):
            cosine = 0.0
            for j in range(dim):
                cosine += points[indices[at], j] * centres[c - 1, j]
            nearest[at - first] = max(nearest[at - first], cosine)
            if nearest[at - first] < nearest[farthest]:
                farthest = at - first
        centres[c] = points[indices[first + farthest]]


@cached_njit()
def _assign(indices, points, first, last, k, centres, sums, counts, owner):
    """Assign each item to the nearest centre, the first of equally near ones, and sum the items of each."""
    dim = points.shape[1]
    sums[:k] = 0
    counts[:k] = 0
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
        sums[best] += points[indices[at]]
