"""Adam and Adagrad on the rows that a batch has touched, and the projection onto the ball or the sphere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.kernels.simd import (
    FLOATS_PER_LINE,
    LANES,
    load,
    multiply_add,
    prefetch_row_for_write,
    splat,
    sqrt,
    store,
    total,
)
from dpcml.utils.arrays import FloatArray, IntArray

ROWS_AHEAD = 4  # rows that are prefetched


class EmbeddingTable(NamedTuple):
    """Trained vectors, one per row, with the optimizer's moments."""

    vectors: FloatArray  # (rows, width) float32, padded with zeros beyond the dimension
    squares: FloatArray  # (rows,) squared norms
    moments: FloatArray  # (rows, 2 * width) for Adam, first then second; (rows, width) for Adagrad


class OptimizerSteps(NamedTuple):
    """Learning rate and epsilon of each step, and the decay of the moments."""

    rate: FloatArray  # (steps,) float32; further steps take the last
    epsilon: FloatArray  # (steps,) float32, added to the square root of the second moment
    beta_1: np.float32
    beta_2: np.float32

    @classmethod
    def adam(cls, rates: FloatArray, k: IntArray) -> OptimizerSteps:
        """Return the steps number ``k``, from 1 on, of Adam, with its bias correction folded into rate and epsilon.

        Examples
        --------
        >>> [round(float(rate), 4) for rate in OptimizerSteps.adam(np.full(2, 0.1), np.array([1, 10**6])).rate]
        [0.0316, 0.1]
        """
        beta_1, beta_2 = 0.9, 0.999
        correction = np.sqrt(1 - beta_2**k)
        rate, epsilon = rates * correction / (1 - beta_1**k), 1e-8 * correction
        return cls(rate.astype(np.float32), epsilon.astype(np.float32), np.float32(beta_1), np.float32(beta_2))

    @classmethod
    def adagrad(cls, rates: FloatArray) -> OptimizerSteps:
        """Return steps of Adagrad.

        Examples
        --------
        >>> OptimizerSteps.adagrad(np.full(2, 0.5)).rate.tolist()
        [0.5, 0.5]
        """
        none = np.float32(0)
        return cls(rates.astype(np.float32), np.full(len(rates), 1e-10, np.float32), none, none)


@njit(inline="always")
def prefetch_table_row(table, row, width):
    """Prefetch a row and its moments for writing."""
    for k in range(0, width, FLOATS_PER_LINE):
        prefetch_row_for_write(table.vectors, row, k)
    for k in range(0, table.moments.shape[1], FLOATS_PER_LINE):
        prefetch_row_for_write(table.moments, row, k)


@njit(inline="always")
def _adam(table, row, gradients, slot, steps, k_th, width):
    """Update a row by Adam and return its squared norm."""
    vectors, moments = table.vectors, table.moments
    one = np.float32(1)
    keep_m, take_m = splat(steps.beta_1), splat(one - steps.beta_1)
    keep_v, take_v = splat(steps.beta_2), splat(one - steps.beta_2)
    rate, epsilon = splat(steps.rate[k_th]), splat(steps.epsilon[k_th])
    square = splat(np.float32(0))
    for k in range(0, width, LANES):
        gradient = load(gradients, slot, k)
        first = multiply_add(keep_m, load(moments, row, k), take_m * gradient)
        second = multiply_add(keep_v, load(moments, row, width + k), take_v * gradient * gradient)
        value = load(vectors, row, k) - rate * first / (sqrt(second) + epsilon)
        store(moments, row, k, first)
        store(moments, row, width + k, second)
        store(vectors, row, k, value)
        square = multiply_add(value, value, square)
    return total(square)


@njit(inline="always")
def _adagrad(table, row, gradients, slot, steps, k_th, width):
    """Update a row by Adagrad and return its squared norm."""
    vectors, moments = table.vectors, table.moments
    rate, epsilon = splat(steps.rate[k_th]), splat(steps.epsilon[k_th])
    square = splat(np.float32(0))
    for k in range(0, width, LANES):
        gradient = load(gradients, slot, k)
        second = multiply_add(gradient, gradient, load(moments, row, k))
        value = load(vectors, row, k) - rate * gradient / (sqrt(second) + epsilon)
        store(moments, row, k, second)
        store(vectors, row, k, value)
        square = multiply_add(value, value, square)
    return total(square)


def _row_updater(update: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that updates all touched rows by an update rule and projects them."""

    @njit(**PLAIN)
    def update_rows(table, slots, touched, gradients, count, steps, k_th, on_sphere, width):
        """Update the rows ``touched[:count]`` with the gradients in their slots, and free the slots.

        ``k_th`` counts batches since training began, for all rows. A row that is touched for the first time late takes
        a longer first step, as it would if all rows were updated with every batch.
        """
        vectors, squares = table.vectors, table.squares
        k_th = min(k_th, len(steps.rate) - 1)
        for slot in range(count):
            if slot + ROWS_AHEAD < count:
                prefetch_table_row(table, touched[slot + ROWS_AHEAD], width)
            row = touched[slot]
            slots[row] = -1
            square = update(table, row, gradients, slot, steps, k_th, width)
            if on_sphere or square > np.float32(1):
                scale = splat(np.sqrt(square) / square)  # NaN where the square overflows, which training reports
                for k in range(0, width, LANES):
                    store(vectors, row, k, load(vectors, row, k) * scale)
                square = np.float32(1)
            squares[row] = square

    kernel: Callable[..., Any] = update_rows
    return kernel


update_by_adam, update_by_adagrad = _row_updater(_adam), _row_updater(_adagrad)


@cached_njit(**PLAIN)
def move_average(average, values, weight, start, stop):
    """Move the rows ``start`` to ``stop`` of an average towards new values by a weight."""
    for row in range(start, stop):
        for k in range(average.shape[1]):
            average[row, k] += weight * (values[row, k] - average[row, k])
