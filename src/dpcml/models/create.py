"""`create`: a model by the name of a preset or of a class."""

from __future__ import annotations

from typing import Any

from dpcml.models.base import Recommender
from dpcml.models.parameters import MODELS
from dpcml.models.presets import PRESETS
from dpcml.utils.errors import DpcmlError, ParameterError, did_you_mean


def create(name: str, **parameters: Any) -> Recommender:
    """Return an unfitted model by name: a preset (``dpcml2``), else a registered model (``ease``).

    Parameters
    ----------
    name
        A name in `dpcml.models.presets.PRESETS` or `dpcml.models.MODELS`; the preset, where it is in both.
    **parameters
        Hyper-parameters in place of the preset's or the default ones.

    Examples
    --------
    >>> create("dpcml2", epochs=5).n_candidates
    10
    >>> create("eaze")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown model or preset 'eaze': did you mean 'ease'?
    >>> create("dpcml2", margins=2)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: DPCML has no parameter 'margins': did you mean 'margin'?
    """
    if name in PRESETS:
        kind, settings = PRESETS[name]
        model: Recommender = kind(**settings)
    elif name in MODELS:
        model = MODELS[name]()
    else:
        raise ParameterError(f"unknown model or preset {name!r}: {did_you_mean(name, {*PRESETS, *MODELS})}")
    try:
        return model.set_params(**parameters)
    except DpcmlError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        raise ParameterError(f"{given}: a value of the wrong type ({error}); see the parameters of {name!r}") from None
