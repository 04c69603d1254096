"""`tune`: search for settings of a model on the validation part; the test part is never looked at."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from dpcml.data.interactions import Interactions
from dpcml.data.split import by_ratio
from dpcml.evaluation.protocol import metric_cutoff
from dpcml.models import create
from dpcml.tuning.engines import ENGINES, Engine, share_of
from dpcml.tuning.samplers import SAMPLERS, Sampler
from dpcml.tuning.space import Point, Space, read_space
from dpcml.tuning.trial import Outcome, Task
from dpcml.tuning.trials import Setting, Trials
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError, ParameterError

Watch = Callable[["Standing"], object]


@dataclass(frozen=True)
class Standing:
    """How far a search is, told after each trial."""

    done: int
    total: int
    best: float | None
    task: Task
    outcome: Outcome


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    model: str
    best_parameters: dict[str, Any]
    best_value: float
    metric: str
    trials: int  # all rounds, failed ones too
    failed: int
    seconds: float  # of this call
    split: str
    frame: pl.DataFrame = field(repr=False)  # every trial in the results file


def tune(
    data: Interactions,
    model: str,
    *,
    space: str | Path | Space = "grid",
    budget: int = 30,
    sampler: str = "random",
    defaults: bool = False,
    metric: str = "P@3",
    fixed: Mapping[str, Any] | None = None,
    halvings: int = 0,
    epochs: int | None = None,
    seed: int = 0,
    split_seed: int = 0,
    engine: str = "local",
    workers: int | None = None,
    file: str | Path | None = None,
    resume: bool = True,
    label: str = "",
    watch: Watch = lambda standing: None,
) -> Tuned:
    """Try settings of a model and return the best, judged on the validation part of a 60/20/20 split.

    Parameters
    ----------
    data
        All positives; they are split here.
    model
        The name of a preset or a model.
    space
        ``grid``, ``wide``, a TOML file, or a `Space`.
    budget
        How many settings are tried; fewer where the space has fewer.
    sampler
        ``random``, ``grid``, or ``bayes``.
    defaults
        Whether the first trial has the model's own settings, so that a small budget cannot end below them.
    metric
        What counts, under the released protocol.
    fixed
        Parameters that all trials share, in place of what the space says.
    halvings
        Successive halving: so many times the better half of all settings is trained anew for twice the epochs; the last
        round has all epochs. (Anew, because the learning rate falls over the epochs of a run: a short run is no
        beginning of a long one.)
    epochs
        Epochs of a trial, of the last round with halvings; by default as parameters or model say.
    seed, split_seed
        Of sampler and models, and of the split.
    engine, workers
        ``local`` or ``ray``, and how many trials run at once; see `dpcml.tuning.engines.share_of`.
    file
        A CSV file that keeps every trial; finished ones in it are not done again.
    resume
        Whether finished trials in the file count.
    label
        What the data is called in the file.
    watch
        Called after every trial.

    Examples
    --------
    >>> from dpcml.data.synthetic import planted
    >>> found = tune(planted(80, 60, seed=0).data, "itemknn", budget=3)
    >>> found.trials, sorted(found.best_parameters)
    (3, ['k', 'shrink'])
    """
    started = time.perf_counter()
    metric_cutoff(metric)
    at_least("budget", budget, 1)
    at_least("seed", seed, 0)
    searched = space if isinstance(space, Space) else read_space(space, model)
    searched = searched.with_fixed(model, fixed or {})
    rounds = _rounds(model, searched, halvings, epochs)
    share = share_of(model, workers)
    split = by_ratio(data, rng=split_seed)
    trials = Trials(None if file is None else Path(file), Setting(label, split.hash), resume=resume)
    common = Task(0, model, searched.fixed, None, metric, seed, share.threads)
    proposing = SAMPLERS[sampler](searched, seed)
    with ENGINES[engine](split.train, split.parts[1], share) as ready:
        trials.write()  # a place that cannot be written to is found before hours are spent
        run = _Run(ready, trials, common, watch)
        ranked = run.propose(proposing, budget, rounds, [{}] if defaults else [])
        for number, epochs_now in enumerate(rounds[1:], start=1):
            ranked = run.again(ranked[: math.ceil(len(ranked) / 2)], epochs_now, len(rounds) - number)
    task, value = ranked[0]
    return Tuned(
        model, _settings(task), value, metric, run.done, run.failed,
        time.perf_counter() - started, split.hash, trials.frame(),
    )  # fmt: skip


Ranked = list[tuple[Task, float]]  # best first


@dataclass
class _Run:
    """The trials of one search: those done before are taken from the file, the others are run."""

    engine: Engine
    trials: Trials
    common: Task
    watch: Watch
    total: int = 0
    done: int = 0
    failed: int = 0
    best: float | None = None

    def propose(self, sampler: Sampler, budget: int, rounds: Sequence[int | None], given: Sequence[Point]) -> Ranked:
        """Try given points, then what a sampler proposes."""
        left = min(budget - len(given), sampler.limit or budget)
        self.total = _planned(len(given) + left, len(rounds))
        tried = self._try([{**self.common.parameters, **point} for point in given], rounds[0])
        while left and (points := sampler.propose(min(left, sampler.batch or left))):
            some = self._try([{**self.common.parameters, **point} for point in points], rounds[0])
            for point, (_, outcome) in zip(points, some, strict=True):
                sampler.learn(point, outcome.value)
            tried += some
            left -= len(points)
        return _ranked(tried)

    def again(self, ranked: Ranked, epochs: int | None, rounds: int) -> Ranked:
        """Try settings again with more epochs."""
        self.total = self.done + _planned(len(ranked), rounds)
        self.best = None  # figures after different epochs are not compared
        return _ranked(self._try([task.parameters for task, _ in ranked], epochs))

    def _try(self, settings: Sequence[dict[str, Any]], epochs: int | None) -> list[tuple[Task, Outcome]]:
        """Return tasks with their outcomes, in the order of the settings."""
        first = self.done + 1
        tasks = [
            replace(self.common, number=number, parameters=parameters, epochs=epochs)
            for number, parameters in enumerate(settings, start=first)
        ]
        outcomes: dict[int, Outcome] = {}
        for task in tasks:
            known = self.trials.done(task)
            if known is not None:
                outcomes[task.number] = known
                self._count(task, known)
        for task, outcome in self.engine.run([task for task in tasks if task.number not in outcomes]):
            self.trials.add(task, outcome)
            outcomes[task.number] = outcome
            self._count(task, outcome)
        return [(task, outcomes[task.number]) for task in tasks]

    def _count(self, task: Task, outcome: Outcome) -> None:
        self.done += 1
        self.failed += outcome.value is None
        if outcome.value is not None:
            self.best = max(outcome.value, -math.inf if self.best is None else self.best)
        self.watch(Standing(self.done, self.total, self.best, task, outcome))


def _rounds(model: str, space: Space, halvings: int, epochs: int | None) -> list[int | None]:
    """Return the epochs of each round; None: as the parameters say."""
    at_least("halvings", halvings, 0)
    known = {**create(model).get_params(), **space.fixed}
    if "epochs" not in known:
        return [None]
    if epochs is None and not halvings:
        return [None]
    if "epochs" in space.dimensions:
        raise ParameterError("epochs are searched: they cannot be set or halved too; take them out of the space")
    most = known["epochs"] if epochs is None else epochs
    at_least("epochs", most, 1)
    return [max(1, most >> halving) for halving in range(halvings, -1, -1)]


def _planned(settings: int, rounds: int) -> int:
    """Return how many trials there are with so many settings at the start.

    Examples
    --------
    >>> _planned(10, 3)
    18
    """
    planned = 0
    for _ in range(rounds):
        planned += settings
        settings = math.ceil(settings / 2)
    return planned


def _ranked(tried: Sequence[tuple[Task, Outcome]]) -> Ranked:
    """Return what ended well, best first; the earlier of equals first."""
    well = [(task, outcome.value) for task, outcome in tried if outcome.value is not None]
    if not well:
        said = tried[0][1].error if tried else "there is nothing to try"
        raise DataError(f"none of {len(tried)} trials ended well; the first: {said}")
    return sorted(well, key=lambda one: -one[1])


def _settings(task: Task) -> dict[str, Any]:
    """Return the parameters that train the same model again, seed and threads apart."""
    usual, tuned = create(task.model).get_params(), task.created().get_params()
    changed: dict[str, Any] = {
        key: tuned[key] for key in ("epochs", "metric") if key in tuned and tuned[key] != usual[key]
    }
    return {**task.parameters, **changed}
