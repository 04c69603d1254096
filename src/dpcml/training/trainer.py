"""The training loop that all iterative models share: schedule, validation, early stopping, checkpoints, history."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import validation
from dpcml.evaluation.protocol import metric_cutoff
from dpcml.evaluation.ranks import Scorer, check_held_out
from dpcml.training.checkpoint import Checkpoint, Checkpointer
from dpcml.training.progress import Progress
from dpcml.training.tracking import Tracker
from dpcml.utils.arrays import Array
from dpcml.utils.checks import at_least, choice, positive
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.names import Registry
from dpcml.utils.threads import thread_count

SCHEDULES: Registry[Callable[[float], float]] = Registry("learning-rate schedule")
SCHEDULES.add("constant", lambda share: 1.0)
SCHEDULES.add("linear", lambda share: 1.0 - share)
SCHEDULES.add("cosine", lambda share: 0.5 * (1 + math.cos(math.pi * share)))


@dataclass(frozen=True)
class Epoch:
    """One epoch of training."""

    number: int  # from 1
    loss: float  # mean per positive, before each batch's step
    rate: float  # learning rate
    seconds: float
    validation: float | None = None  # value of the metric, if it was evaluated after this epoch


@dataclass
class History:
    """All epochs so far, and the best of them."""

    metric: str | None = None  # name of the validation metric
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def best(self) -> Epoch | None:
        """The earliest epoch with the highest validation value; the last epoch if none was validated.

        Examples
        --------
        >>> history = History("P@3", [Epoch(1, 0.9, 0.01, 1.0, 0.2), Epoch(2, 0.8, 0.01, 1.0, 0.1)])
        >>> history.best.number
        1
        """
        validated = [epoch for epoch in self.epochs if epoch.validation is not None]
        if validated:
            return max(validated, key=lambda epoch: (epoch.validation or 0.0, -epoch.number))
        return self.epochs[-1] if self.epochs else None

    @property
    def seconds(self) -> float:
        """Training time of all epochs, without validation."""
        return sum(epoch.seconds for epoch in self.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain data."""
        return {"metric": self.metric, "epochs": [asdict(epoch) for epoch in self.epochs]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> History:
        """Return the history that `to_dict` gave."""
        return cls(plain["metric"], [Epoch(**epoch) for epoch in plain["epochs"]])


Callback = Callable[[History], object]  # called after each epoch; a true result ends the training


class TrainingError(DataError):
    """Training diverged and was stopped."""


class Learner(Protocol):
    """What the trainer runs: arrays that change in place, one epoch per call."""

    def compile(self) -> None:
        """Compile kernels, or load them from the cache on disk."""

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive once; return the loss."""

    def state(self) -> dict[str, Array]:
        """Return the arrays that are the whole state, to be saved or overwritten in place."""

    def learned(self) -> list[str]:
        """Return the names of the arrays in the state that make up the model."""


@dataclass(frozen=True)
class FitOptions:
    """The keywords of ``fit``, the same for every model."""

    checkpoint: str | Path | Checkpoint | None = None
    resume: bool = False
    callbacks: Sequence[Callback] = ()
    progress: bool | None = None

    def refuse(self, model: str) -> None:
        """Raise a `ParameterError` for an option that does not apply to a model without epochs.

        Examples
        --------
        >>> FitOptions(resume=True).refuse("EASE")
        Traceback (most recent call last):
        ...
        dpcml.utils.errors.ParameterError: EASE.fit: resume does not apply, EASE learns in one step; leave it out
        """
        for name in ("checkpoint", "resume", "callbacks"):
            if getattr(self, name):
                raise ParameterError(f"{model}.fit: {name} does not apply, {model} learns in one step; leave it out")

    def checkpointer(self, identity: Mapping[str, Any]) -> Checkpointer | None:
        """Return what writes the checkpoint of the run with this identity; None without a checkpoint."""
        if self.checkpoint is None:
            if self.resume:
                raise ParameterError("resume=True: pass the folder of the checkpoint as checkpoint=... too")
            return None
        given = self.checkpoint
        return Checkpointer(given if isinstance(given, Checkpoint) else Checkpoint(given), identity)


@dataclass(frozen=True)
class Trainer:
    """Runs a learner epoch by epoch; the learner ends with its best validated state.

    Parameters
    ----------
    epochs
        Passes over the training data.
    learning_rate
        Rate of the first epoch; None for learners without one.
    schedule
        How the rate falls, a name in `SCHEDULES`.
    validate_every
        Epochs between two validations; the last epoch is always validated.
    patience
        Stop after this many validations without improvement; None never stops early.
    metric
        The validation metric.
    stop_after
        End after this epoch of the schedule, which stays that of ``epochs``; None runs all.
    n_threads
        Threads of the validation; all cores by default.

    Examples
    --------
    >>> class Halving:
    ...     x = np.ones(1)
    ...     def epoch(self, number, rate, report=None):
    ...         self.x *= 1 - rate
    ...         return float(self.x[0])
    ...     def state(self):
    ...         return {"x": self.x}
    ...     def learned(self):
    ...         return ["x"]
    >>> [epoch.loss for epoch in Trainer(epochs=2, learning_rate=0.5).run(Halving()).epochs]
    [0.5, 0.25]
    """

    epochs: int
    learning_rate: float | None = None
    schedule: str = "constant"
    validate_every: int = 5
    patience: int | None = None
    metric: str = "P@3"
    stop_after: int | None = None
    n_threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "validate_every"):
            at_least(name, getattr(self, name), 1)
        for name in ("patience", "stop_after"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 1)
        if self.learning_rate is not None:
            positive("learning_rate", self.learning_rate)
        choice("schedule", self.schedule, tuple(SCHEDULES))
        metric_cutoff(self.metric)
        thread_count(self.n_threads)

    @property
    def last_epoch(self) -> int:
        """Number of the epoch after which the training ends at the latest."""
        return self.epochs if self.stop_after is None else min(self.epochs, self.stop_after)

    @classmethod
    def from_params(cls, parameters: Mapping[str, Any]) -> Trainer:
        """Return the trainer that a model's hyper-parameters describe; it checks those that it takes.

        Examples
        --------
        >>> Trainer.from_params({"epochs": 3, "dim": 8}).epochs
        3
        """
        own = {entry.name for entry in fields(cls)}
        return cls(**{name: value for name, value in parameters.items() if name in own})

    def fit(
        self,
        learner: Learner,
        scorer: Scorer,
        train: Interactions,
        valid: Interactions | None,
        options: FitOptions,
        identity: Mapping[str, Any],
    ) -> History:
        """Prepare validation, checkpoint and progress bar, and run the learner.

        Parameters
        ----------
        learner, scorer
            What is trained, and the scores of its current state.
        train, valid
            Training positives, and held-out ones for early stopping.
        options
            The keywords of ``fit``.
        identity
            Model and parameters: a checkpoint of another run is refused.
        """
        if valid is not None:  # before training, not at the first validation
            check_held_out(train, valid)
            if not valid.n_positives:
                raise DataError("no user has a validation positive: there is nothing to choose by")

        def validate() -> float:
            assert valid is not None
            return validation(scorer, train, valid, self.metric, n_threads=self.n_threads)

        data = {"data": train.content_hash, "valid": None if valid is None else valid.content_hash}
        checkpointer = options.checkpointer({**identity, **data, "n_threads": None})
        progress = Progress(self.last_epoch, positives=train.n_positives, shown=options.progress)
        with progress.slow_step("compiling kernels, once"):
            learner.compile()
        with ExitStack() as tracked:
            for callback in options.callbacks:
                if isinstance(callback, Tracker):
                    tracked.enter_context(callback.run(identity))
            return self.run(
                learner,
                None if valid is None else validate,
                checkpointer=checkpointer,
                resume=options.resume,
                callbacks=options.callbacks,
                progress=progress,
            )

    def run(
        self,
        learner: Learner,
        validate: Callable[[], float] | None = None,
        *,
        checkpointer: Checkpointer | None = None,
        resume: bool = False,
        callbacks: Sequence[Callback] = (),
        progress: Progress | None = None,
    ) -> History:
        """Run all epochs, or until validation or a callback ends them, and return the history.

        A run that was stopped goes on from its checkpoint with ``resume``, and ends with the same bits as a run without
        a break.
        """
        history, best = History(self.metric), dict[str, Array]()
        if resume and checkpointer is not None and checkpointer.exists():
            history, best = _restore(learner, checkpointer)
        shown = progress or Progress(self.last_epoch, shown=False)
        shown.done = done = len(history.epochs)
        with shown, deferred_interrupt(checkpointer is not None) as interrupted:
            for number in range(done, self.last_epoch):
                if _exhausted(history, self.patience):
                    break
                history.epochs.append(self._epoch(learner, number, validate, checkpointer, shown))
                if history.epochs[-1].validation is not None and history.best is history.epochs[-1]:
                    best = {name: learner.state()[name].copy() for name in learner.learned()}
                shown.epoch_done(history)
                last = number + 1 == self.last_epoch
                if checkpointer is not None and (last or interrupted() or checkpointer.due(number + 1)):
                    _write(learner, checkpointer, history, best)
                    if interrupted():
                        raise KeyboardInterrupt(
                            f"stopped after epoch {number + 1}: go on from {checkpointer.path} with resume"
                        )
                if any([callback(history) for callback in callbacks]):  # noqa: C419 (all are called)
                    break
        for name, values in best.items():
            learner.state()[name][...] = values
        return history

    def _epoch(
        self,
        learner: Learner,
        number: int,
        validate: Callable[[], float] | None,
        checkpointer: Checkpointer | None,
        progress: Progress,
    ) -> Epoch:
        """Train and perhaps validate one epoch."""
        rate = (self.learning_rate or 0.0) * SCHEDULES[self.schedule](number / self.epochs)
        started = time.perf_counter()
        loss = learner.epoch(number, rate, progress.epoch_part)
        seconds = time.perf_counter() - started
        if not math.isfinite(loss) or _broken(learner):
            raise TrainingError(_not_finite(learner, number + 1, rate, checkpointer))
        due = number + 1 == self.last_epoch or (number + 1) % self.validate_every == 0
        value = validate() if validate is not None and due else None
        return Epoch(number + 1, loss, rate, seconds, value)


@contextmanager
def deferred_interrupt(wanted: bool) -> Iterator[Callable[[], bool]]:
    """Defer the first Ctrl-C to the end of the epoch, so that a whole state can be saved; a second one acts at once.

    Yields a function that says whether there was one. Only the main thread can defer signals; elsewhere, and where it
    is not wanted, Ctrl-C acts as usual.
    """
    asked = False

    def note(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print("\nstopping after this epoch (Ctrl-C again: at once)", file=sys.stderr, flush=True)  # noqa: T201

    if not wanted or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _exhausted(history: History, patience: int | None) -> bool:
    if patience is None or history.best is None:
        return False
    since = [epoch for epoch in history.epochs if epoch.validation is not None and epoch.number > history.best.number]
    return len(since) >= patience


def _write(learner: Learner, checkpointer: Checkpointer, history: History, best: Mapping[str, Array]) -> None:
    arrays = {f"now.{name}": values for name, values in learner.state().items()}
    arrays |= {f"best.{name}": values for name, values in best.items()}
    checkpointer.write(len(history.epochs), arrays, {"history": history.to_dict()})


def _restore(learner: Learner, checkpointer: Checkpointer) -> tuple[History, dict[str, Array]]:
    arrays, about = checkpointer.read()
    for name, values in learner.state().items():
        found = arrays.get(f"now.{name}")
        if found is None or found.shape != values.shape or found.dtype != values.dtype:
            raise DataError(f"{checkpointer.path}: damaged checkpoint (no array {name!r} that fits); train anew")
        values[...] = found
    best = {name.removeprefix("best."): values for name, values in arrays.items() if name.startswith("best.")}
    return History.from_dict(about["history"]), best


def _broken(learner: Learner) -> list[str]:
    """Return the names of the learned arrays that hold NaN or infinity.

    A finite loss is not enough: the last step of an epoch comes after it, and a vector of NaN is never the nearest.
    """
    state = learner.state()
    with np.errstate(invalid="ignore", over="ignore"):
        return [name for name in learner.learned() if not np.isfinite(state[name].sum())]  # a sum needs no memory


def _not_finite(learner: Learner, number: int, rate: float, checkpointer: Checkpointer | None) -> str:
    broken = _broken(learner)
    what = f"{' and '.join(broken)} hold NaN or infinity" if broken else "the loss is NaN or infinite"
    kept = f"; the last good checkpoint is {checkpointer.path}" if checkpointer and checkpointer.path.exists() else ""
    return f"{what} in epoch {number}: lower the learning rate, now {rate:g}{kept}"
