"""One step of the optimiser on every touched row, and back into the ball or onto the sphere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from dpcml.kernels.lanes import A_LINE, LANES, fetch_to_write, load, root, splat, store, total
from dpcml.kernels.options import OPTIONS

AHEAD = 4  # rows whose numbers are fetched while one is updated


@njit(cache=True, inline="always")
def fetch_row(table, row, width):
    """Ask for a row and its moments, to be changed soon."""
    for k in range(0, width, A_LINE):
        fetch_to_write(table.vectors, row, k)
    for k in range(0, table.moments.shape[1], A_LINE):
        fetch_to_write(table.moments, row, k)


@njit(cache=True, inline="always")
def _adam(table, row, gradients, slot, steps, place, width):
    """Take a step with bias-corrected moments (folded into rate and epsilon); returns the squared norm."""
    vectors, moments = table.vectors, table.moments
    one = np.float32(1)
    keep_m, take_m = splat(steps.keep_first), splat(one - steps.keep_first)
    keep_v, take_v = splat(steps.keep_second), splat(one - steps.keep_second)
    rates, offset = splat(steps.rate[place]), splat(steps.epsilon[place])
    square = splat(np.float32(0))
    for k in range(0, width, LANES):
        gradient = load(gradients, slot, k)
        first = keep_m * load(moments, row, k) + take_m * gradient
        second = keep_v * load(moments, row, width + k) + take_v * gradient * gradient
        value = load(vectors, row, k) - rates * first / (root(second) + offset)
        store(moments, row, k, first)
        store(moments, row, width + k, second)
        store(vectors, row, k, value)
        square = square + value * value
    return total(square)


@njit(cache=True, inline="always")
def _adagrad(table, row, gradients, slot, steps, place, width):
    """Take a step divided by the root of all squared gradients so far; returns the squared norm."""
    vectors, moments = table.vectors, table.moments
    rates, offset = splat(steps.rate[place]), splat(steps.epsilon[place])
    square = splat(np.float32(0))
    for k in range(0, width, LANES):
        gradient = load(gradients, slot, k)
        second = load(moments, row, k) + gradient * gradient
        value = load(vectors, row, k) - rates * gradient / (root(second) + offset)
        store(moments, row, k, second)
        store(vectors, row, k, value)
        square = square + value * value
    return total(square)


def _stepper(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that updates rows by a step, frees their slots and renews their squared norms."""

    @njit(**OPTIONS)
    def step_rows(table, slots, touched, gradients, count, steps, k_th, on_sphere, width):
        """Update ``touched[:count]``, with the gradients in their slots.

        ``k_th`` is the number of the batch since training began: all rows share one clock, so a row that is met for
        the first time late takes a longer first step, as it would if all rows were updated with every batch.
        """
        vectors, squares = table.vectors, table.squares
        place = min(k_th, len(steps.rate) - 1)
        for slot in range(count):
            if slot + AHEAD < count:
                fetch_row(table, touched[slot + AHEAD], width)
            row = touched[slot]
            slots[row] = -1
            square = step(table, row, gradients, slot, steps, place, width)
            if on_sphere or square > np.float32(1):
                scale = splat(np.float32(1) / np.sqrt(square))
                for k in range(0, width, LANES):
                    store(vectors, row, k, load(vectors, row, k) * scale)
                square = np.float32(1)
            squares[row] = square

    kernel: Callable[..., Any] = step_rows
    return kernel


step_by_adam, step_by_adagrad = _stepper(_adam), _stepper(_adagrad)
