"""Which thread works on which user or item."""

from __future__ import annotations

import numpy as np
from numba import njit

GROUPS = 64


@njit(cache=True, inline="always")
def group_of(row):
    """Return the group of a user or an item, of `GROUPS` that a hash makes about equally large.

    Sixteen neighbours are in one group, so that threads do not write to the same cache line.
    """
    spread = ((np.uint64(row) >> np.uint64(4)) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)
    return np.int64((spread * np.uint64(GROUPS)) >> np.uint64(32))


@njit(cache=True, inline="always")
def is_mine(row, thread, n_threads):
    """Say whether a thread owns a user or an item."""
    return group_of(row) * n_threads // GROUPS == thread


@njit(nogil=True, cache=True)
def groups_of(rows, out):
    """Write the group of each row."""
    for k in range(len(rows)):
        out[k] = group_of(rows[k])
