"""Checks of parameters: each error names the value, the rule and the way out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcml.utils.arrays import Array
from dpcml.utils.errors import ParameterError, did_you_mean


def at_least(name: str, value: Any, least: int) -> None:
    """Reject what is not a whole number of at least ``least``.

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
    """Reject what is not a finite number above 0, or of at least 0.

    Examples
    --------
    >>> positive("margin", -1.0)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: margin=-1.0: must be a finite number above 0
    """
    if not _number(value) or not math.isfinite(value) or value < 0 or (value == 0 and not or_zero):
        raise ParameterError(f"{name}={value!r}: must be a finite number {'of at least' if or_zero else 'above'} 0")


def share(name: str, value: Any) -> None:
    """Reject what is not a number from 0 to 1.

    Examples
    --------
    >>> share("mix", 1.5)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: mix=1.5: must be a number from 0 to 1
    """
    if not _number(value) or not 0 <= value <= 1:
        raise ParameterError(f"{name}={value!r}: must be a number from 0 to 1")


def choice(name: str, value: Any, known: Sequence[str]) -> None:
    """Reject what is not one of the known names, and suggest the nearest.

    Examples
    --------
    >>> choice("start", "spectrl", ("random", "spectral"))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: start='spectrl': did you mean 'spectral'?
    """
    if value not in known:
        raise ParameterError(f"{name}={value!r}: {did_you_mean(str(value), known)}")


def bounds(name: str, value: Any) -> tuple[float, float]:
    """Return a lower and an upper bound as numbers; a missing one never bites.

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
        if bound is not None and not (_number(bound) and 0 <= bound < math.inf):
            raise ParameterError(f"{name}={value!r}: bounds are numbers of at least 0, or None for no bound")
    low = -math.inf if value[0] is None else float(value[0])
    high = math.inf if value[1] is None else float(value[1])
    if low > high:
        raise ParameterError(f"{name}={value!r}: the lower bound must not exceed the upper one")
    return low, high


def one_id(name: str, value: Any) -> Array:
    """Return an id as an array of one; reject several.

    Examples
    --------
    >>> one_id("user", [3, 4])
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: user=[3, 4]: pass one id, and call this for each where there are several
    """
    found = np.atleast_1d(value)
    if found.shape != (1,):
        raise ParameterError(f"{name}={value!r}: pass one id, and call this for each where there are several")
    return found


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
