"""One step of the optimiser on every touched row, and back into the ball or onto the sphere."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.lanes import A_LINE, LANES, fetch_to_write, load, root, splat, store, total
from dpcml.kernels.options import OPTIONS

AHEAD = 4  # rows whose numbers are fetched while one is updated


@njit(**OPTIONS)
def step_rows(table, slots, touched, gradients, count, steps, k_th, on_sphere, width):
    """Update rows by Adam, or Adagrad where there are no first moments; free their slots; renew their squared norms.

    ``k_th`` is the number of the batch since training began: all rows share one clock, so a row that is met for the
    first time late takes a longer first step, as it would if all rows were updated with every batch.
    """
    vectors, firsts, seconds = table.vectors, table.first, table.second
    squares, keep_first, keep_second = table.squares, steps.keep_first, steps.keep_second
    with_momentum = len(firsts) > 0
    place = min(k_th, len(steps.rate) - 1)
    rate, epsilon = steps.rate[place], steps.epsilon[place]
    for slot in range(count):
        if slot + AHEAD < count:
            fetch_row(table, touched[slot + AHEAD], width)
        row = touched[slot]
        slots[row] = -1
        if with_momentum:
            square = _adam(
                vectors, firsts, seconds, row, gradients, slot, rate, epsilon, keep_first, keep_second, width
            )
        else:
            square = _adagrad(vectors, seconds, row, gradients, slot, rate, epsilon, width)
        if on_sphere or square > np.float32(1):
            scale = splat(np.float32(1) / np.sqrt(square))
            for k in range(0, width, LANES):
                store(vectors, row, k, load(vectors, row, k) * scale)
            square = np.float32(1)
        squares[row] = square


@njit(cache=True, inline="always")
def fetch_row(table, row, width):
    """Ask for a row and its moments, to be changed soon."""
    for k in range(0, width, A_LINE):
        fetch_to_write(table.vectors, row, k)
        fetch_to_write(table.second, row, k)
        if len(table.first) > 0:
            fetch_to_write(table.first, row, k)


@njit(cache=True, inline="always")
def _adam(vectors, firsts, seconds, row, gradients, slot, rate, epsilon, keep_first, keep_second, width):
    """Take a step with bias-corrected moments (folded into rate and epsilon); returns the squared norm."""
    one = np.float32(1)
    keep_m, take_m = splat(keep_first), splat(one - keep_first)
    keep_v, take_v = splat(keep_second), splat(one - keep_second)
    rates, offset = splat(rate), splat(epsilon)
    square = splat(np.float32(0))
    for k in range(0, width, LANES):
        gradient = load(gradients, slot, k)
        first = keep_m * load(firsts, row, k) + take_m * gradient
        second = keep_v * load(seconds, row, k) + take_v * gradient * gradient
        value = load(vectors, row, k) - rates * first / (root(second) + offset)
        store(firsts, row, k, first)
        store(seconds, row, k, second)
        store(vectors, row, k, value)
        square = square + value * value
    return total(square)


@njit(cache=True, inline="always")
def _adagrad(vectors, seconds, row, gradients, slot, rate, epsilon, width):
    """Take a step divided by the root of all squared gradients so far; returns the squared norm."""
    rates, offset = splat(rate), splat(epsilon)
    square = splat(np.float32(0))
    for k in range(0, width, LANES):
        gradient = load(gradients, slot, k)
        second = load(seconds, row, k) + gradient * gradient
        value = load(vectors, row, k) - rates * gradient / (root(second) + offset)
        store(seconds, row, k, second)
        store(vectors, row, k, value)
        square = square + value * value
    return total(square)
