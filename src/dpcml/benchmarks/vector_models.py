"""Models with interests, for benchmarks of what only they can do."""

from __future__ import annotations

from typing import Any

from dpcml.models import create
from dpcml.models.multi_interest import MultiInterest
from dpcml.utils.errors import ParameterError


def vector_model(name: str, **parameters: Any) -> MultiInterest:
    """Return an unfitted model with vectors, or say that this one has none, before anything is trained.

    Examples
    --------
    >>> vector_model("cml", dim=8).dim
    8
    >>> vector_model("ease")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: ease: has no vectors of interests; use dpcml, cml or gfja
    """
    model = create(name)
    if not isinstance(model, MultiInterest):
        raise ParameterError(f"{name}: has no vectors of interests; use dpcml, cml or gfja")
    return model.set_params(**parameters)
