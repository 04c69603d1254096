"""Mining: which of a user's vectors is nearest to the positive, and which negatives are too near.

The constants (vectors, width, choice) are compiled in; `dpcml.kernels.batches` makes a kernel for each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.lanes import A_LINE, fetch_to_read, fetch_word
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.owners import group_of, sort_by_group
from dpcml.kernels.simd import nearest_distances

ALL, CLOSEST, SIMILAR = 0, 1, 2  # what is kept of the candidates

SIMILAR_DRAW = 1 << 19  # number of the draw that picks among similar candidates
ITEMS_AHEAD, USERS_AHEAD = 2, 4  # positives whose vectors are asked for while one is mined


@njit(**OPTIONS)
def list_positives(data, order, first, size, scratch, thread):
    """List the positives of a batch by the groups of their users."""
    user_of, groups = data.users, scratch.groups[thread]
    for b in range(size):
        groups[b] = group_of(user_of[order[first + b]])
    sort_by_group(groups, size, scratch.starts[thread], scratch.listed[thread])


@njit(**OPTIONS)
def open_share(data, order, batch, first, scratch, low, high, thread):
    """Write down user and item of the positives ``low`` to ``high`` of the list, and which are their user's first.

    The thread that mines a user's positives also sums the user's gradients, while the vectors are still in its cache.
    """
    user_of, item_of, pairs, listed = data.users, data.items, scratch.pairs, scratch.listed[thread]
    filters, filter_start = data.filters, data.filter_start
    opens, met_in = scratch.opens, scratch.met_in
    for k in range(low, high):
        positive = order[first + listed[k]]
        user = user_of[positive]
        pairs[k, 0], pairs[k, 1] = user, item_of[positive]
        opens[k] = met_in[user] != batch
        met_in[user] = batch
        fetch_word(filters, filter_start[user])


@njit(cache=True, inline="always")
def fetch_ahead(users, items, scratch, k, low, high, constants):
    """Ask for the vectors that mining will need soon: rows lie scattered, and memory is slow."""
    n_vectors, width, _, _, n_candidates = constants
    vectors, item_vectors, pairs, chosen = users.vectors, items.vectors, scratch.pairs, scratch.chosen
    if k + USERS_AHEAD < high:
        row = np.int64(pairs[k + USERS_AHEAD, 0]) * n_vectors
        for c in range(n_vectors):
            for at in range(0, width, A_LINE):
                fetch_to_read(vectors, row + c, at)
    if low <= k + ITEMS_AHEAD < high:
        for s in range(n_candidates + 1):
            for at in range(0, width, A_LINE):
                fetch_to_read(item_vectors, chosen[k + ITEMS_AHEAD, s], at)


@njit(cache=True, inline="always")
def mine(users, items, objective, scratch, k, chance, thread, constants):
    """Find the vector of the user that is nearest to positive ``k`` of the list, and its negatives.

    ``chance`` is the random number that picks among similar candidates.
    """
    n_vectors, width, choice, at_once, n_candidates = constants
    chosen, near, pairs = scratch.chosen, scratch.near[thread], scratch.pairs
    vectors, squares = items.vectors, items.squares
    met, nearest, weight, hinge = scratch.met, scratch.nearest, scratch.weight, scratch.hinge
    user, item = np.int64(pairs[k, 0]), np.int64(pairs[k, 1])
    nearest_distances(users, user, vectors, chosen, k, scratch.sums[thread], near, n_vectors, width, at_once)
    distance = near[0, 0] + squares[item] + objective.margin
    if choice == ALL:
        from_place, to_place = 1, n_candidates + 1
    elif choice == CLOSEST:
        from_place = _closest(squares, chosen, k, near, n_candidates)
        to_place = from_place + 1
    else:
        from_place = _similar(
            vectors, squares, chosen, k, n_candidates, width, objective.dim, chance, scratch.weights[thread]
        )
        to_place = from_place + 1
    total, pulls, kept = np.float32(0), np.float32(0), to_place - from_place
    at = k * (kept + 1)
    for place in range(from_place, to_place):
        value = distance - near[0, place] - squares[chosen[k, place]]
        met[at], nearest[at] = chosen[k, place], _winner(near, place, n_vectors)
        weight[at] = np.float32(-2) if value > 0 else np.float32(0)
        pulls -= weight[at]
        if not value <= 0:  # NaN shows in the loss
            total += value
        at += 1
    met[at], nearest[at], weight[at] = item, _winner(near, 0, n_vectors), pulls
    hinge[k] = total


@njit(cache=True, inline="always")
def _winner(near, place, n_vectors):
    best = 0
    for c in range(1, n_vectors):
        if near[1 + c, place] < near[1 + best, place]:
            best = c
    return best


@njit(cache=True, inline="always")
def _closest(squares, chosen, b, near, n_candidates):
    place = 1
    best = near[0, 1] + squares[chosen[b, 1]]
    for s in range(2, n_candidates + 1):
        distance = near[0, s] + squares[chosen[b, s]]
        if distance < best:
            place, best = s, distance
    return place


@njit
def _similar(vectors, squares, chosen, b, n_candidates, width, dim, chance, weights):
    """Pick a candidate by the inverse density of its cosine with the positive; any, where none is above 0.

    On the sphere in d dimensions a cosine s has density proportional to (1 - s^2)^((d - 3) / 2).
    """
    power = np.float64(dim - 3) / 2
    own = squares[chosen[b, 0]]
    largest = -np.inf
    for s in range(n_candidates):
        cross = np.float32(0)
        for k in range(width):
            cross += vectors[chosen[b, 0], k] * vectors[chosen[b, 1 + s], k]
        cosine = cross / np.sqrt(max(own * squares[chosen[b, 1 + s]], np.float32(1e-12)))
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
