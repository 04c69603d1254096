"""External ids: integers or strings, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcml.utils.arrays import Array, BoolArray, IntArray
from dpcml.utils.errors import DataError, UnknownIdError, did_you_mean

_LARGEST = 2**63 - 1  # of an int64
_LOOKED_THROUGH = 2000  # ids that a misspelt one is compared with


def positions(ids: Array, wanted: Array, order: IntArray | None = None) -> IntArray:
    """Return where each wanted id stands in ``ids``, -1 where it does not.

    Ids of the other kind are converted where that is plain: ``"12"`` finds 12 and 12 finds ``"12"``.

    Examples
    --------
    >>> positions(np.array([30, 10, 20]), np.array([20, 99])).tolist()
    [2, -1]
    >>> positions(np.array([30, 10]), np.array(["10", "x"])).tolist()
    [1, -1]
    """
    wanted = id_array(wanted)
    if not len(ids):
        return np.full(wanted.shape, -1)
    possible: BoolArray | bool = True
    if ids.dtype.kind in "iu" and wanted.dtype.kind == "O":
        numbers = [as_integer(value) for value in wanted.ravel().tolist()]
        possible = np.array([number is not None for number in numbers], dtype=bool).reshape(wanted.shape)
        wanted = np.array([number or 0 for number in numbers], dtype=np.int64).reshape(wanted.shape)
    elif ids.dtype.kind == "O" and wanted.dtype.kind != "O":
        wanted = np.array([str(value) for value in wanted.ravel().tolist()], dtype=object).reshape(wanted.shape)
    if order is None:
        order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    found = order[place]
    return np.where((ids[found] == wanted) & possible, found, -1)


def id_array(ids: Sequence[Any] | Array) -> Array:
    """Return ids as int64 where all are integers, as an object array of strings otherwise.

    Examples
    --------
    >>> id_array([3, 1]), id_array(["a", 7])
    (array([3, 1]), array(['a', '7'], dtype=object))
    """
    array = np.asarray(ids)
    if array.dtype.kind in "iu" and not (array.dtype.itemsize == 8 and (array > _LARGEST).any()):
        return array.astype(np.int64, copy=False)
    if not array.size and array.dtype.kind == "f":  # an empty list
        return array.astype(np.int64)
    values = array.ravel().tolist()
    if array.dtype == object and all(type(value) is str for value in values):
        return array
    return np.array([str(value) for value in values], dtype=object).reshape(array.shape)


def as_integer(value: str) -> int | None:
    """Return the integer id that a text spells plainly, if it does and 64 bits hold it.

    Examples
    --------
    >>> as_integer("12"), as_integer("012"), as_integer("ann")
    (12, None, None)
    """
    try:
        number = int(value)
    except ValueError:
        return None
    return number if str(number) == value and abs(number) <= _LARGEST else None


def unique_ids(given: Sequence[Any] | Array | None, count: int, name: str) -> Array:
    """Return the ids of ``count`` rows or columns, positions where none are given.

    Examples
    --------
    >>> unique_ids(None, 3, "user_ids").tolist()
    [0, 1, 2]
    >>> unique_ids(["ann", "ann"], 2, "user_ids")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: user_ids holds 'ann' more than once: each row or column needs an id of its own
    """
    if given is None:
        return np.arange(count)
    ids = id_array(given).copy()  # what the caller does to an array later must not reach us
    if ids.shape != (count,):
        raise DataError(f"{name} has shape {ids.shape}: the matrix needs ({count},)")
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < count:
        twice = distinct[counts > 1].tolist()[0]
        raise DataError(f"{name} holds {twice!r} more than once: each row or column needs an id of its own")
    return ids


def known(ids: Array, wanted: Array, kind: str, order: IntArray | None = None) -> IntArray:
    """Return where each wanted id stands, or say which one is unknown.

    Examples
    --------
    >>> known(np.array(["ann", "bob"], dtype=object), np.array(["anne"]), "user")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.UnknownIdError: unknown user 'anne': not among the 2 users of the data; did you mean 'ann'?
    """
    found = positions(ids, wanted, order)
    if (found < 0).any():
        missing = str(wanted[found < 0][0])
        some = [str(value) for value in ids[:_LOOKED_THROUGH]]
        hint = did_you_mean(missing, some) if len(ids) <= _LOOKED_THROUGH and ids.dtype.kind == "O" else ""
        hint = hint if hint.startswith("did") else f"ids look like {', '.join(some[:3])}"
        raise UnknownIdError(f"unknown {kind} {missing!r}: not among the {len(ids):,} {kind}s of the data; {hint}")
    return found
