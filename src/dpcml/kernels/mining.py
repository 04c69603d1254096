"""Mining: which of a user's vectors is nearest to the positive, and which negatives are too near.

The constants (vectors, width) are compiled in; `dpcml.kernels.batches` makes a kernel for each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.lanes import A_LINE, fetch_to_read
from dpcml.kernels.negatives import fetch_positives
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.owners import group_of, sort_by_group
from dpcml.kernels.simd import nearest_distances

ITEMS_AHEAD, USERS_AHEAD = 2, 4  # positives whose vectors are asked for while one is mined


@njit(**OPTIONS)
def list_positives(order, first, size, groups, starts, listed):
    """List the positives of a batch by the groups of their users."""
    for b in range(size):
        groups[b] = group_of(order[first + b, 0])
    sort_by_group(groups, size, starts, listed)


@njit(**OPTIONS)
def open_share(data, order, batch, first, listed, low, high, pairs, opens, met_in):
    """Write down user and item of the positives ``low`` to ``high`` of the list, and which are their user's first.

    The thread that mines a user's positives also sums the user's gradients, while the vectors are still in its cache.
    """
    for k in range(low, high):
        user, item = order[first + listed[k], 0], order[first + listed[k], 1]
        pairs[k, 0], pairs[k, 1] = user, item
        opens[k] = met_in[user] != batch
        met_in[user] = batch
        if opens[k]:
            fetch_positives(data, user)


@njit(cache=True, inline="always")
def fetch_ahead(users, items, scratch, k, low, high, constants):
    """Ask for the vectors that mining will need soon: rows lie scattered, and memory is slow."""
    n_vectors, width, _, n_candidates = constants
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
def measure(users, items, scratch, k, thread, constants):
    """Find the distances of positive ``k`` of the list, and of its candidates, to the user's vectors."""
    n_vectors, width, at_once, _ = constants
    near, user = scratch.near[thread], np.int64(scratch.pairs[k, 0])
    nearest_distances(
        users, user, items.vectors, scratch.chosen, k, scratch.sums[thread], near, n_vectors, width, at_once
    )


@njit(cache=True, inline="always")
def keep(items, objective, scratch, k, first, thread, constants):
    """Note nearest vector and weight of the candidates that are kept, from ``first`` on, then of the positive."""
    n_vectors, _, kept = constants
    chosen, near, squares = scratch.chosen, scratch.near[thread], items.squares
    met, nearest, weight, hinge = scratch.met, scratch.nearest, scratch.weight, scratch.hinge
    item = np.int64(scratch.pairs[k, 1])
    distance = near[0, 0] + squares[item] + objective.margin
    total, pulls = np.float32(0), np.float32(0)
    at = k * (kept + 1)
    for place in range(first, first + kept):
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
