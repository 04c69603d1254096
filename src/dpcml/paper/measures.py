"""What a run records of a fitted model: groups of figures, found by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcml.data.split import Split
from dpcml.evaluation.evaluate import validation
from dpcml.evaluation.report import Report
from dpcml.models import Recommender
from dpcml.paper.paper import METRICS
from dpcml.utils.errors import DataError
from dpcml.utils.registry import Registry


@dataclass(frozen=True)
class Fitted:
    """A model after training, what it was trained on, and what its evaluation found."""

    model: Recommender
    split: Split
    report: Report


@dataclass(frozen=True)
class Measure:
    """A group of figures; ``beyond`` where the evaluation has to look beyond accuracy for them."""

    figures: Callable[[Fitted], dict[str, float]]
    beyond: bool = False


MEASURES: Registry[Measure] = Registry("measure")
MEASURES.add("accuracy", Measure(lambda run: {name: run.report.metrics[name] for name in METRICS}))


def _diversity(run: Fitted) -> dict[str, float]:
    wanted = ("MaxDiv@", "cooccurrence_ILD@", "attribute_ILD@")
    return {name: value for name, value in run.report.metrics.items() if name.startswith(wanted)}


def _categories(run: Fitted) -> dict[str, float]:
    """Return MAP by category, and the share of the test positives that each category has."""
    test, attributes = run.split.test, run.split.test.items.attributes
    if attributes is None:
        raise DataError("the items have no attributes: accuracy by category needs genres or tags")
    counts = (test.csr @ attributes.matrix.astype(np.float64)).sum(axis=0)
    share = dict(zip(map(str, attributes.names), (counts / test.n_positives).tolist(), strict=True))
    found = run.report.categories
    return {f"MAP {name}": value for name, value in found.items()} | {f"share {name}": share[name] for name in found}


def _generalisation(run: Fitted) -> dict[str, float]:
    history: Any = getattr(run.model, "history_", None)
    loss = history.best.loss if history is not None and history.best else math.nan
    valid = math.nan if run.split.valid is None else validation(run.model, run.split.train, run.split.valid, "MRR")
    return {"training loss": loss, "validation MRR": valid}


MEASURES.add("diversity", Measure(_diversity, beyond=True))
MEASURES.add("categories", Measure(_categories, beyond=True))
MEASURES.add("generalisation", Measure(_generalisation))
