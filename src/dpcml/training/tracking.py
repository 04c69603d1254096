"""Callbacks that send a training to MLflow, TensorBoard or Weights & Biases; each is imported only when used."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from dpcml.utils.errors import DpcmlError, ParameterError
from dpcml.utils.files import full_path
from dpcml.utils.names import Registry
from dpcml.utils.packages import require

if TYPE_CHECKING:
    from dpcml.training.trainer import History

ANSWERS_WITHIN = 10.0  # seconds for a server of MLflow to accept a connection

TRACKERS: Registry[type[Tracker]] = Registry("tracker")


class Tracker(ABC):
    """A callback of ``fit`` that sends parameters, and after each epoch loss, learning rate and validation metric.

    A training is one run of the tracking program. To put more into it, open the run yourself: `run` around ``fit``, and
    `log` for figures of your own. A missing package is an error when the tracker is made, not after hours of training.

    Parameters
    ----------
    where
        Where runs go; what that is depends on the program.
    """

    module: ClassVar[str]
    extra: ClassVar[str]

    def __init__(self, where: str | Path | None = None) -> None:
        self.where = where
        self._open = False
        self._sent = 0  # epochs of ``_history`` that were sent
        self._history: History | None = None
        self._package: ModuleType = require(self.module, self.extra)

    @contextmanager
    def run(self, parameters: Mapping[str, Any]) -> Iterator[None]:
        """Open a run with some parameters; inside another `run` this does nothing. An exception marks it as failed."""
        if self._open:
            yield
            return
        try:
            self._start({name: _plain(value) for name, value in parameters.items()})
        except DpcmlError:
            raise
        except Exception as error:  # each program has errors of its own
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ParameterError(
                f"{type(self).__name__} does not start with {str(self.where or 'its own settings')!r}: {reason}; check"
                " the address, or leave the tracker out"
            ) from error
        self._open = failed = True
        try:
            yield
            failed = False
        finally:
            self._open = False
            self._finish(failed)

    def __call__(self, history: History) -> None:
        """Send the epochs that were not sent yet; after a resume, that is also those before it."""
        if history is not self._history:  # another training
            self._history, self._sent = history, 0
        for epoch in history.epochs[self._sent :]:
            figures = {"loss": epoch.loss, "learning_rate": epoch.rate, "epoch_seconds": epoch.seconds}
            if epoch.validation is not None:
                figures[f"validation_{history.metric}"] = epoch.validation
            self.log(figures, epoch.number)
        self._sent = len(history.epochs)

    def log(self, figures: Mapping[str, float | None], step: int | None = None) -> None:
        """Send figures by name to the run that is open, of an epoch or of the whole run; None is left out."""
        # MLflow refuses "@" in names, so it is the same everywhere.
        named = {name.replace("@", "_at_"): float(value) for name, value in figures.items() if value is not None}
        self._log(named, step)

    @abstractmethod
    def _start(self, parameters: dict[str, Any]) -> None:
        """Open a run."""

    @abstractmethod
    def _log(self, figures: dict[str, float], step: int | None) -> None:
        """Send figures."""

    @abstractmethod
    def _finish(self, failed: bool) -> None:
        """Close the run."""


@TRACKERS.register("mlflow")
class MLflow(Tracker):
    """Send a training to MLflow (the extra ``mlflow``); an active run is used and left open.

    Parameters
    ----------
    where
        Tracking URI, such as ``http://localhost:5000`` or ``sqlite:///mlflow.db``; by default MLflow's own choice, the
        variable ``MLFLOW_TRACKING_URI``.
    experiment
        Name of the experiment; by default MLflow's own choice, the variable ``MLFLOW_EXPERIMENT_NAME``.
    """

    module, extra = "mlflow", "mlflow"

    def __init__(self, where: str | Path | None = None, experiment: str | None = None) -> None:
        super().__init__(where)
        self.experiment = experiment

    def _start(self, parameters: dict[str, Any]) -> None:
        self._own = self._package.active_run() is None
        if self._own:
            if self.where is not None:
                self._package.set_tracking_uri(str(self.where))
            _check_answers(self._package.get_tracking_uri())
            if self.experiment is not None:
                self._package.set_experiment(self.experiment)
            self._package.start_run(run_name=str(parameters.get("model", "dpcml")))
        self._package.log_params(parameters)

    def _log(self, figures: dict[str, float], step: int | None) -> None:
        self._package.log_metrics(figures, step=step)

    def _finish(self, failed: bool) -> None:
        if self._own:
            self._package.end_run("FAILED" if failed else "FINISHED")


@TRACKERS.register("tensorboard")
class TensorBoard(Tracker):
    """Write event files for TensorBoard (the extra ``tensorboard``, which is tensorboardX); ``tensorboard --logdir``.

    Parameters
    ----------
    where
        Folder of the event files, ``runs/tensorboard`` by default; each run gets a folder in it.
    """

    module, extra = "tensorboardX", "tensorboard"

    def _start(self, parameters: dict[str, Any]) -> None:
        base = full_path(self.where or "runs/tensorboard")
        taken = {folder.name for folder in base.glob("*")}
        name = next(name for k in range(1, len(taken) + 2) if (name := f"run-{k}") not in taken)
        self._writer = self._package.SummaryWriter(str(base / name))
        rows = "\n".join(f"| {key} | {value} |" for key, value in parameters.items())
        self._writer.add_text("parameters", f"| parameter | value |\n|---|---|\n{rows}")

    def _log(self, figures: dict[str, float], step: int | None) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step or 0)

    def _finish(self, failed: bool) -> None:
        self._writer.close()


@TRACKERS.register("wandb")
class WandB(Tracker):
    """Send a training to Weights & Biases (the extra ``wandb``); ``WANDB_MODE=offline`` writes files only.

    Parameters
    ----------
    where
        Name of the project, ``dpcml`` by default.
    """

    module, extra = "wandb", "wandb"

    def _start(self, parameters: dict[str, Any]) -> None:
        try:
            self._run = self._package.init(project=str(self.where or "dpcml"), config=parameters)
        except self._package.errors.Error as error:
            way_out = "run 'wandb login', or set WANDB_MODE=offline to write files only"
            raise ParameterError(f"Weights & Biases does not start: {error}; {way_out}") from None

    def _log(self, figures: dict[str, float], step: int | None) -> None:
        if step is None:  # steps must not fall
            self._run.summary.update(figures)
        else:
            self._run.log(figures, step=step, commit=True)

    def _finish(self, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


def make_tracker(text: str) -> Tracker:
    """Return a tracker by name, or by ``NAME=WHERE``.

    Examples
    --------
    >>> make_tracker("mlfow=http://localhost:5000")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown tracker 'mlfow': did you mean 'mlflow'?
    """
    name, _, where = text.partition("=")
    return TRACKERS[name](where or None)


def _check_answers(address: str) -> None:
    """Raise if nothing listens at an HTTP address; MLflow itself goes on trying for minutes."""
    found = urlsplit(address)
    if found.scheme in ("http", "https") and found.hostname:
        port = found.port or (443 if found.scheme == "https" else 80)
        socket.create_connection((found.hostname, port), timeout=ANSWERS_WITHIN).close()


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
