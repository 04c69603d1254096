"""Search spaces: which parameters of a model are searched, and over which values."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dpcml.models import create
from dpcml.tuning.dimensions import Dimension, dimension
from dpcml.utils.errors import DpcmlError, ParameterError, did_you_mean
from dpcml.utils.text import plain, read_toml

Point: TypeAlias = dict[str, Any]  # a value for every searched parameter

OF_THE_SEARCH = {"random_state": "seed (--seed)", "metric": "metric (--metric)", "n_threads": "workers (--workers)"}
_KEYS = ("title", "models", "spaces", "fixed", "parameters")


@dataclass(frozen=True)
class Space:
    """What is searched.

    Parameters
    ----------
    name
        What it is called: ``grid``, ``wide``, or a file.
    dimensions
        The values of each searched parameter.
    fixed
        Parameters that all trials share.

    Examples
    --------
    >>> space = read_space("grid", "unis")
    >>> space.grid_size, space.grid_point(0)
    (9, {'learning_rate': 0.001, 'margin': 1.0})
    """

    name: str
    dimensions: dict[str, Dimension]
    fixed: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int | None:
        """How many points there are; None where a parameter is a fraction in a range."""
        counts = [dimension.count for dimension in self.dimensions.values()]
        return None if None in counts else math.prod(count for count in counts if count is not None)

    @property
    def grid_size(self) -> int:
        """How many points the grid has."""
        return math.prod(len(dimension.grid()) for dimension in self.dimensions.values())

    def grid_point(self, number: int) -> Point:
        """Return a point of the grid; the last parameter changes first."""
        grids = {name: dimension.grid() for name, dimension in self.dimensions.items()}
        places = np.unravel_index(number, [len(values) for values in grids.values()]) if grids else ()
        return {name: values[place] for (name, values), place in zip(grids.items(), places, strict=True)}

    def at(self, shares: Mapping[str, float]) -> Point:
        """Return the point at a place in the unit cube."""
        return {name: dimension.at(shares[name]) for name, dimension in self.dimensions.items()}

    def with_fixed(self, model: str, values: Mapping[str, Any]) -> Space:
        """Return the space in which some more parameters have one value, and are no longer searched.

        Examples
        --------
        >>> read_space("grid", "unis").with_fixed("unis", {"margin": 2.0}).grid_size
        3
        """
        left = {name: dimension for name, dimension in self.dimensions.items() if name not in values}
        fixed = replace(self, dimensions=left, fixed={**self.fixed, **values})
        _check_values(fixed, model)
        return fixed


def read_space(name: str | Path, model: str) -> Space:
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
    create(model)  # says what is wrong with the name
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
    """Return the built-in spaces as they are written, by model and name.

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


def _near(name: str | Path, known: Mapping[str, Any]) -> str:
    return did_you_mean(str(name), known) if known else "this model has none; write a TOML file with [parameters]"


def _space(name: str, written: Mapping[str, Any], model: str) -> Space:
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
    searched, known = written.get("parameters", {}), create(model).get_params()
    for key in (*fixed, *searched):
        if key not in known:
            raise ParameterError(f"{model} has no parameter {key!r}: {did_you_mean(key, known)}")
    both = [key for key in searched if key in fixed]
    if both:
        raise ParameterError(f"{both[0]} is both fixed and searched: take it out of one of them")
    space = Space(name, {key: dimension(key, value) for key, value in searched.items()}, fixed)
    _check_values(space, model)
    return space


def _check_values(space: Space, model: str) -> None:
    """Let the model say which value it would not take, before hours are spent on the others."""
    for name in (*space.fixed, *space.dimensions):
        if name in OF_THE_SEARCH:
            raise ParameterError(f"{name} is a matter of the search, not of its space: pass {OF_THE_SEARCH[name]}")
    first = {name: dimension.grid()[0] for name, dimension in space.dimensions.items()}
    for name, values in space.dimensions.items():
        for value in values.grid():
            create(model, **{**space.fixed, **first, name: value})
