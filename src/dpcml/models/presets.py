"""Models by name: the classes in `MODELS`, and named settings of the paper and our own in `PRESETS`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dpcml.models.base import Recommender
from dpcml.models.blend import Blend
from dpcml.models.dpcml import CML, DPCML, GFJA
from dpcml.models.ease import EASE
from dpcml.models.ials import IALS
from dpcml.models.implicit_mf import BPR
from dpcml.models.item_item import ItemKNN, RP3Beta
from dpcml.models.neural.adacml import AdaCML
from dpcml.models.neural.hlr import HLR
from dpcml.models.neural.lrml import LRML
from dpcml.models.neural.multi_vector import M2F, MGMF
from dpcml.models.neural.ncf import GMF, MLP, NeuMF
from dpcml.models.neural.transcf import TransCF
from dpcml.models.parameters import MODELS
from dpcml.models.popularity import Popularity
from dpcml.utils.errors import DpcmlError, ParameterError, did_you_mean
from dpcml.utils.names import Registry

# Every module with a model is imported here, so that `MODELS` is complete.
__all__ = [
    "BPR",
    "CML",
    "DPCML",
    "EASE",
    "GFJA",
    "GMF",
    "HLR",
    "IALS",
    "LRML",
    "M2F",
    "MGMF",
    "MLP",
    "MODELS",
    "PRESETS",
    "RECOMMENDED",
    "AdaCML",
    "Blend",
    "ItemKNN",
    "NeuMF",
    "Popularity",
    "RP3Beta",
    "TransCF",
    "create",
    "default_params",
]

# The settings of the paper (and of its released runs where the text is silent): S = 10, random initial vectors, 100
# epochs. The learning rate is larger than the paper's and falls, because rows move only when a batch touches them.
_PAPER_ONE = {
    "n_candidates": 10,
    "init": "random",
    "epochs": 100,
    "max_user_run": 1,
    "patience": None,
    "learning_rate": 0.005,
}
_PAPER = {**_PAPER_ONE, "n_vectors": 5}
_PAPER_DPCML = {**_PAPER, "margin": 1.0, "pull": 0.0, "popularity": 0.0, "average": 0.0}

RECOMMENDED = "blend"  # what is trained where no model is named

PRESETS: Registry[tuple[type[Recommender], dict[str, Any]]] = Registry("preset")
PRESETS.add("dpcml", (DPCML, {}))
PRESETS.add("dpcml1", (DPCML, {**_PAPER_DPCML, "negatives": "uniform", "diversity": (0.1, 0.35)}))
PRESETS.add("dpcml2", (DPCML, {**_PAPER_DPCML, "negatives": "hard", "diversity": (0.05, 0.25)}))
PRESETS.add("unis", (CML, {**_PAPER_ONE, "negatives": "uniform"}))
PRESETS.add("pops", (CML, {**_PAPER_ONE, "negatives": "popularity"}))
PRESETS.add("2sts", (CML, {**_PAPER_ONE, "negatives": "two-stage"}))
PRESETS.add("hars", (CML, {**_PAPER_ONE, "negatives": "hard"}))
PRESETS.add("gfja", (GFJA, {**_PAPER, "negatives": "hard", "diversity_weight": 0.0}))
PRESETS.add("gfja+dcrs", (GFJA, {**_PAPER, "negatives": "hard", "diversity": (0.05, 0.25), "diversity_weight": 10.0}))
PRESETS.add("m2f+dcrs", (M2F, {"diversity": (0.05, 0.25), "diversity_weight": 10.0}))


def create(name: str, **parameters: Any) -> Recommender:
    """Return an unfitted model by name: a preset (``dpcml2``), else a registered model (``ease``).

    Parameters
    ----------
    name
        A name in `PRESETS` or `MODELS`; the preset, where it is in both.
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


def default_params(name: str) -> dict[str, Any]:
    """Return the parameters that a model or preset has by default, without an instance of it.

    Parameters
    ----------
    name
        A name in `PRESETS` or `MODELS`; the preset, where it is in both.

    Examples
    --------
    >>> default_params("itemknn")
    {'k': 100, 'shrink': 10.0}
    """
    kind, settings = PRESETS[name] if name in PRESETS else (MODELS[name], {})
    return {field.name: field.default for field in fields(kind)} | settings
