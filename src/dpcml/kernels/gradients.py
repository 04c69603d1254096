"""Gradients of a batch, summed per row. Each row belongs to one thread, which adds in the order of the batch.

A row gets a slot in the thread's gradient buffer when it is touched first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN
from dpcml.kernels.optimizer import prefetch_table_row
from dpcml.kernels.partition import GROUPS, group_of, sort_by_group
from dpcml.kernels.simd import LANES, load, multiply_add, splat, total


class Objective(NamedTuple):
    """Hyper-parameters of the objective and its constraints."""

    margin: np.float32
    lower: np.float32  # delta_1
    upper: np.float32  # delta_2
    weight: np.float32  # of the diversity hinge
    per_pair: bool  # apply the diversity hinge to each pair of vectors instead of their mean
    users_on_sphere: bool  # else in the ball; both have radius 1
    items_on_sphere: bool
    dim: int  # of the vectors, without padding
    term_weight: np.float32 = np.float32(1)  # of each negative of a positive


@njit(inline="always")
def diversity_slope(diversity, objective):
    """Return the slope of the DCRS hinge ``max(0, lower - diversity) + max(0, diversity - upper)``: -1, 0 or 1."""
    if diversity < objective.lower:
        return np.float32(-1)
    return np.float32(1) if diversity > objective.upper else np.float32(0)


@njit(inline="always")
def used_vectors(squares, first, n_vectors):
    """Return how many of a user's vectors are used; the others come last and have an infinite squared norm."""
    used = n_vectors
    while squares[first + used - 1] == np.inf:
        used -= 1
    return used


@njit(inline="always")
def _slot(table, slots, row, count, touched, gradients, width):
    """Return the slot of a row and the number of slots; a new slot is filled with zeros, and its row prefetched."""
    slot = slots[row]
    if slot < 0:
        slot = count
        slots[row] = slot
        touched[slot] = row
        for k in range(width):
            gradients[slot, k] = 0
        prefetch_table_row(table, row, width)
        count += 1
    return slot, count


@njit(inline="always")
def _add_difference(gradients, slot, vectors, row, others, other, weight, width):
    """Add the gradient of ``weight / 2`` times the squared distance of two rows."""
    for k in range(width):
        gradients[slot, k] = multiply_add(weight, vectors[row, k] - others[other, k], gradients[slot, k])


@njit(inline="always")
def _add_and_keep_difference(gradients, slot, vectors, row, others, other, weight, kept, at, width):
    """Do what `_add_difference` does and keep the difference: the item's gradient needs it after the user's update."""
    for k in range(width):
        difference = vectors[row, k] - others[other, k]
        kept[at, k] = difference
        gradients[slot, k] = multiply_add(weight, difference, gradients[slot, k])


@njit(inline="always")
def _add_kept(gradients, slot, kept, at, weight, width):
    """Add a kept difference times the weight."""
    for k in range(width):
        gradients[slot, k] = multiply_add(weight, kept[at, k], gradients[slot, k])


@njit(inline="always")
def user_gradient(users, items, work, k, count, thread, constants):
    """Add the terms of positive ``k`` to the gradients of its user's vectors; returns the number of slots."""
    n_vectors, width, n_negatives = constants
    gradients, touched, slots = work.gradients[thread, 0], work.touched[thread, 0], work.user_slot
    term_item, term_vector, term_weight, kept = work.term_item, work.term_vector, work.term_weight, work.differences
    user = np.int64(work.pairs[k, 0])
    for at in range(k * (n_negatives + 1), (k + 1) * (n_negatives + 1)):
        if term_weight[at] != 0:
            row = user * n_vectors + term_vector[at]
            slot, count = _slot(users, slots, row, count, touched, gradients, width)
            _add_and_keep_difference(
                gradients, slot, users.vectors, row, items.vectors, term_item[at], term_weight[at], kept, at, width
            )
    return count


@njit(**PLAIN)
def sort_terms(term_item, term_weight, count, groups, starts, indices):
    """Sort the terms of a batch by the group of their item; terms of weight 0 come last."""
    for at in range(count):
        groups[at] = group_of(term_item[at]) if term_weight[at] != 0 else GROUPS
    sort_by_group(groups, count, starts, indices)


@njit(**PLAIN)
def item_gradients(items, term_item, term_weight, kept, indices, low, high, slots, touched, gradients, width):
    """Sum the item gradients of the sorted terms ``low`` to ``high``; returns the number of slots."""
    count = 0
    for k in range(low, high):
        at = indices[k]
        slot, count = _slot(items, slots, term_item[at], count, touched, gradients, width)
        _add_kept(gradients, slot, kept, at, -term_weight[at], width)
    return count


@njit(inline="always")
def diversity_gradient(users, objective, work, k, count, thread, constants):
    """Add the gradient of the DCRS hinge on half the mean squared distance of the vectors of positive ``k``'s user."""
    n_vectors, width, _ = constants
    gradients, touched, slots = work.gradients[thread, 0], work.touched[thread, 0], work.user_slot
    vectors, squares = users.vectors, users.squares
    first = np.int64(work.pairs[k, 0]) * n_vectors
    used = used_vectors(squares, first, n_vectors)
    if used < 2:
        return count
    own = np.float32(0)
    for c in range(used):
        own += squares[first + c]
    square_of_sum = splat(np.float32(0))
    for k in range(0, width, LANES):
        summed = load(vectors, first, k)
        for c in range(1, used):
            summed = summed + load(vectors, first + c, k)
        square_of_sum = multiply_add(summed, summed, square_of_sum)
    n = np.float32(used)
    diversity = (n * own - total(square_of_sum)) / (n * (n - np.float32(1)))
    slope = diversity_slope(diversity, objective)
    if slope != 0:
        weight = slope * objective.weight * np.float32(2) / (n * (n - np.float32(1)))
        for a in range(used):
            slot, count = _slot(users, slots, first + a, count, touched, gradients, width)
            for b in range(used):
                if a != b:
                    _add_difference(gradients, slot, vectors, first + a, vectors, first + b, weight, width)
    return count


@njit(inline="always")
def pairwise_diversity_gradient(users, objective, work, k, count, thread, constants):
    """Add the gradient of the mean over ordered pairs of the DCRS hinge on half their squared distance."""
    n_vectors, width, _ = constants
    gradients, touched, slots = work.gradients[thread, 0], work.touched[thread, 0], work.user_slot
    vectors = users.vectors
    first = np.int64(work.pairs[k, 0]) * n_vectors
    used = used_vectors(users.squares, first, n_vectors)
    # An unordered pair stands for two ordered ones. The gradient of half the squared distance is the difference.
    weight = objective.weight * np.float32(2) / np.float32(max(used * (used - 1), 1))
    for a in range(used):
        for b in range(a):
            square = splat(np.float32(0))
            for k in range(0, width, LANES):
                difference = load(vectors, first + a, k) - load(vectors, first + b, k)
                square = multiply_add(difference, difference, square)
            slope = diversity_slope(total(square) / np.float32(2), objective)
            if slope != 0:
                one, count = _slot(users, slots, first + a, count, touched, gradients, width)
                other, count = _slot(users, slots, first + b, count, touched, gradients, width)
                _add_difference(gradients, one, vectors, first + a, vectors, first + b, slope * weight, width)
                _add_difference(gradients, other, vectors, first + b, vectors, first + a, slope * weight, width)
    return count
