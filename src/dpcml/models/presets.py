"""Settings by name: those of the paper, and our own."""

from __future__ import annotations

from typing import Any

from dpcml.models.base import Recommender
from dpcml.models.dpcml import CML, DPCML
from dpcml.models.gfja import GFJA
from dpcml.models.neural.m2f import M2F
from dpcml.utils.registry import Registry

# The settings of the paper (and of its released runs where the text is silent): S = 10, a random start, 100 epochs. The
# learning rate is larger than the paper's and falls, because rows move only when a batch touches them.
_PAPER = {
    "n_candidates": 10,
    "init": "random",
    "epochs": 100,
    "max_user_run": 1,
    "patience": None,
    "learning_rate": 0.005,
    "n_vectors": 5,
}
_NO_DCRS = {"diversity_weight": 0.0}

PRESETS: Registry[tuple[type[Recommender], dict[str, Any]]] = Registry("preset")
PRESETS.add("dpcml", (DPCML, {}))
PRESETS.add("dpcml1", (DPCML, {**_PAPER, "negatives": "uniform", "diversity": (0.1, 0.35)}))
PRESETS.add("dpcml2", (DPCML, {**_PAPER, "negatives": "hard", "diversity": (0.05, 0.25)}))
_ONE = {**_PAPER, "n_vectors": 1}
PRESETS.add("unis", (CML, {**_ONE, "negatives": "uniform"}))
PRESETS.add("pops", (CML, {**_ONE, "negatives": "popularity"}))
PRESETS.add("2sts", (CML, {**_ONE, "negatives": "two-stage"}))
PRESETS.add("hars", (CML, {**_ONE, "negatives": "hard"}))
PRESETS.add("gfja", (GFJA, {**_PAPER, "negatives": "hard", **_NO_DCRS}))
PRESETS.add("gfja+dcrs", (GFJA, {**_PAPER, "negatives": "hard", "diversity": (0.05, 0.25), "diversity_weight": 10.0}))
PRESETS.add("m2f+dcrs", (M2F, {"diversity": (0.05, 0.25), "diversity_weight": 10.0}))
