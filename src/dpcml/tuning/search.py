"""`tune`: search for the parameters of a model on the validation part; the test part is never used."""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpcml.data.interactions import Interactions
from dpcml.data.split import Split, split_by
from dpcml.evaluation.protocol import metric_cutoff
from dpcml.models import create
from dpcml.results_store import ResultsStore, parameters_text
from dpcml.tuning.run import KEY, SearchRun, TuningProgress
from dpcml.tuning.space import Point, SearchSpace, read_space
from dpcml.tuning.workers import POOLS, SearchConfig, quiet_optuna
from dpcml.utils.checks import at_least
from dpcml.utils.errors import ParameterError
from dpcml.utils.files import full_path, write_text
from dpcml.utils.names import Registry, renamed
from dpcml.utils.packages import require, version
from dpcml.utils.text import plain, toml_text
from dpcml.utils.threads import thread_count

MOST_POINTS = 1_000_000  # points of a finite space that are shuffled rather than drawn one by one


@dataclass(frozen=True)
class TuningResult:
    """The best parameters, and all trials."""

    model: str
    best_parameters: dict[str, Any]
    best_value: float
    metric: str
    trials: int  # finished, pruned and failed ones
    failed: int
    seconds: float  # of this call
    split: str
    frame: pl.DataFrame = field(repr=False)  # every trial in the results file


@renamed(watch="callback")
def tune(
    data: Interactions,
    model: str,
    *,
    space: str | Path | SearchSpace = "grid",
    budget: int = 30,
    sampler: str = "random",
    defaults: bool = False,
    metric: str = "P@3",
    fixed: Mapping[str, Any] | None = None,
    halvings: int = 0,
    epochs: int | None = None,
    seed: int = 0,
    split: str | Split = "ratio",
    split_seed: int = 0,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    file: str | Path | None = None,
    resume: bool = True,
    label: str = "",
    fingerprint: str = "",
    callback: Callable[[TuningProgress], object] = lambda progress: None,
) -> TuningResult:
    """Search for the parameters of a model with the best value on the validation part of a split.

    Needs optuna: ``pip install -e '.[tune]'``.

    Parameters
    ----------
    data
        All positives; they are split here, unless ``split`` has the parts.
    model
        The name of a preset or a model.
    space
        ``grid``, ``wide``, a TOML file, or a `SearchSpace`.
    budget
        The number of trials; fewer where the space has fewer points.
    sampler
        ``random``, ``grid``, or ``tpe`` (tree-structured Parzen estimator).
    defaults
        Whether the first trial has the model's own parameters, so that a small budget cannot end below them.
    metric
        The metric to maximise, under the released protocol.
    fixed
        Parameters that all trials share, in place of those of the space.
    halvings
        Rungs of successive halving: after ``epochs / 2 ** halvings`` epochs, and each time they double, a trial goes on
        only if it is in the better half of the trials that came as far. Blends are halved by the values of the member
        that is trained in epochs, the first of several.
    epochs
        Epochs of a trial, of a blend those of that member; by default those of its parameters or of the model.
    seed
        Seed of sampler and models.
    split, split_seed
        How to split, ``ratio``, ``last``, ``time`` or ``released`` (see `dpcml.data.split.split_by`), and the seed; or
        a `Split` of the data, with three parts.
    engine, workers
        ``local`` or ``ray``, and the number of worker processes; by default one per core for models that are trained in
        epochs, and one for others, which are quick or need much memory.
    address
        Of the Ray cluster, whose machines must share the folder of ``file``; by default $RAY_ADDRESS, else Ray is
        started on this machine.
    file
        A CSV file for the table of trials; optuna's journal is kept beside it. A search that was cut off goes on when
        it is called again, and several searches may share the file.
    resume
        Whether earlier trials of the same search count.
    label
        The name of the data in the table.
    fingerprint
        What made the trials, a column of the table; earlier trials count only if theirs is the same.
    callback
        Called after every trial.

    Returns
    -------
    TuningResult
        The same for the same seed and one worker; ``random`` and ``grid`` try the same points with any number.

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
    searched = (space if isinstance(space, SearchSpace) else read_space(space, model)).with_fixed(model, fixed or {})
    epochs = _epochs(model, searched, halvings, epochs)
    if address is not None and engine != "ray":
        raise ParameterError(f"address={address!r}: only engine='ray' has one; name both or none")
    draw, pool, count = SAMPLERS[_sampler_name(sampler)], POOLS[engine], _worker_count(model, workers)
    parts = split if isinstance(split, Split) else split_by(data, split, split_seed)
    if parts.valid is None:
        raise ParameterError(f"split={parts.rule!r}: has no validation part to search on; pass one with three parts")
    with ExitStack() as stack:
        if file is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path, table = Path(folder) / "trials.journal", None
        else:
            path, table = Path(file).with_suffix(".journal"), Path(file)
        store = ResultsStore(table, KEY, resume=resume)
        if not resume or not path.exists():
            write_text(path, "")  # a folder that cannot be written to raises an error before the first trial
        name = _study_name(model, searched, metric, seed, epochs, halvings, f"{parts.hash}{fingerprint}")
        config = SearchConfig(
            journal=full_path(path), study=name, model=model,
            space=searched, metric=metric, seed=seed, epochs=epochs, halvings=halvings, adaptive=draw is None,
            n_threads=max(1, thread_count() // count), address=address,
        )  # fmt: skip
        origin = {"data": label, "split": parts.hash, **({"fingerprint": fingerprint} if fingerprint else {})}
        search = SearchRun(config, store, origin, callback)
        config = search.plan([] if draw is None else draw(searched, budget, seed), budget, defaults)
        search.report()
        left = search.total - search.done
        if left and engine == "local" and count == 1:
            search.run_here(parts.train, parts.valid)
        elif left:
            count = min(count, left)
            with pool(config, parts.train, parts.valid, count) as started_pool:
                search.run_in(started_pool, count)
        best = search.best_row()
        parameters = _to_train(config, json.loads(best["parameters"]))
        return TuningResult(
            model, parameters, best["value"], metric, search.done, search.failed,
            time.perf_counter() - started, parts.hash, store.frame,
        )  # fmt: skip


def write_best(
    path: str | Path,
    found: TuningResult,
    *,
    data: str,
    seed: int,
    split_seed: int,
    split: str = "ratio",
    reading: Mapping[str, Any] | None = None,
) -> None:
    """Write the best parameters as a TOML file for ``dpcml train --config``, with comments on their origin.

    Parameters
    ----------
    path
        The file.
    found
        The result of `tune`.
    data, reading
        Name or file of the data, and the options it was read with.
    seed
        Seed of the models.
    split, split_seed
        How the data was split.
    """
    comments = [
        f"{found.metric} {found.best_value:.6f} on the validation part (released protocol), split {found.split}",
        f"best of {found.trials} trials, dpcml {version()}",
    ]
    settings = {"data": data, "model": found.model, "seed": seed, "split": split, "split_seed": split_seed}
    tables = ({"reading": reading} if reading else {}) | {"parameters": found.best_parameters}
    head = "".join(f"# {line}\n" for line in comments)
    write_text(path, f"{head}{toml_text(settings | tables)}\n")


def _grid_points(space: SearchSpace, n: int, seed: int) -> list[Point]:
    """Return points of the grid in random order, as optuna stores them."""
    return _shuffled({name: one.encoded(one.grid()) for name, one in space.dimensions.items()}, n, seed)


def _random_points(space: SearchSpace, n: int, seed: int) -> list[Point]:
    """Return different points of the space, drawn at random, as optuna stores them."""
    if space.count is not None and space.count <= MOST_POINTS:  # without replacement, so that all can be drawn
        return _shuffled({name: one.encoded(one.all_values()) for name, one in space.dimensions.items()}, n, seed)
    optuna = require("optuna", "tune")
    points: dict[str, Point] = {}

    def draw(trial: Any) -> float:
        points.setdefault(repr(space.suggest(trial)), trial.params)
        if len(points) == n:
            trial.study.stop()
        return 0.0

    with quiet_optuna():
        optuna.create_study(sampler=optuna.samplers.RandomSampler(seed)).optimize(draw, n_trials=10 * n)
    return list(points.values())


def _shuffled(values: Mapping[str, Sequence[Any]], n: int, seed: int) -> list[Point]:
    # optuna's GridSampler compares each trial with all others: a grid of some thousand points takes it minutes.
    sizes = [len(some) for some in values.values()]
    order = np.random.default_rng(seed).permutation(math.prod(sizes))[:n]
    places = np.unravel_index(order, sizes) if sizes else ()
    return [
        {name: some[place[k]] for (name, some), place in zip(values.items(), places, strict=True)}
        for k in range(len(order))
    ]


SAMPLERS: Registry[Callable[[SearchSpace, int, int], list[Point]] | None] = Registry("sampler")
SAMPLERS.add("random", _random_points)
SAMPLERS.add("grid", _grid_points)
SAMPLERS.add("tpe", None)  # its points depend on earlier trials: workers draw them one by one


def _sampler_name(name: str) -> str:
    if name != "bayes":
        return name
    warnings.warn("sampler 'bayes' is called 'tpe' now; the old name goes in the next version", FutureWarning, 3)
    return "tpe"


def _study_name(
    model: str, space: SearchSpace, metric: str, seed: int, epochs: int | None, halvings: int, split: str
) -> str:
    """Return a name that is the same for the same search, whatever its budget and sampler."""
    asked = json.dumps([repr(space.dimensions), parameters_text(space.fixed), epochs, halvings])
    return f"{model} {metric} seed {seed} split {split} dpcml {version()} {sha256(asked.encode()).hexdigest()[:16]}"


def _worker_count(model: str, workers: int | None) -> int:
    """Return the number of workers: by default one per core for models with epochs, on one thread each."""
    if workers is None:
        return thread_count() if "epochs" in create(model).get_params() else 1
    at_least("workers", workers, 1)
    return workers


def _epochs(model: str, space: SearchSpace, halvings: int, epochs: int | None) -> int | None:
    """Return the epochs of every trial; None: as the parameters say."""
    at_least("halvings", halvings, 0)
    usual = create(model)
    name = usual.param_name("epochs")  # of a blend: that of a member
    if name is None or (epochs is None and not halvings):
        return None
    if {"epochs", name} & space.dimensions.keys():
        raise ParameterError("epochs are searched: they cannot be set or halved too; take them out of the space")
    fixed = space.fixed.get("epochs", space.fixed.get(name, usual.known_params()[name]))
    most = fixed if epochs is None else epochs
    at_least("epochs", most, 1)
    return int(most)


def _to_train(config: SearchConfig, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that train the same model again, seed and threads apart."""
    chosen = {name: plain(value) for name, value in parameters.items()}
    model = config.create(chosen)
    usual, tuned = create(config.model).known_params(), model.known_params()
    names = {model.param_name(key) for key in ("epochs", "metric")}
    changed: dict[str, Any] = {key: tuned[key] for key in sorted(filter(None, names)) if tuned[key] != usual[key]}
    short = {key for key in chosen if key not in changed and model.param_name(key) in changed}
    return {key: value for key, value in chosen.items() if key not in short} | changed
