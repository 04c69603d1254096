"""Checked parts of a user-item matrix, and the CSR built from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import is_number
from dpcml.utils.errors import DataError, ParameterError


def matrix_entries(matrix: Any) -> sparse.coo_array:
    """Return the entries of a dense or sparse matrix, checked to be finite numbers.

    Examples
    --------
    >>> matrix_entries([[0, 2], [0, 0]]).data.tolist()
    [2]
    """
    try:
        entries = sparse.coo_array(matrix)
    except (TypeError, ValueError) as error:
        raise DataError(f"a {type(matrix).__name__} is no matrix: pass a scipy sparse or dense array") from error
    if entries.ndim != 2:
        raise DataError(f"a matrix of {entries.ndim} dimensions: interactions need (users, items)")
    if entries.dtype.kind not in "biuf":
        raise DataError(f"a matrix of {entries.dtype}: its entries must be numbers or truth values")
    if entries.dtype.kind == "f" and not np.isfinite(entries.data).all():
        raise DataError("the matrix holds NaN or infinite values: every entry must be a finite number")
    return entries


def below_threshold(values: Array, min_rating: float | None) -> BoolArray:
    """Return which values lie under the threshold; without one, refuse negative values.

    Examples
    --------
    >>> below_threshold(np.array([5, 3, 4]), 4).tolist()
    [False, True, False]
    """
    if min_rating is not None:
        check_rating(min_rating)
        return np.asarray(values < min_rating)
    if len(values) and values.min() < 0:
        raise DataError(
            f"the matrix holds the negative value {values.min()}: positives are entries above 0;"
            " pass min_rating to turn ratings into positives"
        )
    return np.zeros(len(values), dtype=bool)


def check_rating(min_rating: Any) -> None:
    """Raise `ParameterError` unless the threshold is a finite number.

    Examples
    --------
    >>> check_rating("x")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: min_rating='x': must be a finite number
    """
    if not is_number(min_rating) or not np.isfinite(float(min_rating)):
        raise ParameterError(f"min_rating={min_rating!r}: must be a finite number")


def check_codes(codes: IntArray, count: int, kind: str) -> None:
    """Reject positions outside ``range(count)``.

    Examples
    --------
    >>> check_codes(np.array([0, 2]), 2, "item")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: item position 2: positions of 2 items must lie between 0 and 1
    """
    for extreme in (codes.min(), codes.max()) if len(codes) else ():
        if not 0 <= extreme < count:
            raise DataError(
                f"{kind} position {extreme}: positions of {count} {kind}s must lie between 0 and {count - 1}"
            )


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


def pair_sums(users: IntArray, items: IntArray, n_items: int, values: FloatArray) -> FloatArray:
    """Return the sum of the values of each distinct pair, in the order of `csr_of_pairs`.

    Examples
    --------
    >>> pair_sums(np.array([1, 0, 1]), np.array([2, 1, 2]), 3, np.array([1.0, 5.0, 2.0])).tolist()
    [5.0, 3.0]
    """
    keys = users.astype(np.int64) * max(n_items, 1) + items
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0)[: len(keys)])
    return np.add.reduceat(np.asarray(values, dtype=np.float64)[order], starts) if len(keys) else np.zeros(0)


def pairs_without(
    users: IntArray, items: IntArray, shape: tuple[int, int], positives: tuple[IntArray, IntArray]
) -> sparse.csr_array | None:
    """Return parallel pairs as a matrix of truth values, without those that are positives; None if none is left.

    Parameters
    ----------
    users, items
        Positions; a pair may repeat.
    shape
        Users and items.
    positives
        Row pointers and item positions of the positives, as from `csr_of_pairs`.

    Examples
    --------
    >>> positives = np.array([0, 1, 1]), np.array([2])
    >>> pairs_without(np.array([0, 1, 0]), np.array([2, 1, 0]), (2, 3), positives).toarray().astype(int).tolist()
    [[1, 0, 0], [0, 1, 0]]
    """
    if not len(users):
        return None
    stride = max(shape[1], 1)
    rows = np.repeat(np.arange(shape[0], dtype=np.int64), np.diff(positives[0]))
    keys = np.setdiff1d(users.astype(np.int64) * stride + items, rows * stride + positives[1])
    if not len(keys):
        return None
    indptr = np.searchsorted(keys, np.arange(shape[0] + 1) * stride)
    columns = (keys % stride).astype(np.int32)
    return sparse.csr_array((np.ones(len(columns), dtype=bool), columns, indptr), shape=shape)


def take_rows(indptr: IntArray, indices: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return row pointers and positions of some rows of a CSR; nothing else of it is read.

    Examples
    --------
    >>> starts, items = take_rows(np.array([0, 2, 2, 5]), np.array([4, 7, 1, 3, 9]), np.array([2, 0]))
    >>> starts.tolist(), items.tolist()
    ([0, 3, 5], [1, 3, 9, 4, 7])
    """
    counts = indptr[rows + 1] - indptr[rows]
    ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    return ends, indices[np.repeat(indptr[rows] - ends[:-1], counts) + np.arange(ends[-1])]


def distinct(ordered: IntArray) -> IntArray:
    """Return the distinct values of ascending ones; `np.unique` hashes first, which takes many times as long.

    Examples
    --------
    >>> distinct(np.array([2, 2, 5])).tolist()
    [2, 5]
    """
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    return ordered if first.all() else ordered[first]
