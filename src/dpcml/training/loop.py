"""The loop over epochs that every trained model shares: schedule, validation, early stopping, checkpoints."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dpcml.training.checkpoint import Checkpointer
from dpcml.training.history import Epoch, History
from dpcml.training.progress import Progress
from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError
from dpcml.utils.registry import Registry

SCHEDULES: Registry[Callable[[float], float]] = Registry("learning-rate schedule")
SCHEDULES.add("constant", lambda share: 1.0)
SCHEDULES.add("linear", lambda share: 1.0 - share)
SCHEDULES.add("cosine", lambda share: 0.5 * (1 + math.cos(math.pi * share)))

Callback = Callable[[History], object]  # called after each epoch; a true result ends the training


class Trainable(Protocol):
    """What the loop needs of a model in training."""

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive once; return the loss."""

    def state(self) -> dict[str, Array]:
        """Return the arrays that are the whole state, to be saved or overwritten in place."""

    def learned(self) -> list[str]:
        """Return the names of the arrays in the state that make up the model."""


@dataclass(frozen=True)
class LoopSettings:
    """How long to train, and when to stop."""

    epochs: int
    rate: float
    schedule: str = "constant"
    validate_every: int = 5
    patience: int | None = None  # validations without improvement before stopping


class TrainingError(DataError):
    """Training went wrong and was stopped."""


def train(
    model: Trainable,
    settings: LoopSettings,
    *,
    validate: Callable[[], float] | None = None,
    metric: str | None = None,
    checkpointer: Checkpointer | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
) -> History:
    """Train epoch by epoch; at the end the model holds its best validated state.

    A run that was cut off goes on from its checkpoint with ``resume``, and ends with the same bits as one that was not.
    """
    history, best = History(metric), dict[str, Array]()
    done = 0
    if resume and checkpointer is not None and checkpointer.path.exists():
        history, best, done = _restore(model, checkpointer)
    shown = progress or Progress(settings.epochs, shown=False)
    shown.done = done
    with shown, held_back_interrupt(checkpointer is not None) as interrupted:
        for number in range(done, settings.epochs):
            if _exhausted(history, settings.patience):
                break
            rate = settings.rate * SCHEDULES[settings.schedule](number / settings.epochs)
            started = time.perf_counter()
            loss = model.epoch(number, rate, shown.epoch_part)
            seconds = time.perf_counter() - started
            if not math.isfinite(loss) or _broken(model):
                raise TrainingError(_not_finite(model, number + 1, rate, checkpointer))
            last = number + 1 == settings.epochs
            judged = validate is not None and (last or (number + 1) % settings.validate_every == 0)
            value = validate() if validate is not None and judged else None
            history.epochs.append(Epoch(number + 1, loss, rate, seconds, value))
            if judged and history.best is history.epochs[-1]:
                best = {name: model.state()[name].copy() for name in model.learned()}
            shown.epoch_done(history)
            if checkpointer is not None and (last or interrupted() or checkpointer.due(number + 1)):
                _write(model, checkpointer, history, best)
                if interrupted():
                    raise KeyboardInterrupt(
                        f"stopped after epoch {number + 1}: go on from {checkpointer.path} with resume"
                    )
            if any([callback(history) for callback in callbacks]):  # noqa: C419 (all are called)
                break
    for name, values in best.items():
        model.state()[name][...] = values
    return history


@contextmanager
def held_back_interrupt(wanted: bool) -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C back until an epoch has ended, so that a whole state can be saved; a second acts at once.

    Yields a function that says whether there was one. Only the main thread can hold signals back; elsewhere, and
    where it is not wanted, Ctrl-C acts as ever.
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


def _write(model: Trainable, checkpointer: Checkpointer, history: History, best: Mapping[str, Array]) -> None:
    arrays = {f"now.{name}": values for name, values in model.state().items()}
    arrays |= {f"best.{name}": values for name, values in best.items()}
    checkpointer.write(len(history.epochs), arrays, {"history": history.to_dict()})


def _restore(model: Trainable, checkpointer: Checkpointer) -> tuple[History, dict[str, Array], int]:
    arrays, about = checkpointer.read()
    for name, values in model.state().items():
        found = arrays.get(f"now.{name}")
        if found is None or found.shape != values.shape or found.dtype != values.dtype:
            raise DataError(f"{checkpointer.path}: damaged checkpoint (no fitting array {name!r}); train anew")
        values[...] = found
    best = {name.removeprefix("best."): values for name, values in arrays.items() if name.startswith("best.")}
    history = History.from_dict(about["history"])
    return history, best, len(history.epochs)


def _broken(model: Trainable) -> list[str]:
    """Return the learned arrays that hold something that is no number.

    The loss alone does not tell: the last step of an epoch comes after it, and a vector of NaN is nobody's nearest.
    """
    state = model.state()
    with np.errstate(invalid="ignore", over="ignore"):
        return [name for name in model.learned() if not np.isfinite(state[name].sum())]  # a sum needs no memory


def _not_finite(model: Trainable, number: int, rate: float, checkpointer: Checkpointer | None) -> str:
    broken = _broken(model)
    what = f"{' and '.join(broken)} hold NaN" if broken else "the loss is no number"
    kept = f"; the last good checkpoint is {checkpointer.path}" if checkpointer and checkpointer.path.exists() else ""
    return f"{what} in epoch {number}: lower the learning rate, now {rate:g}{kept}"
