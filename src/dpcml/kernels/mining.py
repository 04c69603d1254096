"""Mining: distances of a positive and its candidates to the user's vectors, and the selection of negatives.

The number of vectors and their width are compile-time constants, see `dpcml.kernels.minibatch`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN
from dpcml.kernels.partition import group_of, sort_by_group
from dpcml.kernels.random import bits_of, choose, uniform
from dpcml.kernels.sampling import confidence_of, prefetch_positives
from dpcml.kernels.simd import FLOATS_PER_LINE, nearest_distances, prefetch_row

ALL, CLOSEST, SIMILAR, HARDEST = 0, 1, 2, 3  # negative selection: which candidates become negatives
SIMILAR_DRAW = 1 << 19  # number of the random draw that selects a similar candidate

ITEMS_AHEAD, USERS_AHEAD = 2, 4  # positives whose vectors are prefetched


@njit(**PLAIN)
def sort_positives(order, first, size, groups, starts, indices):
    """Sort the positives of a batch by the group of their user."""
    for b in range(size):
        groups[b] = group_of(order[first + b, 0])
    sort_by_group(groups, size, starts, indices)


@njit(**PLAIN)
def read_share(data, order, batch, first, indices, low, high, pairs, is_first, last_batch):
    """Write user and item of the sorted positives ``low`` to ``high``, and whether each is its user's first.

    The thread that mines a user's positives also sums the user's gradients, while the vectors are in its cache.
    """
    for k in range(low, high):
        user, item = order[first + indices[k], 0], order[first + indices[k], 1]
        pairs[k, 0], pairs[k, 1] = user, item
        is_first[k] = last_batch[user] != batch
        last_batch[user] = batch
        if is_first[k]:
            prefetch_positives(data, user)


@njit(inline="always")
def prefetch_ahead(users, items, work, k, low, high, constants):
    """Prefetch the vectors of the next positives, which are scattered over memory."""
    n_vectors, width, _, n_candidates = constants
    vectors, item_vectors, pairs, chosen = users.vectors, items.vectors, work.pairs, work.chosen
    if k + USERS_AHEAD < high:
        row = np.int64(pairs[k + USERS_AHEAD, 0]) * n_vectors
        for c in range(n_vectors):
            for column in range(0, width, FLOATS_PER_LINE):
                prefetch_row(vectors, row + c, column)
    if low <= k + ITEMS_AHEAD < high:
        for s in range(n_candidates + 1):
            for column in range(0, width, FLOATS_PER_LINE):
                prefetch_row(item_vectors, chosen[k + ITEMS_AHEAD, s], column)


@njit(inline="always")
def measure(users, items, work, k, thread, constants):
    """Compute the distances of positive ``k`` and its candidates to the user's vectors."""
    n_vectors, width, at_once, _ = constants
    near, user = work.near[thread], np.int64(work.pairs[k, 0])
    nearest_distances(users, user, items.vectors, work.chosen, k, work.sums[thread], near, n_vectors, width, at_once)


@njit(inline="always")
def select_closest(items, work, k, thread, n_candidates):
    """Return the column in ``chosen[k]`` of the candidate that is nearest to any of the user's vectors."""
    squares, chosen, near = items.squares, work.chosen, work.near[thread]
    column = 1
    best = near[0, 1] + squares[chosen[k, 1]]
    for s in range(2, n_candidates + 1):
        distance = near[0, s] + squares[chosen[k, s]]
        if distance < best:
            column, best = s, distance
    return column


@njit(inline="always")
def select_hardest(items, work, k, thread, n_candidates, n_negatives, n_vectors):
    """Move the candidates nearest to any of the user's vectors to the columns from 1 on, nearest first."""
    squares, chosen, near = items.squares, work.chosen, work.near[thread]
    for place in range(1, n_negatives + 1):
        column = place
        best = near[0, place] + squares[chosen[k, place]]
        for s in range(place + 1, n_candidates + 1):
            distance = near[0, s] + squares[chosen[k, s]]
            if distance < best:
                column, best = s, distance
        if column != place:
            item = chosen[k, place]
            chosen[k, place] = chosen[k, column]
            chosen[k, column] = item
            for c in range(n_vectors + 1):
                distance = near[c, place]
                near[c, place] = near[c, column]
                near[c, column] = distance
    return 1


@njit
def select_similar(items, work, k, thread, n_candidates, dim, key, position):
    """Return the column of a candidate sampled by the inverse density of its cosine with the positive.

    On the sphere in d dimensions a cosine s has density proportional to (1 - s^2)^((d - 3) / 2). Candidates with a
    cosine of at most 0 have probability 0; if all have, the draw is uniform.
    """
    vectors, squares, chosen, weights = items.vectors, items.squares, work.chosen, work.weights[thread]
    chance = uniform(bits_of(key, position, SIMILAR_DRAW))
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
    return 1 + choose(weights, n_candidates, total, chance)


@njit(inline="always")
def write_terms(items, data, objective, work, k, first, thread, constants):
    """Write the gradient terms of positive ``k``: one per negative, from column ``first`` on, then the positive's.

    A term has an item, the user's vector nearest to it, and a weight: -2 for a negative within the margin, 2 per such
    negative for the positive, 0 for none; all times the confidence of the positive.
    """
    n_vectors, _, n_negatives = constants
    chosen, near, squares = work.chosen, work.near[thread], items.squares
    term_item, term_vector, term_weight, hinge = work.term_item, work.term_vector, work.term_weight, work.hinge
    user, item = np.int64(work.pairs[k, 0]), np.int64(work.pairs[k, 1])
    confidence = confidence_of(data, user, item)
    each = objective.term_weight * confidence
    distance = near[0, 0] + squares[item] + objective.margin
    loss, positive_weight = np.float32(0), data.attraction[item] * confidence
    at = k * (n_negatives + 1)
    for column in range(first, first + n_negatives):
        value = distance - near[0, column] - squares[chosen[k, column]]
        term_item[at], term_vector[at] = chosen[k, column], _nearest_vector(near, column, n_vectors)
        term_weight[at] = np.float32(-2) * each if value > 0 else np.float32(0)
        positive_weight -= term_weight[at]
        if not value <= 0:  # so that NaN shows in the loss
            loss += each * value
        at += 1
    term_item[at], term_vector[at], term_weight[at] = item, _nearest_vector(near, 0, n_vectors), positive_weight
    hinge[k] = loss


@njit(inline="always")
def _nearest_vector(near, column, n_vectors):
    best = 0
    for c in range(1, n_vectors):
        if near[1 + c, column] < near[1 + best, column]:
            best = c
    return best
