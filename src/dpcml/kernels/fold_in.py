"""Vectors of one user, trained against items that do not move: full batches, so that a few dozen steps suffice."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.choosing import ALL, SIMILAR, SIMILAR_DRAW
from dpcml.kernels.random import below, bits_of, unit

FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(nogil=True, cache=True, fastmath=FAST)
def fold_in(vectors, items, n_liked, similar, key, n_candidates, choice, objective, steps):
    """Move a user's vectors towards the liked items and away from drawn negatives; returns the mean hinge at the end.

    Parameters
    ----------
    vectors
        The user's, of shape (C, d), float32; changed.
    items
        Vectors of the liked items, then of the pool from which negatives are drawn; shape (n_liked + pool, d).
    n_liked
        How many of them are liked.
    similar
        For the choice SIMILAR: the chances of the pool's items as negatives of each liked one; shape (n_liked, pool).
    key
        Of the draws.
    n_candidates, choice
        Candidates per liked item, and which of them are negatives: ALL, the CLOSEST, or one that is SIMILAR.
    objective, steps
        As in training; there are as many steps as rates, and each counts the diversity once per liked item.
    """
    n_vectors, dim = vectors.shape
    pool = len(items) - n_liked
    columns = np.empty((dim, len(items)), dtype=np.float32)
    squares = np.zeros(len(items), dtype=np.float32)
    for i in range(len(items)):
        for k in range(dim):
            columns[k, i] = items[i, k]
            squares[i] += items[i, k] ** 2
    cross = np.empty(len(items), dtype=np.float32)
    near, winner = np.empty(len(items), dtype=np.float32), np.empty(len(items), dtype=np.int64)
    weights = np.empty(n_candidates, dtype=np.float64)
    first, second = np.zeros((2, n_vectors, dim), dtype=np.float32)
    hinge = np.float32(0)
    for step in range(len(steps.rate)):
        _find_winners(vectors, columns, squares, cross, near, winner)
        gradient = np.zeros((n_vectors, dim), dtype=np.float32)
        hinge = np.float32(0)
        for p in range(n_liked):
            place = step * n_liked + p
            closest, active = -1, 0
            if choice == SIMILAR:
                closest = n_liked + _similar(similar[p], key, place, weights)
            for s in range(n_candidates):
                if choice == SIMILAR:
                    break
                item = n_liked + below(bits_of(key, place, s), pool)
                if choice == ALL:
                    excess = objective.margin + near[p] - near[item]
                    if excess > 0:
                        hinge += excess
                        active += 1
                        _pull(gradient, winner[item], vectors, items, item, np.float32(-2))
                elif closest < 0 or near[item] < near[closest]:
                    closest = item
            if closest >= 0:
                excess = objective.margin + near[p] - near[closest]
                if excess > 0:
                    hinge += excess
                    active += 1
                    _pull(gradient, winner[closest], vectors, items, closest, np.float32(-2))
            if active:
                _pull(gradient, winner[p], vectors, items, p, np.float32(2 * active))
        if n_vectors > 1 and objective.weight > 0:
            _spread(gradient, vectors, objective, np.float32(n_liked))
        _adam(vectors, gradient, first, second, steps, step, objective.users_on_sphere)
    return hinge / np.float32(n_liked)


@njit(cache=True, fastmath=FAST)
def _find_winners(vectors, columns, squares, cross, near, winner):
    """Write each item's squared distance to the nearest vector, and which that is.

    Items stand in columns, so that eight of them are worked on at once, and four numbers of each share a pass.
    """
    n_vectors, dim = vectors.shape
    whole = dim - dim % 4
    for c in range(n_vectors):
        own = np.float32(0)
        for k in range(dim):
            own += vectors[c, k] ** 2
        cross[:] = 0
        for k in range(0, whole, 4):
            a, b, x, y = vectors[c, k], vectors[c, k + 1], vectors[c, k + 2], vectors[c, k + 3]
            for i in range(len(cross)):
                cross[i] += a * columns[k, i] + b * columns[k + 1, i] + x * columns[k + 2, i] + y * columns[k + 3, i]
        for k in range(whole, dim):
            for i in range(len(cross)):
                cross[i] += vectors[c, k] * columns[k, i]
        for i in range(len(cross)):
            distance = own - 2 * cross[i] + squares[i]
            if c == 0 or distance < near[i]:
                near[i] = distance
                winner[i] = c


@njit(cache=True)
def _similar(chances, key, place, weights):
    """Return one of some candidates of the pool, by its chance; any, where none has one."""
    total = 0.0
    for s in range(len(weights)):
        weights[s] = chances[below(bits_of(key, place, s), len(chances))]
        total += weights[s]
    chance = unit(bits_of(key, place, SIMILAR_DRAW))
    left, chosen = chance * total, 0
    if total == 0:
        chosen = min(np.int64(chance * len(weights)), len(weights) - 1)
    else:
        for s in range(len(weights)):
            if weights[s] > 0:
                chosen = s
                left -= weights[s]
                if left < 0:
                    break
    return below(bits_of(key, place, chosen), len(chances))


@njit(cache=True, fastmath=FAST, inline="always")
def _pull(gradient, c, vectors, others, other, weight):
    """Add the gradient of ``weight / 2`` times the squared distance of vector ``c`` to another row."""
    for k in range(vectors.shape[1]):
        gradient[c, k] += weight * (vectors[c, k] - others[other, k])


@njit(cache=True, fastmath=FAST)
def _spread(gradient, vectors, objective, times):
    """Add the gradient of the diversity hinge, of the mean over pairs or of each pair."""
    n = len(vectors)
    halves = np.zeros((n, n), dtype=np.float32)
    mean = np.float32(0)
    for a in range(n):
        for b in range(n):
            for k in range(vectors.shape[1]):
                halves[a, b] += (vectors[a, k] - vectors[b, k]) ** 2 / 2
            mean += halves[a, b] / np.float32(n * (n - 1))
    weight = times * objective.weight * np.float32(2) / np.float32(n * (n - 1))
    for a in range(n):
        for b in range(n):
            half = halves[a, b] if objective.per_pair else mean
            if a != b and (half < objective.lower or half > objective.upper):
                _pull(gradient, a, vectors, vectors, b, -weight if half < objective.lower else weight)


@njit(cache=True, fastmath=FAST)
def _adam(vectors, gradient, first, second, steps, step, on_sphere):
    """Take a step (rate and epsilon hold the bias correction), and go back onto the sphere or into the ball."""
    keep_first, keep_second, one = steps.keep_first, steps.keep_second, np.float32(1)
    for c in range(len(vectors)):
        square = np.float32(0)
        for k in range(vectors.shape[1]):
            first[c, k] = keep_first * first[c, k] + (one - keep_first) * gradient[c, k]
            second[c, k] = keep_second * second[c, k] + (one - keep_second) * gradient[c, k] ** 2
            vectors[c, k] -= steps.rate[step] * first[c, k] / (np.sqrt(second[c, k]) + steps.epsilon[step])
            square += vectors[c, k] ** 2
        if on_sphere or square > one:
            vectors[c] *= one / np.sqrt(square)
