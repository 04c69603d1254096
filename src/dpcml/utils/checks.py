"""Checks of parameters, of the memory that they need, and of arrays that were read from a file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.utils.arrays import Array, IntArray
from dpcml.utils.errors import DataError, ParameterError, did_you_mean

CHECKED = 2**24  # positions at once: a mapped file stays on disk


def at_least(name: str, value: Any, least: int) -> None:
    """Raise `ParameterError` unless the value is an integer of at least ``least``.

    Examples
    --------
    >>> at_least("dim", 0, 1)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: dim=0: must be a whole number of at least 1
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ParameterError(f"{name}={value!r}: must be a whole number of at least {least}")


def positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Raise `ParameterError` unless the value is finite and positive; ``or_zero`` allows 0.

    Examples
    --------
    >>> positive("margin", -1.0)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: margin=-1.0: must be a finite number above 0
    """
    if not is_number(value) or not math.isfinite(value) or value < 0 or (value == 0 and not or_zero):
        raise ParameterError(f"{name}={value!r}: must be a finite number {'of at least' if or_zero else 'above'} 0")


def share(name: str, value: Any) -> None:
    """Raise `ParameterError` unless the value is a number from 0 to 1.

    Examples
    --------
    >>> share("mix", 1.5)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: mix=1.5: must be a number from 0 to 1
    """
    if not is_number(value) or not 0 <= value <= 1:
        raise ParameterError(f"{name}={value!r}: must be a number from 0 to 1")


def choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise `ParameterError` unless the value is a known name; the error suggests the most similar one.

    Examples
    --------
    >>> choice("init", "spectrl", ("random", "spectral"))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: init='spectrl': did you mean 'spectral'?
    """
    if not isinstance(value, str) or value not in known:
        raise ParameterError(f"{name}={value!r}: {did_you_mean(str(value), known)}")


def optional_text(**values: Any) -> None:
    """Raise `ParameterError` unless all values are texts or None.

    Examples
    --------
    >>> optional_text(user="name", item=7)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: item=7: must be a text, or None
    """
    for name, value in values.items():
        if not (value is None or isinstance(value, str)):
            raise ParameterError(f"{name}={value!r}: must be a text, or None")


def bounds(name: str, value: Any) -> tuple[float, float]:
    """Return a lower and an upper bound as floats; None means no bound.

    Examples
    --------
    >>> bounds("diversity", (None, 0.5))
    (-inf, 0.5)
    >>> bounds("diversity", (0.5, 0.1))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: diversity=(0.5, 0.1): the lower bound must not exceed the upper one
    """
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ParameterError(f"{name}={value!r}: pass two bounds (lower, upper); None leaves one out")
    for bound in value:
        if bound is not None and not (is_number(bound) and 0 <= bound < math.inf):
            raise ParameterError(f"{name}={value!r}: bounds are numbers of at least 0, or None for no bound")
    low = -math.inf if value[0] is None else float(value[0])
    high = math.inf if value[1] is None else float(value[1])
    if low > high:
        raise ParameterError(f"{name}={value!r}: the lower bound must not exceed the upper one")
    return low, high


def one_id(name: str, value: Any) -> Array:
    """Return one external id as an array of length 1; raise `ParameterError` for several.

    Examples
    --------
    >>> one_id("user", [3, 4])
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: user=[3, 4]: pass one id; for several, call this once for each
    """
    try:
        found = np.atleast_1d(value)
    except ValueError:  # nested sequences of different lengths
        found = np.empty(0)
    if found.shape != (1,):
        raise ParameterError(f"{name}={value!r}: pass one id; for several, call this once for each")
    return found


def check_rows(rows: Any, n_users: int) -> IntArray:
    """Return the row positions of users as an array; raise `ParameterError` unless all are in 0..n_users-1.

    Examples
    --------
    >>> check_rows([0, 7], 3)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: user row 7: must be in 0..2
    """
    try:
        found = np.atleast_1d(np.asarray(rows))
    except ValueError:  # nested sequences of different lengths
        found = np.empty((0, 0))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ParameterError(f"users={rows!r}: pass a sequence of row positions")
    if found.size and (found.min() < 0 or found.max() >= n_users):
        raise ParameterError(f"user row {found.min() if found.min() < 0 else found.max()}: must be in 0..{n_users - 1}")
    return found.astype(np.int64)


def check_array(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], kind: str) -> Array:
    """Return the array ``name``; raise `DataError` if it is missing or has another shape or type.

    Parameters
    ----------
    arrays
        Arrays by name.
    name
        Key of the array.
    shape
        Expected shape; -1 allows any length.
    kind
        Allowed kinds of dtype (`numpy.dtype.kind`): ``"f"`` (float32 only), ``"iu"``, ``"b"``.

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
    """Return the data, indices and indptr arrays of a sparse matrix; ``name`` is the prefix of their keys.

    Examples
    --------
    >>> list(csr_to_arrays("genres", sparse.csr_array(np.eye(2))))
    ['genres.data', 'genres.indices', 'genres.indptr']
    """
    return {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def csr_from_arrays(arrays: Mapping[str, Array], name: str, shape: tuple[int, int], kind: str) -> sparse.csr_array:
    """Return the sparse matrix whose arrays `csr_to_arrays` returned, after checking them.

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
    """Raise `DataError` for CSR indices out of range: compiled kernels do not check bounds.

    Examples
    --------
    >>> check_positions("seen items", np.array([0, 2]), np.array([0, 7]), 5)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: seen items: position 7 in a row of 5
    """
    if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise DataError(f"{name}: its rows do not cover its {len(indices):,} entries")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise DataError(f"{name}: position {wrong} in a row of {n_columns:,}")
    for first in range(0, len(indices) if ascending else 0, CHECKED):
        some = indices[max(first - 1, 0) : first + CHECKED]
        falls = 1 + np.flatnonzero(some[1:] <= some[:-1]) + max(first - 1, 0)
        if (indptr[np.searchsorted(indptr, falls)] != falls).any():  # unless a new row begins
            raise DataError(f"{name}: positions within a row must ascend")


def is_number(value: Any) -> bool:
    """Return whether a value is a number that a float can hold; whole numbers have no largest value.

    Examples
    --------
    >>> is_number(3), is_number(10**400), is_number(True)
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


CGROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """Return the memory that this process can still get, swap included; None where the system does not say.

    In a container it is what the limit of the container leaves.

    Examples
    --------
    >>> free = free_bytes()
    >>> free is None or free > 0
    True
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        free = sizes["MemAvailable"] + sizes["SwapFree"]
    except (OSError, ValueError, KeyError, IndexError):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return None
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        free = min(free, max(limit - used, 0))
    return free


def check_memory(what: str, needed: int, way_out: str) -> None:
    """Raise `ParameterError` if something needs more memory than there is.

    Parameters
    ----------
    what
        What needs it.
    needed
        Estimate in bytes.
    way_out
        What the user can change.

    Examples
    --------
    >>> check_memory("the table", 2**70, "make it smaller")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: the table needs about 1,180,591,620,717 GB of memory, ... GB are free; ...
    """
    free = free_bytes()
    if free is not None and needed > free:
        raise ParameterError(
            f"{what} needs about {needed / 1e9:,.0f} GB of memory, {free / 1e9:,.1f} GB are free; {way_out}"
        )
