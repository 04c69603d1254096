"""Runners: what trains a multi-interest model, in this process or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dpcml.data.interactions import Interactions
from dpcml.retrieval.exact import nearest_scores
from dpcml.training.engine import Engine
from dpcml.training.trainer import FitOptions, History, Trainer
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.status import working

if TYPE_CHECKING:
    from dpcml.models.multi_interest import MultiInterest


class Runner(Protocol):
    """Trains a model that the engine trains, see `dpcml.scale.RayRunner`."""

    def __call__(
        self, model: Any, train: Interactions, valid: Interactions | None, options: FitOptions
    ) -> tuple[FloatArray, FloatArray, History]:
        """Return the trained vectors of users and items, and the history."""


@dataclass(frozen=True)
class RunOptions(FitOptions):
    """The keywords of ``fit``, with the runner."""

    runner: Runner | None = None  # None: in this process


def runner_of(options: FitOptions) -> Runner | None:
    """Return the runner that was asked for, if any.

    Examples
    --------
    >>> runner_of(FitOptions()) is None
    True
    """
    return options.runner if isinstance(options, RunOptions) else None


def searched(
    runner: Runner | None, train: Interactions, valid: Interactions | None
) -> tuple[Interactions, Interactions | None]:
    """Return the users by whom settings are found: all of them, or the sample of a runner for large data.

    Examples
    --------
    >>> import numpy as np
    >>> searched(None, Interactions.from_csr(np.eye(3)), None)
    (Interactions(3 users, 3 items, 3 positives), None)
    """
    sample = getattr(runner, "sample", None)  # rows of users, of a runner for data of any size
    if sample is None:
        return train, valid
    rows = sample(train)
    return train.take_users(rows), None if valid is None else valid.take_users(rows)


@dataclass(frozen=True)
class EngineScorer:
    """Scores of an engine in the middle of training."""

    engine: Engine

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        return nearest_scores(self.engine.user_vectors(users), self.engine.item_vectors())


def train_here(
    model: MultiInterest, train: Interactions, valid: Interactions | None, options: FitOptions
) -> tuple[FloatArray, FloatArray, History]:
    """Train in this process; return vectors of users and items, and the history."""
    compiler = model.compile_ahead(train)
    doing = "initial vectors" if compiler is None else "initial vectors, and compiling kernels, once per machine"
    with working(doing, options.progress):
        engine = model.make_engine(train)
        if compiler is not None:
            compiler.wait()
    trainer = Trainer.from_params(model.get_params())
    history = trainer.fit(engine, EngineScorer(engine), train, valid, options, model.identity())
    return *engine.release(), history
