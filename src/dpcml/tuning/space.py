"""Search spaces: which parameters of a model are searched, over which values, and which are fixed."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpcml.models import create
from dpcml.utils.errors import DpcmlError, ParameterError, did_you_mean
from dpcml.utils.packages import require
from dpcml.utils.text import plain, read_toml

Point: TypeAlias = dict[str, Any]  # a value for every searched parameter

STEPS = 5  # values of a range in a grid
SEARCH_OPTIONS = {"random_state": "seed (--seed)", "metric": "metric (--metric)", "n_threads": "workers (--workers)"}
_KEYS = ("title", "models", "spaces", "fixed", "parameters")


@dataclass(frozen=True)
class Choice:
    """A few values of a parameter.

    Examples
    --------
    >>> Choice((0.5, (0.1, None))).encode((0.1, None))
    '[0.1, null]'
    """

    values: tuple[Any, ...]

    @property
    def count(self) -> int:
        """The number of values."""
        return len(self.values)

    def grid(self) -> tuple[Any, ...]:
        """Return all values."""
        return self.values

    def all_values(self) -> Sequence[Any]:
        """Return all values."""
        return self.values

    def encoded(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return values as optuna stores them."""
        return [self.encode(value) for value in values]

    def encode(self, value: Any) -> Any:
        """Return a value as optuna stores it: pairs are stored as JSON text."""
        return json.dumps(value) if isinstance(value, tuple) else value

    def distribution(self) -> Any:
        """Return the values as a distribution of optuna."""
        return require("optuna", "tune").distributions.CategoricalDistribution([*map(self.encode, self.values)])

    def suggest(self, trial: Any, name: str) -> Any:
        """Return the value that a trial of optuna suggests."""
        stored = [self.encode(value) for value in self.values]
        return self.values[stored.index(trial.suggest_categorical(name, stored))]


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``, integers if both are; with ``log``, uniform on a logarithmic scale.

    Examples
    --------
    >>> Range(0.001, 0.1, log=True, steps=3).grid()
    (0.001, 0.01, 0.1)
    """

    low: float
    high: float
    log: bool = False
    steps: int = STEPS

    @property
    def integer(self) -> bool:
        """Whether the values are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def count(self) -> int | None:
        """The number of values; None for floats."""
        return int(self.high - self.low + 1) if self.integer else None

    def grid(self) -> tuple[Any, ...]:
        """Return ``steps`` values from ``low`` to ``high``, evenly spaced."""
        space = np.geomspace if self.log else np.linspace
        return tuple(dict.fromkeys(self._rounded(value) for value in space(self.low, self.high, self.steps)))

    def all_values(self) -> Sequence[int]:
        """Return all integers of the range."""
        return range(int(self.low), int(self.high) + 1)

    def encoded(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return values as optuna stores them."""
        return values

    def encode(self, value: Any) -> Any:
        """Return a value as optuna stores it."""
        return value

    def distribution(self) -> Any:
        """Return the values as a distribution of optuna."""
        kinds = require("optuna", "tune").distributions
        kind = kinds.IntDistribution if self.integer else kinds.FloatDistribution
        return kind(self.low, self.high, log=self.log)

    def suggest(self, trial: Any, name: str) -> Any:
        """Return the value that a trial of optuna suggests."""
        suggest = trial.suggest_int if self.integer else trial.suggest_float
        return self._rounded(suggest(name, self.low, self.high, log=self.log))

    def _rounded(self, value: float) -> Any:
        if self.integer:
            return min(max(math.floor(value + 0.5), int(self.low)), int(self.high))
        # Four digits can be read and typed again; the metrics do not depend on the fifth.
        return float(min(max(float(f"{value:.4g}"), self.low), self.high))


Dimension: TypeAlias = Choice | Range


@dataclass(frozen=True)
class SearchSpace:
    """The searched parameters of a model, and the fixed ones.

    Parameters
    ----------
    name
        ``grid``, ``wide``, or a file.
    dimensions
        The values of each searched parameter.
    fixed
        Parameters that all trials share.

    Examples
    --------
    >>> read_space("grid", "unis").grid_size
    9
    """

    name: str
    dimensions: dict[str, Dimension]
    fixed: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int | None:
        """The number of points; None where a parameter is a float in a range."""
        counts = [dimension.count for dimension in self.dimensions.values()]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    @property
    def grid_size(self) -> int:
        """The number of points of the grid."""
        return math.prod(len(dimension.grid()) for dimension in self.dimensions.values())

    def suggest(self, trial: Any) -> Point:
        """Return the point that a trial of optuna suggests."""
        return {name: dimension.suggest(trial, name) for name, dimension in self.dimensions.items()}

    def encode(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Return a point as optuna stores it."""
        return {name: dimension.encode(point[name]) for name, dimension in self.dimensions.items()}

    def with_fixed(self, model: str, values: Mapping[str, Any]) -> SearchSpace:
        """Return the space in which some more parameters are fixed, and no longer searched.

        Examples
        --------
        >>> read_space("grid", "unis").with_fixed("unis", {"margin": 2.0}).grid_size
        3
        """
        left = {name: dimension for name, dimension in self.dimensions.items() if name not in values}
        fixed = replace(self, dimensions=left, fixed={**self.fixed, **values})
        _check_values(fixed, model)
        return fixed


def read_space(name: str | Path, model: str) -> SearchSpace:
    """Return a built-in space of a model, or the one in a TOML file.

    Parameters
    ----------
    name
        ``grid``: the paper's grid for its presets, a grid of ours for others; ``wide``: ranges around it; else a file.
    model
        The name of a preset or a model.

    Examples
    --------
    >>> read_space("grid", "dpcml2").grid_size
    2268
    >>> read_space("gird", "dpcml2")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: --space 'gird': no built-in space of dpcml2 and no file: did you mean 'grid'?
    """
    create(model)  # raises the error for an unknown name
    known = built_in().get(model, {})
    if str(name) in known:
        where, written = f"the space {name!r} of {model}", known[str(name)]
    elif Path(name).exists():
        where, written = str(name), read_toml(name)
    else:
        raise ParameterError(f"--space {str(name)!r}: no built-in space of {model} and no file: {_near(name, known)}")
    try:
        return _space(str(name), written, model)
    except DpcmlError as error:
        raise ParameterError(f"{where}: {error}") from None


@cache
def built_in() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the built-in spaces as their TOML files have them, by model and name.

    Examples
    --------
    >>> sorted(built_in()["ease"])
    ['grid', 'wide']
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for file in resources.files("dpcml.tuning").joinpath("spaces").iterdir():
        if file.name.endswith(".toml"):
            written = tomllib.loads(file.read_text(encoding="utf-8"))
            for model in written["models"]:
                for name in written["spaces"]:
                    found.setdefault(model, {})[name] = written
    return found


def dimension(name: str, written: Any) -> Dimension:
    """Return the dimension that a TOML file describes.

    A list is a choice; ``{low, high, log, steps}`` is a range; ``{lower, upper}`` are two lists, and the choice is
    among all pairs of them in which the lower bound does not exceed the upper one.

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
        if key not in _DIMENSION_KEYS:
            raise ParameterError(f"{name}: unknown key {key!r}: {did_you_mean(key, _DIMENSION_KEYS)}")
    for keys, needed, made in _FORMS:
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
    both_integers = isinstance(low, int) and isinstance(high, int)
    return Range(low, high, log, steps) if both_integers else Range(float(low), float(high), log, steps)


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
_FORMS: tuple[tuple[set[str], set[str], Callable[[str, Mapping[str, Any]], Dimension]], ...] = (
    (set(_RANGE), {"low", "high"}, _range),
    ({"lower", "upper"}, {"lower", "upper"}, _pairs),
)
_DIMENSION_KEYS = sorted(set().union(*(keys for keys, _, _ in _FORMS)))


def _near(name: str | Path, known: Mapping[str, Any]) -> str:
    return did_you_mean(str(name), known) if known else "this model has none; write a TOML file with [parameters]"


def _space(name: str, written: Mapping[str, Any], model: str) -> SearchSpace:
    for key in written:
        if key not in _KEYS:
            raise ParameterError(f"unknown key {key!r}: {did_you_mean(key, _KEYS)}; parameters go under [parameters]")
    for key in ("fixed", "parameters"):
        if not isinstance(written.get(key, {}), Mapping):
            raise ParameterError(f"{key} = {written[key]!r}: must be a table, [{key}]")
    if model not in written.get("models", [model]):
        raise ParameterError(
            f"made for {', '.join(written['models'])}, not for {model}; change models, or leave it out"
        )
    fixed = {key: plain(value) for key, value in written.get("fixed", {}).items()}
    searched, known = written.get("parameters", {}), create(model).known_params()
    for key in (*fixed, *searched):
        if key not in known:
            raise ParameterError(f"{model} has no parameter {key!r}: {did_you_mean(key, known)}")
    both = [key for key in searched if key in fixed]
    if both:
        raise ParameterError(f"{both[0]} is both fixed and searched: take it out of one of them")
    space = SearchSpace(name, {key: dimension(key, value) for key, value in searched.items()}, fixed)
    _check_values(space, model)
    return space


def _check_values(space: SearchSpace, model: str) -> None:
    """Let the model check every value before the first trial, rather than hours later."""
    for name in (*space.fixed, *space.dimensions):
        if name in SEARCH_OPTIONS:
            raise ParameterError(f"{name} is an option of the search, not of its space: pass {SEARCH_OPTIONS[name]}")
    first = {name: dimension.grid()[0] for name, dimension in space.dimensions.items()}
    create(model, **{**space.fixed, **first})
    for name, values in space.dimensions.items():
        for value in values.grid():
            create(model, **{**space.fixed, **first, name: value})
