"""Hyper-parameters by name: the registry of models, and the names that an older version used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from dpcml.utils.deprecation import rename_arguments
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.registry import Registry

if TYPE_CHECKING:
    from dpcml.models.base import Recommender
    from dpcml.models.estimator import Estimator

MODELS: Registry[type[Recommender]] = Registry("model")

M = TypeVar("M", bound="type[Recommender]")


@dataclass(frozen=True)
class Removed:
    """A hyper-parameter that a model no longer has.

    Parameters
    ----------
    why
        Why it is gone, for messages.
    only
        The only value that is still accepted; None for any, because it never had an effect.
    """

    why: str
    only: Any = None


def register(name: str) -> Callable[[M], M]:
    """Return a decorator that files a model class under a name, and lets its constructor take old parameter names.

    Parameters
    ----------
    name
        The name in `MODELS`, which becomes the class attribute ``name``.
    """

    def decorate(model: M) -> M:
        model.name = name
        if model.renamed_params or model.removed_params:
            construct: Callable[..., None] = model.__init__

            @wraps(construct)
            def init(self: Recommender, *args: Any, **given: Any) -> None:
                construct(self, *args, **current_params(model, given))

            model.__init__ = init  # type: ignore[method-assign, assignment]
        MODELS.add(name, model)
        return model

    return decorate


def saved_class(name: Any) -> type[Recommender]:
    """Return the class of a model that was saved under a name; raise `DataError` if none is registered for it.

    Examples
    --------
    >>> from dpcml import EASE
    >>> saved_class("ease") is EASE
    True
    """
    if name not in MODELS:
        hint = did_you_mean(str(name), MODELS)
        raise DataError(f"unknown model {name!r}: {hint}; import the module that registers it, or update dpcml")
    return MODELS[name]


def current_params(model: type[Estimator], given: Mapping[str, Any], *, warn: bool = True) -> dict[str, Any]:
    """Return hyper-parameters under the names of this version.

    Parameters
    ----------
    model
        A class with ``renamed_params`` (new names by old ones) and ``removed_params``.
    given
        Hyper-parameters by name, old or new.
    warn
        Warn of old names; without it they are translated silently, as for a model that an older version saved.

    Examples
    --------
    >>> from dpcml import CML
    >>> current_params(CML, {"start": "random", "dim": 8}, warn=False)
    {'init': 'random', 'dim': 8}
    """
    found = dict(given)
    for name in [name for name in found if name in model.removed_params]:
        gone, value = model.removed_params[name], found.pop(name)
        if gone.only is not None and value != gone.only:
            raise ParameterError(f"{name}={value!r}: {gone.why}")
        if warn:
            text = f"{model.__name__}: {name} has no effect: {gone.why}; leave it out, the next version refuses it"
            warnings.warn(text, FutureWarning, stacklevel=3)
    if not warn:
        return {model.renamed_params.get(name, name): value for name, value in found.items()}
    return rename_arguments(model.__name__, found, model.renamed_params, stacklevel=4)


# Largest values: memory and time grow with each, and no use of more is known.
LARGEST = {"dim": 65_536, "n_vectors": 1_024, "n_candidates": 65_536, "n_slots": 65_536, "batch_size": 2**24}


def check_sizes(parameters: Mapping[str, Any]) -> None:
    """Raise `ParameterError` for a size that would only fill the memory or never end.

    Examples
    --------
    >>> check_sizes({"dim": 10**9})
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: dim=1000000000: must be at most 65,536; memory and time grow with it
    """
    for name, most in LARGEST.items():
        value = parameters.get(name)
        if isinstance(value, (int, float)) and value > most:
            raise ParameterError(f"{name}={value!r}: must be at most {most:,}; memory and time grow with it")
