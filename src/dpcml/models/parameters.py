"""Hyper-parameters by name: the registry of models, names that an older version used, and models among parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.names import Registry, rename_arguments

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


def named(models: Sequence[Recommender]) -> dict[str, Recommender]:
    """Return models by name; a second one of the same kind gets a number.

    Examples
    --------
    >>> from dpcml import EASE
    >>> list(named([EASE(), EASE(l2=7.0)]))
    ['ease', 'ease_2']
    """
    found: dict[str, Recommender] = {}
    for model in models:
        same = sum(type(one) is type(model) for one in found.values())
        found[f"{model.name}_{same + 1}" if same else model.name] = model
    return found


def unfitted(model: Recommender) -> Recommender:
    """Return an unfitted copy of a model."""
    return type(model)(**model.get_params(deep=False))


def nested_params(models: Sequence[Recommender]) -> dict[str, Any]:
    """Return the hyper-parameters of all models, with the model's name in front.

    Examples
    --------
    >>> from dpcml import EASE
    >>> nested_params([EASE(l2=7.0)])["ease__l2"]
    7.0
    """
    members = named(models).items()
    return {f"{name}__{key}": value for name, model in members for key, value in model.get_params().items()}


def member_with(members: Mapping[str, Recommender], name: str) -> str | None:
    """Return which of several models a hyper-parameter without a prefix is of: the first, or the only one that has it.

    Examples
    --------
    >>> from dpcml import EASE, ItemKNN
    >>> member_with(named([EASE(), ItemKNN()]), "shrink"), member_with(named([EASE(), ItemKNN()]), "dim")
    ('itemknn', None)
    """
    having = [member for member, model in members.items() if name in model.get_params(deep=False)]
    return having[0] if len(having) == 1 or next(iter(members)) in having else None


def with_nested_params(
    models: Sequence[Recommender], own: Collection[str], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return values in which those for a model are part of ``models``, a list of changed copies.

    Parameters
    ----------
    models
        Models among the hyper-parameters of another.
    own
        Names of the other's own hyper-parameters.
    values
        Hyper-parameters by name: own ones, ``ease__l2`` for that of a model, or ``l2`` if only one model has it; one
        that the first model has is its own.
    """
    if not _are_models(models):
        return {"models": models}  # the other's own check says what is wrong with them
    members = named(models)
    found, nested = dict[str, Any](), dict[str, dict[str, Any]]()
    for name, value in values.items():
        member, divider, key = name.partition("__")
        owner = None if divider or name in own else member_with(members, name)
        if divider:
            nested.setdefault(member, {})[key] = value
        elif owner is not None:
            nested.setdefault(owner, {})[name] = value
        else:
            found[name] = value
    if nested:
        copies = [unfitted(model) for model in models]
        for member, changes in nested.items():
            if member not in members:
                raise ParameterError(f"Blend has no member {member!r}: {did_you_mean(member, members)}")
            named(copies)[member].set_params(**changes)
        found["models"] = copies
    return found


def _are_models(models: Any) -> bool:
    from dpcml.models.base import Recommender  # it imports this module

    return isinstance(models, (list, tuple)) and all(isinstance(one, Recommender) for one in models)


def to_plain(model: Recommender) -> dict[str, Any]:
    """Return name and hyper-parameters of a model as plain data."""
    return {"model": model.name, "parameters": model.plain_params()}


def from_plain(plain: Recommender | Mapping[str, Any]) -> Recommender:
    """Return the unfitted model that `to_plain` describes."""
    if not isinstance(plain, Mapping):  # a model already
        return plain
    kind, parameters = saved_class(plain["model"]), plain["parameters"]
    if parameters.get("models") is not None:
        parameters = {**parameters, "models": [from_plain(one) for one in parameters["models"]]}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    return kind().set_params(**current_params(kind, values, warn=False))
