"""Vectors of somebody new, against items that stay where they are."""

from __future__ import annotations

import numpy as np

from dpcml.arrays import FloatArray

ROUNDS = 10  # of k-means


def start_vectors(liked: FloatArray, n_vectors: int) -> FloatArray:
    """Return unit vectors in the middle of groups of liked items: spherical k-means with a fixed start.

    The first centre is the mean direction; each further one starts at the item that all others are farthest from.

    Parameters
    ----------
    liked
        Vectors of the liked items, shape (items, d).
    n_vectors
        How many centres; where items are fewer, some centres are the same.

    Examples
    --------
    >>> liked = np.array([[1, 0], [0.9, 0], [0, 1]], dtype=np.float32)
    >>> start_vectors(liked, 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    directions = unit(liked)
    centres = unit(directions.mean(axis=0, keepdims=True))
    while len(centres) < n_vectors:
        nearest = (directions @ centres.T).max(axis=1)
        centres = np.concatenate([centres, directions[[nearest.argmin()]]])
    for _ in range(ROUNDS):
        owner = (directions @ centres.T).argmax(axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, owner, directions)
        there = np.linalg.norm(sums, axis=1) > 1e-6
        centres = np.where(there[:, None], unit(sums), centres)
    return np.asarray(centres, dtype=np.float32)


def unit(rows: FloatArray) -> FloatArray:
    """Return rows of norm 1; rows of zeros stay zero.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12))
