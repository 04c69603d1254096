"""Putting (user, item) pairs in order, without more copies of them than needed."""

from __future__ import annotations

import numpy as np

from dpcml.utils.arrays import FloatArray, IntArray


def csr_of_pairs(
    users: IntArray, items: IntArray, shape: tuple[int, int], timestamps: FloatArray | None = None
) -> tuple[IntArray, IntArray, FloatArray | None]:
    """Return row pointers, item positions and times of parallel pairs; of one that repeats, the latest counts.

    Examples
    --------
    >>> indptr, indices, _ = csr_of_pairs(np.array([1, 0, 1, 1]), np.array([2, 1, 0, 2]), (2, 3))
    >>> indptr.tolist(), indices.tolist()
    ([0, 1, 3], [1, 0, 2])
    """
    stride = max(shape[1], 1)
    keys: IntArray = users.astype(np.int64)  # in place from here on: with many pairs each copy counts
    keys *= stride
    keys += items
    if timestamps is None:
        keys.sort()
        keys = distinct(keys)
    else:
        order = np.lexsort((timestamps, keys))
        keys = keys[order]
        last = np.append(keys[1:] != keys[:-1], True)[: len(keys)]
        keys, timestamps = keys[last], timestamps[order[last]]
    indptr = np.searchsorted(keys, np.arange(shape[0] + 1) * stride)
    keys %= stride
    return indptr, keys.astype(np.int32), timestamps


def distinct(ordered: IntArray) -> IntArray:
    """Return the distinct values of ascending ones; `np.unique` hashes first, which takes many times as long.

    Examples
    --------
    >>> distinct(np.array([2, 2, 5])).tolist()
    [2, 5]
    """
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return ordered if first.all() else ordered[first]
