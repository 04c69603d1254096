"""Which thread works on which users and items of a batch: rows go in groups, and groups go to whoever is free.

A row's gradients are summed by one thread in an order that does not depend on the number of threads, so it does not
matter which one it is. Each thread begins with a share of its own, large enough to find most of its rows still in its
cache; what is left is handed out in ever smaller shares, so that all finish together even if one is slower.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.options import OPTIONS
from dpcml.utils.arrays import IntArray

GROUPS = 64
AT_FIRST = 0.8  # of the groups are in the threads' first shares


@njit(cache=True, inline="always")
def group_of(row):
    """Return the group of a user or an item, of `GROUPS` that a hash makes about equally large.

    Sixteen neighbours are in one group, so that threads do not write to the same cache line.
    """
    spread = ((np.uint64(row) >> np.uint64(4)) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    return np.int64((spread * np.uint64(GROUPS)) >> np.uint64(32))


def groups_of(rows: IntArray) -> IntArray:
    """Return the group of each row.

    Examples
    --------
    >>> groups_of(np.array([0, 15, 16, 10**9])).tolist()
    [0, 0, 39, 11]
    """
    groups: IntArray = group_of.py_func(rows).astype(np.uint8)  # not compiled, it takes arrays
    return groups


@njit(**OPTIONS)
def sort_by_group(groups, count, starts, listed):
    """List the numbers 0 to ``count - 1`` group by group, ascending within one; ``starts`` tells where each begins.

    Group number `GROUPS` is for what nobody works on.
    """
    for group in range(GROUPS + 1):
        starts[group] = 0
    for k in range(count):
        starts[groups[k]] += 1
    end = 0
    for group in range(GROUPS + 1):
        size = starts[group]
        starts[group] = end
        end += size
    for k in range(count):
        listed[starts[groups[k]]] = k
        starts[groups[k]] += 1
    for group in range(GROUPS, 0, -1):  # each start has moved to the next one
        starts[group] = starts[group - 1]
    starts[0] = 0


def shares(n_threads: int) -> IntArray:
    """Return the group with which each share of a batch begins, and `GROUPS`; the first shares are the threads' own.

    Examples
    --------
    >>> shares(1).tolist()
    [0, 64]
    >>> shares(2).tolist()
    [0, 25, 50, 53, 55, 57, 58, 59, 60, 61, 62, 63, 64]
    """
    if n_threads == 1:
        return np.array([0, GROUPS])
    begins = [int(AT_FIRST * GROUPS / n_threads) * thread for thread in range(n_threads + 1)]
    while begins[-1] < GROUPS:
        begins.append(begins[-1] + max((GROUPS - begins[-1]) // (2 * n_threads), 1))
    return np.array(begins)
