"""Array types for signatures, small array helpers, and random generators from seeds."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpcml.utils.errors import ParameterError

Array: TypeAlias = NDArray[Any]
BoolArray: TypeAlias = NDArray[np.bool_]
IntArray: TypeAlias = NDArray[np.integer[Any]]
FloatArray: TypeAlias = NDArray[np.floating[Any]]
Seed: TypeAlias = "int | np.random.Generator"

CACHE_LINE = 64  # bytes


def frozen(array: Array) -> Array:
    """Return a read-only view of an array, for the fields of frozen dataclasses.

    Examples
    --------
    >>> frozen(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def aligned(shape: tuple[int, ...]) -> FloatArray:
    """Return float32 zeros aligned to a cache line, so that no 256-bit vector crosses a cache line.

    Examples
    --------
    >>> aligned((3, 8)).ctypes.data % CACHE_LINE
    0
    """
    size = math.prod(shape)
    store = np.zeros(size + CACHE_LINE // 4, dtype=np.float32)
    first = -store.ctypes.data % CACHE_LINE // 4
    return store[first : first + size].reshape(shape)


def unit(rows: FloatArray) -> FloatArray:
    """Return rows scaled to norm 1; rows of zeros stay zero.

    Examples
    --------
    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12))


def repeats_first(user_vectors: FloatArray) -> BoolArray:
    """Return which of the last vectors of each user repeat the first one, and so are not used.

    Parameters
    ----------
    user_vectors
        Shape (users, vectors, d).

    Returns
    -------
    BoolArray
        Shape (users, vectors); a vector before one that is used is used, too.

    Examples
    --------
    >>> repeats_first(np.array([[[1.0], [2.0], [1.0]], [[1.0], [1.0], [2.0]]]))
    array([[False, False,  True],
           [False, False, False]])
    """
    repeats: BoolArray = (user_vectors == user_vectors[:, :1]).all(axis=2)
    repeats[:, 0] = False
    return np.asarray(np.logical_and.accumulate(repeats[:, ::-1], axis=1)[:, ::-1])


def generator(seed: Seed) -> np.random.Generator:
    """Return a random generator for a seed; a generator is returned unchanged.

    Examples
    --------
    >>> generator(7).integers(100) == generator(7).integers(100)
    np.True_
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError(f"seed={seed!r}: pass a non-negative integer or a numpy.random.Generator")
    return np.random.default_rng(int(seed))


def every_kth(values: Array, most: int) -> Array:
    """Return evenly spaced values, about ``most`` of them at most; all where there are no more.

    Examples
    --------
    >>> every_kth(np.arange(10), 4).tolist()
    [0, 3, 6, 9]
    """
    return values[:: max(1, -(-len(values) // most))]
