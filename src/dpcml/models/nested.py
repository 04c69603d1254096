"""Models among the hyper-parameters of a model: their names, their own parameters, and both as plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpcml.models.base import Recommender
from dpcml.models.parameters import current_params, saved_class
from dpcml.utils.errors import ParameterError, did_you_mean


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
        Hyper-parameters by name: own ones, ``ease__l2`` for that of a model, or ``l2`` if only one model has it.
    """
    members = named(models)
    found, nested = dict[str, Any](), dict[str, dict[str, Any]]()
    for name, value in values.items():
        having = [member for member, model in members.items() if name in model.get_params(deep=False)]
        member, divider, key = name.partition("__")
        if divider:
            nested.setdefault(member, {})[key] = value
        elif name not in own and len(having) == 1:
            nested.setdefault(having[0], {})[name] = value
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


def to_plain(model: Recommender) -> dict[str, Any]:
    """Return name and hyper-parameters of a model as plain data."""
    return {"model": model.name, "parameters": model.plain_params()}


def from_plain(plain: Any) -> Recommender:
    """Return the unfitted model that `to_plain` describes."""
    if isinstance(plain, Recommender):
        return plain
    kind, parameters = saved_class(plain["model"]), plain["parameters"]
    if parameters.get("models") is not None:
        parameters = {**parameters, "models": [from_plain(one) for one in parameters["models"]]}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    return kind().set_params(**current_params(kind, values, warn=False))
