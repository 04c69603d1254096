"""Workers: any number of processes, here or on Ray, that take trials from one optuna study until none is left."""

from __future__ import annotations

import fcntl
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import validation
from dpcml.models import Recommender, create
from dpcml.results_store import parameters_text
from dpcml.training.trainer import History
from dpcml.tuning.space import SearchSpace
from dpcml.utils.cluster import ray_session
from dpcml.utils.names import Registry
from dpcml.utils.packages import require
from dpcml.utils.threads import default_threads

# Attributes of a trial in the study.
PARAMETERS, OUTCOME, WORKER, PLANNED, DEFAULTS = "parameters", "outcome", "worker", "planned", "defaults"


@dataclass(frozen=True)
class SearchConfig:
    """All that a worker needs to take part in a search, training data apart."""

    journal: Path  # file of optuna's journal storage
    study: str
    model: str
    space: SearchSpace
    metric: str = "P@3"
    seed: int = 0
    epochs: int | None = None  # of every trial; None: as the parameters say
    halvings: int = 0  # rungs of successive halving
    adaptive: bool = False  # TPE: points depend on earlier trials; otherwise all of them are planned at the start
    last: int = 0  # the number of trials at which an adaptive search ends
    n_threads: int = 1
    address: str | None = None  # of the Ray cluster

    def create(self, parameters: dict[str, Any]) -> Recommender:
        """Return the unfitted model; metric, seed, epochs and threads are set where it has such parameters."""
        model = create(self.model, **parameters)
        ours = {
            "metric": self.metric, "random_state": self.seed, "epochs": self.epochs, "n_threads": self.n_threads,
        }  # fmt: skip
        known = {key: value for key, value in ours.items() if value is not None and model.param_name(key) is not None}
        return model.set_params(**known)

    def open(self) -> Any:
        """Return the optuna study, which is created in the journal at the first call."""
        optuna = require("optuna", "tune")
        pruner = optuna.pruners.NopPruner()
        if self.halvings and self.epochs is not None:
            pruner = optuna.pruners.SuccessiveHalvingPruner(
                min_resource=max(1, self.epochs >> self.halvings), reduction_factor=2
            )
        backend = optuna.storages.journal.JournalFileBackend(str(self.journal), _JournalLock(self.journal))
        with quiet_optuna():
            return optuna.create_study(
                storage=optuna.storages.JournalStorage(backend), study_name=self.study, direction="maximize",
                pruner=pruner, load_if_exists=True,
            )  # fmt: skip


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep optuna from logging that a study was created or a trial has ended."""
    logs = require("optuna", "tune").logging
    before = logs.get_verbosity()
    logs.set_verbosity(logs.WARNING)
    try:
        yield
    finally:
        logs.set_verbosity(before)


class _JournalLock:
    """A lock on the journal that the kernel releases with its process; optuna's own would outlive it for 30 seconds."""

    def __init__(self, path: Path) -> None:
        self._path, self._handle = path, -1

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._handle = os.open(self._path, os.O_RDWR)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._handle)


def work(config: SearchConfig, train: Interactions, valid: Interactions, worker: str) -> Iterator[None]:
    """Run trials of a study until none is left; yields after each.

    A worker is named ``host:process:number``, the process being that of the search.
    """
    study = config.open()
    while (trial := _next_trial(study, config, worker)) is not None:
        run_trial(study, trial, config, train, valid)
        yield


def _next_trial(study: Any, config: SearchConfig, worker: str) -> Any:
    """Return the next trial: a planned one, or one where TPE expects good values; None where the search is over."""
    optuna = require("optuna", "tune")
    states = optuna.trial.TrialState
    trials = study.get_trials(deepcopy=False)
    waiting = any(trial.state == states.WAITING for trial in trials)
    if not waiting and not (config.adaptive and len(trials) < config.last):
        return None
    if config.adaptive:
        # The seed depends on the trials so far: a search that was killed goes on with the points that it would have
        # had. Trials that were lost with their worker do not count, because they are run again.
        n = sum(not lost(trial) for trial in trials)
        seed = int(np.random.SeedSequence([config.seed, n, int(worker.rpartition(":")[2])]).generate_state(1)[0])
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    trial = study.ask()
    if PLANNED not in trial.user_attrs and not (config.adaptive and trial.number < config.last):
        study.tell(trial, state=states.FAIL)  # another worker took the last one at the same time
        return None
    trial.set_user_attr(WORKER, worker)
    return trial


def lost(trial: Any) -> bool:
    """Say whether a trial ended with the process that ran it; one that failed by itself has an error."""
    failed: bool = trial.state == require("optuna", "tune").trial.TrialState.FAIL
    return failed and not trial.user_attrs.get(OUTCOME, {}).get("error")


def run_trial(study: Any, trial: Any, config: SearchConfig, train: Interactions, valid: Interactions) -> None:
    """Fit a model and evaluate it on the validation part; a trial that fails or is pruned says so in the study."""
    states = require("optuna", "tune").trial.TrialState
    started = time.perf_counter()
    point = {} if DEFAULTS in trial.user_attrs else config.space.suggest(trial)
    parameters = {**config.space.fixed, **point}
    trial.set_user_attr(PARAMETERS, parameters_text(parameters))
    for same in study.get_trials(deepcopy=False, states=(states.COMPLETE,)):
        if same.user_attrs[PARAMETERS] == parameters_text(parameters):  # TPE may suggest a point twice
            trial.set_user_attr(OUTCOME, same.user_attrs[OUTCOME])
            study.tell(trial, same.value)
            return
    pruning = _Pruning(trial, config.epochs)
    outcome: dict[str, Any] = {"epochs": 0, "best_epoch": 0, "error": ""}
    value = None
    try:
        model = config.create(parameters)
        model.fit(train, valid, progress=False, callbacks=[pruning] if model.iterative else [])
        history: History | None = getattr(model, "history_", None)
        best = history.best if history else None
        if history and best:
            outcome |= {"epochs": len(history.epochs), "best_epoch": best.number}
        value = model.known_validation(config.metric)
        if value is None:
            value = validation(model, train, valid, config.metric)
        if not math.isfinite(value):
            outcome["error"] = f"{config.metric} is {value}"
    except Exception as error:  # a trial that fails must not end the others
        outcome["error"] = " ".join((str(error) or type(error).__name__).split())[:500]
    trial.set_user_attr(OUTCOME, outcome | {"seconds": round(time.perf_counter() - started, 3)})
    if outcome["error"]:
        study.tell(trial, state=states.FAIL)
    elif pruning.pruned:
        study.tell(trial, state=states.PRUNED)
    else:
        study.tell(trial, value)


@dataclass
class _Pruning:
    """A callback of ``fit``: reports validation values to the study, and ends a run that the pruner gives up."""

    trial: Any
    epochs: int | None
    pruned: bool = False

    def __call__(self, history: History) -> bool:
        last = history.epochs[-1]
        if last.validation is not None:
            self.trial.report(last.validation, last.number)
            self.pruned = (self.epochs is None or last.number < self.epochs) and self.trial.should_prune()
        return self.pruned


class WorkerPool(Protocol):
    """Starts workers; used in a ``with``, which ends them."""

    def __enter__(self) -> Self:
        """Get ready."""

    def __exit__(self, *_: object) -> None:
        """End all workers."""

    def start(self, worker: str) -> Any:
        """Start a worker and return its handle."""

    def ended(self, handle: Any) -> str | None:
        """Return None while a worker runs, then why it died, or an empty text if it did not."""


class LocalPool:
    """Worker processes on this machine."""

    def __init__(self, config: SearchConfig, train: Interactions, valid: Interactions, count: int) -> None:
        self.arguments = config, train, valid
        self._processes: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def start(self, worker: str) -> Any:
        """Start a process."""
        context = multiprocessing.get_context("spawn")  # a fork would copy locks of threads that it does not have
        process = context.Process(target=_in_process, args=(*self.arguments, worker), daemon=True)
        with default_threads(self.arguments[0].n_threads), blocked_signals(signal.SIGINT):  # the parent handles Ctrl-C
            process.start()
        self._processes.append(process)
        return process

    def ended(self, handle: Any) -> str | None:
        """Return why a process ended, see `WorkerPool`."""
        if handle.is_alive():
            return None
        code = handle.exitcode
        if code is not None and code < 0:
            perhaps = "; out of memory, perhaps" if code == -signal.SIGKILL else ""
            return f"its process was ended by signal {-code}{perhaps}"
        return f"its process ended with exit code {code}" if code else ""


def _in_process(config: SearchConfig, train: Interactions, valid: Interactions, worker: str) -> None:
    parent = multiprocessing.parent_process()
    for _ in work(config, train, valid, worker):
        if parent is None or not parent.is_alive():
            return


class RayPool:
    """Tasks on Ray, each with as many cores as a trial has threads.

    It uses the cluster at the address of the search, or that ``RAY_ADDRESS`` names, whose machines must share the
    folder of the results; without one, Ray is started on this machine for the time of the search. Needs ray: ``pip
    install -e '.[ray]'``.
    """

    def __init__(self, config: SearchConfig, train: Interactions, valid: Interactions, count: int) -> None:
        self._ray: Any = require("ray", "ray")
        self.arguments, self.count = (config, train, valid), count
        self._session = ExitStack()
        self._shared: list[Any] = []

    def __enter__(self) -> Self:
        config = self.arguments[0]
        with default_threads(config.n_threads):
            session = ray_session(config.address, cores=self.count * config.n_threads)
            self._ray = self._session.enter_context(session)
        self._shared = [self._ray.put(argument) for argument in self.arguments]
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.clear()
        self._session.close()

    def start(self, worker: str) -> Any:
        """Start a task."""
        remote = self._ray.remote(num_cpus=self.arguments[0].n_threads, max_retries=0)(_on_ray)
        return remote.remote(*self._shared, worker)

    def ended(self, handle: Any) -> str | None:
        """Return why a task ended, see `WorkerPool`."""
        if not self._ray.wait([handle], timeout=0)[0]:
            return None
        try:
            self._ray.get(handle)
        except self._ray.exceptions.RayError as error:
            return f"its worker died: {' '.join(str(error).split())[:300]}"
        return ""


def _on_ray(config: SearchConfig, train: Interactions, valid: Interactions, worker: str) -> None:
    os.environ["DPCML_THREADS"] = str(config.n_threads)
    for _ in work(config, train, valid, worker):
        pass


POOLS: Registry[Callable[[SearchConfig, Interactions, Interactions, int], WorkerPool]] = Registry("engine")
POOLS.add("local", LocalPool)
POOLS.add("ray", RayPool)


@contextmanager
def blocked_signals(*signals: signal.Signals) -> Iterator[None]:
    """Block signals within the block; processes that are started there inherit the mask.

    Examples
    --------
    >>> with blocked_signals(signal.SIGHUP):
    ...     signal.raise_signal(signal.SIGHUP)
    ...     caught = signal.sigwait({signal.SIGHUP})
    >>> caught is signal.SIGHUP
    True
    """
    resource_tracker.ensure_running()  # started within the block, it would unblock SIGINT and SIGTERM
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
