"""Gradients of a batch, summed per row. Each row belongs to one thread, which adds in the order of the batch."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.lanes import LANES, load, splat, store, total
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.owners import GROUPS, group_of, sort_by_group
from dpcml.kernels.steps import fetch_row

NONE, PER_USER, PER_PAIR = 0, 1, 2  # what the bounds on the diversity of a user's vectors hold for


@njit(cache=True, inline="always")
def _slot(table, slots, row, count, touched, gradients, width):
    """Return the slot of a row, a new one of zeros where it has none, and the number of slots.

    What the optimiser will change of a new row is asked for.
    """
    slot = slots[row]
    if slot < 0:
        slot = count
        slots[row] = slot
        touched[slot] = row
        for k in range(0, width, LANES):
            store(gradients, slot, k, splat(np.float32(0)))
        fetch_row(table, row, width)
        count += 1
    return slot, count


@njit(cache=True, inline="always")
def _pull(gradients, slot, mine, row, theirs, other, weight, width):
    """Add the gradient of ``weight / 2`` times the squared distance of two rows."""
    factor = splat(weight)
    for k in range(0, width, LANES):
        difference = load(mine, row, k) - load(theirs, other, k)
        store(gradients, slot, k, load(gradients, slot, k) + factor * difference)


@njit(cache=True, inline="always")
def _pull_apart(gradients, slot, mine, row, theirs, other, weight, apart, at, width):
    """Do what `_pull` does, and keep the difference: the item is pulled back by it when the user has been stepped."""
    factor = splat(weight)
    for k in range(0, width, LANES):
        difference = load(mine, row, k) - load(theirs, other, k)
        store(apart, at, k, difference)
        store(gradients, slot, k, load(gradients, slot, k) + factor * difference)


@njit(cache=True, inline="always")
def _pull_back(gradients, slot, apart, at, weight, width):
    """Add a kept difference times the weight."""
    factor = splat(weight)
    for k in range(0, width, LANES):
        store(gradients, slot, k, load(gradients, slot, k) + factor * load(apart, at, k))


@njit(cache=True, inline="always")
def user_gradient(users, items, scratch, k, count, thread, constants):
    """Add what positive ``k`` of the list asks of its user's vectors; returns how many vectors are touched so far."""
    n_vectors, width, kept = constants
    gradients, touched, slots = scratch.gradients[thread, 0], scratch.touched[thread, 0], scratch.user_slot
    met, nearest, weight, apart = scratch.met, scratch.nearest, scratch.weight, scratch.apart
    user = np.int64(scratch.pairs[k, 0])
    for at in range(k * (kept + 1), (k + 1) * (kept + 1)):
        if weight[at] != 0:
            row = user * n_vectors + nearest[at]
            slot, count = _slot(users, slots, row, count, touched, gradients, width)
            _pull_apart(gradients, slot, users.vectors, row, items.vectors, met[at], weight[at], apart, at, width)
    return count


@njit(**OPTIONS)
def list_met(met, weight, count, groups, starts, listed):
    """List the items that a batch met, by their groups; those that it neither pulls nor pushes come last."""
    for at in range(count):
        groups[at] = group_of(met[at]) if weight[at] != 0 else GROUPS
    sort_by_group(groups, count, starts, listed)


@njit(**OPTIONS)
def item_gradients(items, met, weight, apart, listed, low, high, slots, touched, gradients, width):
    """Sum what a batch asks of the items ``low`` to ``high`` of the list; returns how many different ones they are."""
    count = 0
    for k in range(low, high):
        at = listed[k]
        slot, count = _slot(items, slots, met[at], count, touched, gradients, width)
        _pull_back(gradients, slot, apart, at, -weight[at], width)
    return count


@njit(cache=True, inline="always")
def hold_mean(users, objective, scratch, k, count, thread, constants):
    """Add the gradient of the hinge on half the mean squared distance of the vectors of positive ``k``'s user."""
    n_vectors, width, _ = constants
    gradients, touched, slots = scratch.gradients[thread, 0], scratch.touched[thread, 0], scratch.user_slot
    vectors, squares = users.vectors, users.squares
    first = np.int64(scratch.pairs[k, 0]) * n_vectors
    own = np.float32(0)
    for c in range(n_vectors):
        own += squares[first + c]
    of_sum = splat(np.float32(0))
    for k in range(0, width, LANES):
        summed = load(vectors, first, k)
        for c in range(1, n_vectors):
            summed = summed + load(vectors, first + c, k)
        of_sum = of_sum + summed * summed
    n = np.float32(n_vectors)
    diversity = (n * own - total(of_sum)) / (n * (n - np.float32(1)))
    if diversity < objective.lower or diversity > objective.upper:
        sign = np.float32(-1) if diversity < objective.lower else np.float32(1)
        weight = sign * objective.weight * np.float32(2) / (n * (n - np.float32(1)))
        for a in range(n_vectors):
            slot, count = _slot(users, slots, first + a, count, touched, gradients, width)
            for b in range(n_vectors):
                if a != b:
                    _pull(gradients, slot, vectors, first + a, vectors, first + b, weight, width)
    return count


@njit(cache=True, inline="always")
def hold_pairs(users, objective, scratch, k, count, thread, constants):
    """Add the gradient of the mean over ordered pairs of the hinge on half their squared distance."""
    n_vectors, width, _ = constants
    gradients, touched, slots = scratch.gradients[thread, 0], scratch.touched[thread, 0], scratch.user_slot
    vectors = users.vectors
    first = np.int64(scratch.pairs[k, 0]) * n_vectors
    # An unordered pair stands for two ordered ones; half the square has the difference for its gradient.
    weight = objective.weight * np.float32(2) / np.float32(n_vectors * (n_vectors - 1))
    for a in range(n_vectors):
        for b in range(a):
            square = splat(np.float32(0))
            for k in range(0, width, LANES):
                difference = load(vectors, first + a, k) - load(vectors, first + b, k)
                square = square + difference * difference
            half = total(square) / np.float32(2)
            if half < objective.lower or half > objective.upper:
                push = -weight if half < objective.lower else weight
                one, count = _slot(users, slots, first + a, count, touched, gradients, width)
                other, count = _slot(users, slots, first + b, count, touched, gradients, width)
                _pull(gradients, one, vectors, first + a, vectors, first + b, push, width)
                _pull(gradients, other, vectors, first + b, vectors, first + a, push, width)
    return count
