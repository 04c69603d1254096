"""Checks of arrays that come from a file, and sparse matrices as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError


def check_array(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Return one of the arrays, or say why it does not fit.

    Parameters
    ----------
    arrays
        Arrays by name.
    name
        Which of them.
    shape
        The shape it must have; -1 stands for any length.
    kind
        The kinds of NumPy types that will do, as letters: ``"f"`` (float32, that is), ``"iu"``, ``"b"``.

    Examples
    --------
    >>> check_array({"counts": np.zeros(3, np.float32)}, "counts", (4,), "f")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: array 'counts' has shape (3,), where parameters and data ask for (4,)
    """
    if name not in arrays:
        raise DataError(f"array {name!r} is missing; there are {', '.join(arrays) or 'none'}")
    array = arrays[name]
    if array.ndim != len(shape) or any(want not in (-1, have) for want, have in zip(shape, array.shape, strict=True)):
        raise DataError(f"array {name!r} has shape {array.shape}, where parameters and data ask for {shape}")
    if array.dtype.kind not in kind or (kind == "f" and array.dtype != np.float32):
        raise DataError(f"array {name!r} has the wrong type {array.dtype}")
    return array


def csr_to_arrays(name: str, matrix: sparse.csr_array) -> dict[str, Array]:
    """Return the three arrays of a sparse matrix, under names that begin alike.

    Examples
    --------
    >>> list(csr_to_arrays("genres", sparse.csr_array(np.eye(2))))
    ['genres.data', 'genres.indices', 'genres.indptr']
    """
    return {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def csr_from_arrays(arrays: Mapping[str, Array], name: str, shape: tuple[int, int], kind: str) -> sparse.csr_array:
    """Return the sparse matrix that `csr_to_arrays` took apart, checked.

    Examples
    --------
    >>> matrix = sparse.csr_array(np.eye(2, dtype=np.float32))
    >>> csr_from_arrays(csr_to_arrays("genres", matrix), "genres", (2, 2), "f").toarray()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    indptr = check_array(arrays, f"{name}.indptr", (shape[0] + 1,), "iu")
    indices = check_array(arrays, f"{name}.indices", (-1,), "iu")
    data = check_array(arrays, f"{name}.data", indices.shape, kind)
    check_positions(name, indptr, indices, shape[1])
    return sparse.csr_array((data, indices, indptr), shape=shape)


def check_positions(name: str, indptr: Array, indices: Array, n_columns: int, *, ascending: bool = False) -> None:
    """Reject positions that point outside: compiled loops would follow them into foreign memory.

    Examples
    --------
    >>> check_positions("seen items", np.array([0, 2]), np.array([0, 7]), 5)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: seen items: position 7 in a row of 5
    """
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise DataError(f"{name}: its rows do not cover its {len(indices):,} entries")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise DataError(f"{name}: position {wrong} in a row of {n_columns:,}")
    if ascending:
        falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
        if not np.isin(falls, indptr).all():
            raise DataError(f"{name}: positions within a row must ascend")
