"""Fold-in: vectors of one new user, trained with fixed item vectors by full-batch Adam."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.kernels.gradients import Objective, diversity_slope
from dpcml.kernels.mining import ALL, SIMILAR, SIMILAR_DRAW
from dpcml.kernels.optimizer import OptimizerSteps
from dpcml.kernels.random import below, bits_of, choose, uniform
from dpcml.kernels.simd import multiply_add
from dpcml.utils.arrays import FloatArray


def fold_in(
    vectors: FloatArray,
    items: FloatArray,
    attraction: FloatArray,
    similar: FloatArray,
    key: np.uint64,
    n_candidates: int,
    n_negatives: int,
    choice: int,
    objective: Objective,
    steps: OptimizerSteps,
) -> float:
    """Train a user's vectors on the liked items and sampled negatives; returns the mean hinge of the last step.

    Parameters
    ----------
    vectors
        The user's vectors, shape (C, d), float32; changed.
    items
        Vectors of the liked items, then of the pool from which negatives are drawn; shape (n_liked + pool, d).
    attraction
        Weight of each liked item's own squared distance; shape (n_liked,).
    similar
        For the choice SIMILAR: sampling weights of the pool's items for each liked item; shape (n_liked, pool).
    key
        Random key of the candidates.
    n_candidates, n_negatives, choice
        Candidates per liked item, how many of them are negatives, and which: ALL, the CLOSEST, the HARDEST some, or one
        that is SIMILAR.
    objective, steps
        `Objective` and `OptimizerSteps` as in training. The diversity hinge counts once per liked item.
    """
    n_vectors, dim = vectors.shape
    columns = np.ascontiguousarray(items.T, dtype=np.float32)
    squares, cross, near = np.zeros((3, len(items)), dtype=np.float32)
    nearest, chosen = np.empty(len(items), dtype=np.int64), np.empty(n_candidates, dtype=np.int64)
    weights = np.empty(n_candidates, dtype=np.float64)
    gradient, first, second = np.zeros((3, n_vectors, dim), dtype=np.float32)
    halves = np.empty((n_vectors, n_vectors), dtype=np.float32)
    hinge: float = _fold_in(
        vectors, items, attraction, similar, key, n_negatives, choice, objective, steps, columns, squares, cross, near,
        nearest, chosen, weights, gradient, first, second, halves,
    )  # fmt: skip
    return hinge


@cached_njit(**PLAIN)
def _fold_in(
    vectors, items, attraction, similar, key, n_negatives, choice, objective, steps, columns, squares, cross, near,
    nearest, chosen, weights, gradient, first, second, halves,
):  # fmt: skip
    n_vectors, dim = vectors.shape
    n_liked, n_candidates = len(attraction), len(chosen)
    pool = len(items) - n_liked
    for i in range(len(items)):
        for k in range(dim):
            squares[i] += items[i, k] ** 2
    hinge = np.float32(0)
    for step in range(len(steps.rate)):
        _assign_items(vectors, columns, squares, cross, near, nearest)
        for c in range(n_vectors):
            for k in range(dim):
                gradient[c, k] = 0
        hinge = np.float32(0)
        for p in range(n_liked):
            place = step * n_liked + p
            if choice == SIMILAR:
                chosen[0] = n_liked + _sample_similar(similar[p], key, place, weights)
            else:
                for s in range(n_candidates):
                    chosen[s] = n_liked + below(bits_of(key, place, s), pool)
                if choice != ALL:
                    _move_nearest(chosen, near, n_negatives)
            weight = attraction[p]
            for s in range(n_negatives):
                excess = objective.margin + near[p] - near[chosen[s]]
                if excess > 0:
                    hinge += objective.term_weight * excess
                    weight += np.float32(2) * objective.term_weight
                    _add_difference(
                        gradient, nearest[chosen[s]], vectors, items, chosen[s], np.float32(-2) * objective.term_weight
                    )
            if weight:
                _add_difference(gradient, nearest[p], vectors, items, p, weight)
        if n_vectors > 1 and objective.weight > 0:
            _add_diversity(gradient, vectors, objective, np.float32(n_liked), halves)
        _adam(vectors, gradient, first, second, steps, step, objective.users_on_sphere)
    return hinge / np.float32(n_liked)


@njit(**PLAIN)
def _assign_items(vectors, columns, squares, cross, near, nearest):
    """Write each item's squared distance to the nearest vector, and the number of that vector.

    Items are in columns, so that SIMD works on eight items at once; four dimensions share a pass over them.
    """
    n_vectors, dim = vectors.shape
    whole = dim - dim % 4
    for c in range(n_vectors):
        own = np.float32(0)
        for k in range(dim):
            own += vectors[c, k] ** 2
        for i in range(len(cross)):
            cross[i] = 0
        for k in range(0, whole, 4):
            a, b, x, y = vectors[c, k], vectors[c, k + 1], vectors[c, k + 2], vectors[c, k + 3]
            for i in range(len(cross)):
                value = multiply_add(a, columns[k, i], cross[i])
                value = multiply_add(b, columns[k + 1, i], value)
                value = multiply_add(x, columns[k + 2, i], value)
                cross[i] = multiply_add(y, columns[k + 3, i], value)
        for k in range(whole, dim):
            for i in range(len(cross)):
                cross[i] = multiply_add(vectors[c, k], columns[k, i], cross[i])
        for i in range(len(cross)):
            distance = multiply_add(np.float32(-2), cross[i], own) + squares[i]
            if c == 0 or distance < near[i]:
                near[i] = distance
                nearest[i] = c


@njit(**PLAIN)
def _move_nearest(chosen, near, count):
    """Move the ``count`` candidates nearest to the user to the front, nearest first."""
    for place in range(count):
        best = place
        for s in range(place + 1, len(chosen)):
            if near[chosen[s]] < near[chosen[best]]:
                best = s
        nearest = chosen[best]
        chosen[best] = chosen[place]
        chosen[place] = nearest


@njit(**PLAIN)
def _sample_similar(pool_weights, key, place, weights):
    """Return one of the candidates, sampled in proportion to its weight; uniformly if all weights are 0."""
    total = 0.0
    for s in range(len(weights)):
        weights[s] = pool_weights[below(bits_of(key, place, s), len(pool_weights))]
        total += weights[s]
    chance = uniform(bits_of(key, place, SIMILAR_DRAW))
    if total == 0:
        chosen = min(np.int64(chance * len(weights)), len(weights) - 1)
    else:
        chosen = choose(weights, len(weights), total, chance)
    return below(bits_of(key, place, chosen), len(pool_weights))


@njit(inline="always")
def _add_difference(gradient, c, vectors, others, other, weight):
    """Add the gradient of ``weight / 2`` times the squared distance of vector ``c`` to another row."""
    for k in range(vectors.shape[1]):
        gradient[c, k] = multiply_add(weight, vectors[c, k] - others[other, k], gradient[c, k])


@njit(**PLAIN)
def _add_diversity(gradient, vectors, objective, times, halves):
    """Add the gradient of the DCRS hinge, on the mean over pairs or on each pair."""
    n = len(vectors)
    for a in range(n):
        halves[a, a] = 0
        for b in range(a):
            halves[a, b] = 0
            for k in range(vectors.shape[1]):
                halves[a, b] += (vectors[a, k] - vectors[b, k]) ** 2 / 2
            halves[b, a] = halves[a, b]
    mean = np.float32(0)
    for a in range(n):
        for b in range(n):
            mean += halves[a, b] / np.float32(n * (n - 1))
    if not objective.per_pair and diversity_slope(mean, objective) == 0:
        return
    weight = times * objective.weight * np.float32(2) / np.float32(n * (n - 1))
    for a in range(n):
        for b in range(n):
            slope = diversity_slope(halves[a, b] if objective.per_pair else mean, objective)
            if a != b and slope != 0:
                _add_difference(gradient, a, vectors, vectors, b, slope * weight)


@njit(**PLAIN)
def _adam(vectors, gradient, first, second, steps, step, on_sphere):
    """Take a step of Adam and project the vectors onto the sphere or into the ball."""
    keep_m, keep_v, one = steps.beta_1, steps.beta_2, np.float32(1)
    take_m, take_v, rate, epsilon = one - keep_m, one - keep_v, steps.rate[step], steps.epsilon[step]
    n_vectors, dim = vectors.shape
    for c in range(n_vectors):
        for k in range(dim):
            slope = gradient[c, k]
            first[c, k] = multiply_add(keep_m, first[c, k], take_m * slope)
            second[c, k] = multiply_add(keep_v, second[c, k], take_v * slope * slope)
            vectors[c, k] -= rate * first[c, k] / (np.sqrt(second[c, k]) + epsilon)
        square = np.float32(0)
        for k in range(dim):  # a separate loop, so that the compiler vectorises the one before
            square = multiply_add(vectors[c, k], vectors[c, k], square)
        if on_sphere or square > one:
            scale = np.sqrt(square) / square
            for k in range(dim):
                vectors[c, k] *= scale
