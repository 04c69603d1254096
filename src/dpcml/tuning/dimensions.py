"""One searched parameter: the values it can take, drawn at random or laid out as a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.text import plain

STEPS = 5  # values of a range in a grid


class Dimension(Protocol):
    """The values of one parameter."""

    @property
    def ordered(self) -> bool:
        """Whether neighbours in the unit interval are alike."""

    @property
    def count(self) -> int | None:
        """How many distinct values there are; None: more than can be listed."""

    def at(self, share: float) -> Any:
        """Return the value at a place in [0, 1)."""

    def grid(self) -> tuple[Any, ...]:
        """Return the values that a grid has."""


@dataclass(frozen=True)
class Choice:
    """A few values.

    Examples
    --------
    >>> Choice((1.0, 1.5, 2.0)).at(0.99)
    2.0
    """

    values: tuple[Any, ...]

    @property
    def ordered(self) -> bool:
        """Whether the values are ascending numbers."""
        if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in self.values):
            return False
        return list(self.values) == sorted(self.values)

    @property
    def count(self) -> int:
        """How many values there are."""
        return len(self.values)

    def at(self, share: float) -> Any:
        """Return the value at a place in [0, 1)."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def grid(self) -> tuple[Any, ...]:
        """Return all values."""
        return self.values


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``, whole ones if both are; with ``log``, each factor is as likely as another.

    Examples
    --------
    >>> Range(0.001, 0.1, log=True, steps=3).grid()
    (0.001, 0.01, 0.1)
    >>> Range(2, 5).at(0.5)
    4
    """

    low: float
    high: float
    log: bool = False
    steps: int = STEPS

    @property
    def ordered(self) -> bool:
        """Numbers are."""
        return True

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def count(self) -> int | None:
        """How many values there are; None for fractions."""
        return int(self.high - self.low + 1) if self.whole else None

    def at(self, share: float) -> Any:
        """Return the value at a place in [0, 1); fractions have four digits, so that they can be read."""
        low, high = (self.low - 0.5, self.high + 0.5) if self.whole else (self.low, self.high)  # round evenly
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        return self._written(value)

    def grid(self) -> tuple[Any, ...]:
        """Return ``steps`` values from ``low`` to ``high``, evenly spread."""
        space = np.geomspace if self.log else np.linspace
        return tuple(dict.fromkeys(self._written(value) for value in space(self.low, self.high, self.steps)))

    def _written(self, value: float) -> Any:
        if self.whole:
            return min(max(math.floor(value + 0.5), int(self.low)), int(self.high))
        return float(min(max(float(f"{value:.4g}"), self.low), self.high))


def dimension(name: str, written: Any) -> Dimension:
    """Return the dimension that is written in a TOML file.

    A list is a choice; ``{low, high, log, steps}`` is a range; ``{lower, upper}`` are two lists of which all
    pairs count that are in order.

    Examples
    --------
    >>> dimension("diversity", {"lower": [0.0, 0.2], "upper": [0.1, 0.2]}).grid()
    ((0.0, 0.1), (0.0, 0.2), (0.2, 0.2))
    >>> dimension("margin", {"low": 1.0, "hihg": 2.0})
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: margin: unknown key 'hihg': did you mean 'high'?
    """
    if isinstance(written, list):
        return _choice(name, written)
    if not isinstance(written, Mapping):
        raise ParameterError(f"{name} = {written!r}: write a list of values, or {{ low = ..., high = ... }}")
    for key in written:
        if key not in _KEYS:
            raise ParameterError(f"{name}: unknown key {key!r}: {did_you_mean(key, _KEYS)}")
    for keys, needed, made in _KINDS:
        if written.keys() <= keys and needed <= written.keys():
            return made(name, written)
    raise ParameterError(f"{name}: {', '.join(written)} do not go together: write low and high, or lower and upper")


def _choice(name: str, written: list[Any]) -> Choice:
    values = tuple(map(plain, written))
    if not values or len({repr(value) for value in values}) < len(values):
        raise ParameterError(f"{name} = {written!r}: list at least one value, and each once")
    return Choice(values)


def _range(name: str, written: Mapping[str, Any]) -> Range:
    low, high, log, steps = (written.get(key, usual) for key, usual in _RANGE.items())
    if not _number(low) or not _number(high) or not low < high:
        raise ParameterError(f"{name}: low = {low!r}, high = {high!r}: low must be a number below high")
    if not isinstance(log, bool) or (log and low <= 0):
        raise ParameterError(f"{name}: low = {low!r}, log = {log!r}: log is true or false, and true only for low > 0")
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 2:
        raise ParameterError(f"{name}: steps = {steps!r}: must be a whole number of at least 2")
    both_whole = isinstance(low, int) and isinstance(high, int)
    return Range(low, high, log, steps) if both_whole else Range(float(low), float(high), log, steps)


def _pairs(name: str, written: Mapping[str, Any]) -> Choice:
    for key in ("lower", "upper"):
        if not isinstance(written[key], list) or not all(map(_number, written[key])):
            raise ParameterError(f"{name}: {key} = {written[key]!r}: write a list of numbers")
    pairs = [(low, high) for low in written["lower"] for high in written["upper"] if low <= high]
    if not pairs:
        raise ParameterError(f"{name}: no lower bound is at most an upper one; add smaller or larger ones")
    return Choice(tuple(pairs))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


_RANGE = {"low": None, "high": None, "log": False, "steps": STEPS}
_KINDS: tuple[tuple[set[str], set[str], Callable[[str, Mapping[str, Any]], Dimension]], ...] = (
    (set(_RANGE), {"low", "high"}, _range),
    ({"lower", "upper"}, {"lower", "upper"}, _pairs),
)
_KEYS = sorted(set().union(*(keys for keys, _, _ in _KINDS)))
