"""Which of a positive's candidates are kept: all, the closest to the user, or one that is similar to the positive."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.random import bits_of, unit

ALL, CLOSEST, SIMILAR = 0, 1, 2

SIMILAR_DRAW = 1 << 19  # number of the draw that picks among similar candidates


@njit(cache=True, inline="always")
def closest(items, scratch, k, thread, n_candidates):
    """Return the place in ``chosen[k]`` of the candidate that is nearest to any of the user's vectors."""
    squares, chosen, near = items.squares, scratch.chosen, scratch.near[thread]
    place = 1
    best = near[0, 1] + squares[chosen[k, 1]]
    for s in range(2, n_candidates + 1):
        distance = near[0, s] + squares[chosen[k, s]]
        if distance < best:
            place, best = s, distance
    return place


@njit
def similar(items, scratch, k, thread, n_candidates, dim, key, position):
    """Return the place of one picked by the inverse density of its cosine with the positive; any, if none is above 0.

    On the sphere in d dimensions a cosine s has density proportional to (1 - s^2)^((d - 3) / 2).
    """
    vectors, squares, chosen, weights = items.vectors, items.squares, scratch.chosen, scratch.weights[thread]
    chance = unit(bits_of(key, position, SIMILAR_DRAW))
    power = np.float64(dim - 3) / 2
    own = squares[chosen[k, 0]]
    largest = -np.inf
    for s in range(n_candidates):
        cross = np.float32(0)
        for at in range(vectors.shape[1]):
            cross += vectors[chosen[k, 0], at] * vectors[chosen[k, 1 + s], at]
        cosine = cross / np.sqrt(max(own * squares[chosen[k, 1 + s]], np.float32(1e-12)))
        weights[s] = -power * np.log(max(1 - cosine * cosine, 1e-6)) if cosine > 0 else -np.inf
        largest = max(largest, weights[s])
    if largest == -np.inf:
        return 1 + min(np.int64(chance * n_candidates), n_candidates - 1)
    total = 0.0
    for s in range(n_candidates):
        weights[s] = np.exp(weights[s] - largest)
        total += weights[s]
    left = chance * total
    last = 1
    for s in range(n_candidates):
        if weights[s] > 0:
            last = 1 + s
            left -= weights[s]
            if left < 0:
                break
    return last
