"""Partition of users and items into groups that threads work on, and the epoch order over the groups.

A row's gradients are summed by one thread, in an order that does not depend on the number of threads. So the result is
the same whichever thread it is. Each thread begins with a static share of the groups, large enough that most of its
rows are still in its cache from the last batch. The other groups are taken from a shared queue, in shares that get
smaller, so that all threads finish at about the same time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.kernels.simd import prefetch
from dpcml.utils.arrays import IntArray

GROUPS = 64
STATIC = 0.8  # of the groups are in the static shares
RUNS_AHEAD = 16  # runs whose items are prefetched


@njit(inline="always")
def group_of(row):
    """Return the group of a user or an item, by a hash that makes the `GROUPS` groups about equally large.

    Sixteen consecutive rows are in one group, so that threads do not write to the same cache line.
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
    groups: IntArray = group_of.py_func(rows).astype(np.uint8)  # the Python function takes arrays
    return groups


@njit(**PLAIN)
def sort_by_group(groups, count, starts, indices):
    """Write the indices 0 to ``count - 1`` sorted by group (a stable counting sort), and the start of each group.

    Group number `GROUPS` is for indices that no thread works on.
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
        indices[starts[groups[k]]] = k
        starts[groups[k]] += 1
    for group in range(GROUPS, 0, -1):  # each start has moved to the next one
        starts[group] = starts[group - 1]
    starts[0] = 0


def shares(n_threads: int) -> IntArray:
    """Return the first group of each share of a batch, and `GROUPS`; the first ``n_threads`` shares are static.

    Examples
    --------
    >>> shares(1).tolist()
    [0, 64]
    >>> shares(2).tolist()
    [0, 25, 50, 53, 55, 57, 58, 59, 60, 61, 62, 63, 64]
    """
    if n_threads == 1:
        return np.array([0, GROUPS])
    starts = [int(STATIC * GROUPS / n_threads) * thread for thread in range(n_threads + 1)]
    while starts[-1] < GROUPS:
        starts.append(starts[-1] + max((GROUPS - starts[-1]) // (2 * n_threads), 1))
    return np.array(starts)


@cached_njit(**PLAIN)
def gather(values, places, out, start, stop):
    """Write ``values[places[k]]`` to ``out[k]`` for ``start <= k < stop``."""
    for k in range(start, stop):
        out[k] = values[places[k]]


@cached_njit(**PLAIN)
def write_runs(users, items, starts, runs, ends, out, start, stop):
    """Write user and items of the runs ``runs[start:stop]`` to the epoch order.

    Parameters
    ----------
    users, starts
        User of each run, and where its items start in ``items``.
    items
        Items of all runs.
    runs
        Runs in the order of the epoch.
    ends
        Where each of them ends in the output.
    out
        Output of shape (positives, 2): user and item.
    """
    for k in range(start, stop):
        if k + 2 * RUNS_AHEAD < stop:
            prefetch(starts, runs[k + 2 * RUNS_AHEAD])
            prefetch(users, runs[k + 2 * RUNS_AHEAD])
        if k + RUNS_AHEAD < stop:
            prefetch(items, starts[runs[k + RUNS_AHEAD]])
        run = runs[k]
        first = starts[run]
        length = starts[run + 1] - first
        for j in range(length):
            at = ends[k] - length + j
            out[at, 0], out[at, 1] = users[run], items[first + j]
