"""The check that data, models and commands alike make of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcml.errors import ParameterError


def at_least(name: str, value: Any, least: int) -> None:
    """Reject what is not a whole number of at least ``least``.

    Examples
    --------
    >>> at_least("dim", 0, 1)
    Traceback (most recent call last):
    ...
    dpcml.errors.ParameterError: dim=0: must be a whole number of at least 1
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ParameterError(f"{name}={value!r}: must be a whole number of at least {least}")
