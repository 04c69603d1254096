"""One trial: a model with some settings, trained and judged on the validation part."""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import dataclass, field
from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import validation
from dpcml.models import Recommender, create

OK, FAILED = "ok", "failed"


@dataclass(frozen=True)
class Task:
    """What is to be tried.

    Parameters
    ----------
    number
        Of the trial, from 1.
    model
        The name of a preset or a model.
    parameters
        Its settings: searched ones and fixed ones.
    epochs
        Epochs at most, for models that are trained in epochs; None: as the parameters say.
    metric, seed
        What it is judged by, and the seed of the model.
    n_threads
        Threads of the model, where it has that parameter; None: all.
    """

    number: int
    model: str
    parameters: dict[str, Any] = field(default_factory=dict)
    epochs: int | None = None
    metric: str = "P@3"
    seed: int = 0
    n_threads: int | None = None

    def created(self) -> Recommender:
        """Return the unfitted model; metric, seed, epochs and threads are given to those models that know them.

        Examples
        --------
        >>> Task(1, "dpcml2", {"margin": 2.0}, epochs=3).created().epochs
        3
        """
        model = create(self.model, **self.parameters)
        ours = {"metric": self.metric, "random_state": self.seed, "epochs": self.epochs, "n_threads": self.n_threads}
        known = model.get_params()
        return model.set_params(**{key: value for key, value in ours.items() if key in known and value is not None})


@dataclass(frozen=True)
class Outcome:
    """How a trial went."""

    value: float | None  # the metric on the validation part, released protocol; None: it failed
    seconds: float = 0.0
    epochs: int = 0  # that were trained; 0 for models that are not trained in epochs
    best_epoch: int = 0
    error: str = ""

    @property
    def status(self) -> str:
        """``ok`` or ``failed``."""
        return FAILED if self.value is None else OK


def run_trial(task: Task, train: Interactions, valid: Interactions) -> Outcome:
    """Train a model and judge it on the validation part; whatever goes wrong is part of the outcome.

    Examples
    --------
    >>> import numpy as np
    >>> train, valid, _ = Interactions.from_csr(np.tri(12)).split((0.6, 0.2, 0.2), 0)
    >>> run_trial(Task(1, "popularity", metric="MAP"), train, valid).status
    'ok'
    >>> run_trial(Task(1, "ease", {"l2": -1.0}), train, valid).error
    'l2=-1.0: must be a finite number above 0'
    """
    started = time.perf_counter()
    try:
        model = task.created()
        quiet = {"progress": False} if "progress" in inspect.signature(model.fit).parameters else {}
        model.fit(train, valid, **quiet)
        history = getattr(model, "history_", None)
        best = history.best if history else None
        judged = None if best is None else best.validation
        value = validation(model, train, valid, task.metric) if judged is None else judged
        if not math.isfinite(value):
            return Outcome(None, time.perf_counter() - started, error=f"{task.metric} is {value}")
        seconds = time.perf_counter() - started
        return Outcome(value, seconds, len(history.epochs) if history else 0, best.number if best else 0)
    except Exception as error:  # a trial that fails must not stop the others
        said = str(error) if str(error) else type(error).__name__
        return Outcome(None, time.perf_counter() - started, error=" ".join(said.split())[:500])
