"""Laying out the order of an epoch; each function is called for parts of the work by several threads."""

from __future__ import annotations

from numba import njit

from dpcml.kernels.lanes import fetch_word

AHEAD = 16  # runs whose items are asked for while one is laid out


@njit(nogil=True, cache=True)
def gather(values, places, out, start, stop):
    """Write the value at each of the places from ``start`` to ``stop``."""
    for k in range(start, stop):
        out[k] = values[places[k]]


@njit(nogil=True, cache=True)
def lay_out(users, items, starts, runs, ends, out, start, stop):
    """Write user and items of the runs from ``start`` to ``stop``; ``ends`` tells where each ends in the output."""
    for k in range(start, stop):
        if k + 2 * AHEAD < stop:
            fetch_word(starts, runs[k + 2 * AHEAD])
            fetch_word(users, runs[k + 2 * AHEAD])
        if k + AHEAD < stop:
            fetch_word(items, starts[runs[k + AHEAD]])
        run = runs[k]
        first = starts[run]
        length = starts[run + 1] - first
        for j in range(length):
            at = ends[k] - length + j
            out[at, 0], out[at, 1] = users[run], items[first + j]
