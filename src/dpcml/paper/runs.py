"""The runs of a study: which are left to do, how one is done, and the store that keeps them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpcml.data.datasets import DatasetStore
from dpcml.data.interactions import Interactions
from dpcml.data.split import Split
from dpcml.evaluation.evaluate import evaluate, validation
from dpcml.evaluation.report import Report
from dpcml.models import MODELS, Recommender, create
from dpcml.models.parameters import current_params
from dpcml.models.presets import PRESETS
from dpcml.paper.published import METRICS
from dpcml.paper.spec import Spec, StudyRow
from dpcml.results_store import ResultsRow, ResultsStore, parameters_text
from dpcml.utils.arrays import IntArray
from dpcml.utils.errors import DataError, DownloadError
from dpcml.utils.packages import version
from dpcml.utils.registry import Registry
from dpcml.workflow import PARTS, DataSource, default_params

Say = Callable[[str], object]

KEY = ("data", "label", "seed")  # of a row in the results of a study
FAILURES = ".failures.csv"
UNCOMPARED = ("random_state", "n_threads")  # parameters that are not part of the settings


class DatasetCache:
    """Data sets by name, each read once; one that cannot be read raises the same error again.

    Examples
    --------
    >>> DatasetCache()("planted").n_users
    1000
    """

    def __init__(self) -> None:
        self._read: dict[str, Interactions | Exception] = {}

    def __call__(self, name: str) -> Interactions:
        """Return a named set, the content of a file, or the planted world."""
        if name not in self._read:
            try:
                self._read[name] = DataSource(name).read()
            except DownloadError:
                self._read[name] = DataError(f"{name} is not on this machine: run 'dpcml data fetch {name}'")
            except Exception as error:
                self._read[name] = error
        found = self._read[name]
        if isinstance(found, Exception):
            raise found
        return found


@dataclass(frozen=True)
class Job:
    """One run of a study: its identity, and the function that does it."""

    data: str
    label: str
    seed: int
    work: Callable[[], dict[str, Any]]  # returns the figures
    model: str = ""  # empty where no model is trained
    parameters: dict[str, Any] = field(default_factory=dict)
    protocol: str = ""
    measures: tuple[str, ...] = ("accuracy",)
    test_users: str = ""  # a file with the users of the test; empty: all

    @property
    def settings(self) -> str:
        """The parameters as text."""
        return parameters_text(self.parameters)

    def row(self) -> ResultsRow:
        """Return the columns that identify the run."""
        return {
            "data": self.data, "label": self.label, "model": self.model, "parameters": self.settings,
            "seed": self.seed, "protocol": self.protocol, "version": version(), "measures": " ".join(self.measures),
            "test_users": self.test_users,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.data}, {self.label}, seed {self.seed}"


class RunStore:
    """The finished and the failed runs of a study, in two CSV files.

    Parameters
    ----------
    path
        The file of finished runs; failed ones are kept in a file beside it while there are any.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RunStore(Path(folder) / "study.csv")
    ...     job = Job("a", "b", 0, work=dict)
    ...     store.add(job, {"P@3": 0.25})
    ...     store.has(job), RunStore(store.path).done["P@3"].to_list()
    (True, [0.25])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.failures_path = self.path.with_name(self.path.name.removesuffix(".csv") + FAILURES)
        self._done = ResultsStore(self.path, KEY, ordered=True, decimals=6)
        self._failed = ResultsStore(self.failures_path, KEY, ordered=True, decimals=6)

    @property
    def done(self) -> pl.DataFrame:
        """The finished runs."""
        return self._done.frame

    @property
    def failed(self) -> pl.DataFrame:
        """The failed runs, with their reasons."""
        return self._failed.frame

    def has(self, job: Job) -> bool:
        """Return whether a run is finished, with these settings and this version of the code."""
        return any(
            row["label"] == job.label and row["parameters"] == job.settings for row in _same(self._done.rows, job)
        )

    def borrow(self, job: Job) -> dict[str, Any] | None:
        """Return the figures of the same run in another study of the folder, whatever its label there."""
        if not job.model:
            return None
        for file in sorted(self.path.parent.glob("*.csv")):
            if file == self.path or file.name.endswith(FAILURES):
                continue
            try:
                others = ResultsStore(file, KEY).rows
            except DataError:
                continue  # a file of something else
            for row in _same(others, job):
                if all_parameters(job.model, row["parameters"]) == all_parameters(job.model, job.settings):
                    return {name: value for name, value in row.items() if value is not None}
        return None

    def add(self, job: Job, figures: dict[str, Any]) -> None:
        """Keep a finished run, in place of an older one."""
        self._done.put([{**job.row(), **figures, "label": job.label, "parameters": job.settings}])
        self._failed.remove(job.row())

    def fail(self, job: Job, reason: str) -> None:
        """Keep the reason of a failed run, until it succeeds."""
        self._failed.put([{**job.row(), "reason": reason}])


@cache
def all_parameters(model: str, settings: str) -> str:
    """Return all parameters that a model has with some settings, seed and threads apart, as text.

    Examples
    --------
    >>> all_parameters("dpcml2", "{}") == all_parameters("dpcml2", '{"n_vectors": 5, "diversity_weight": 10}')
    True
    """
    kind = PRESETS[model][0] if model in PRESETS else MODELS[model]
    known = {**default_params(model), **current_params(kind, json.loads(settings), warn=False)}
    return parameters_text({name: _floats(value) for name, value in known.items() if name not in UNCOMPARED})


def _floats(value: Any) -> Any:
    """Return a value with floats in place of integers, so that 10 and 10.0 are the same."""
    if isinstance(value, (list, tuple)):
        return [_floats(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _same(rows: Iterable[ResultsRow], job: Job) -> Iterator[ResultsRow]:
    """Yield the rows with a job's data, users, model, seed, protocol and version that hold all of its measures."""
    for row in rows:
        if (row["data"], row["seed"], row.get("version")) != (job.data, job.seed, version()):
            continue
        measured = (row.get("measures") or "accuracy").split()  # old files have no such column
        same_run = all((row.get(key) or "") == getattr(job, key) for key in ("model", "protocol", "test_users"))
        if same_run and set(job.measures) <= set(measured):
            yield row


def run_jobs(jobs: Iterable[Job], path: str | Path, say: Say = lambda text: None) -> RunStore:
    """Do the jobs that are not in a results file yet; each is added as soon as it is done.

    An error in a job, short of an interrupt, is kept as the reason of its failure; the other jobs go on, and the failed
    one is tried again next time. A run that another study in the same folder has done is copied; one whose settings
    changed, or whose version of the code, is done again.
    """
    store = RunStore(path)
    todo = [job for job in jobs if not store.has(job)]
    for number, job in enumerate(todo, 1):
        place = f"[{number}/{len(todo)}] {job}"
        started = time.perf_counter()
        try:
            borrowed = store.borrow(job)
            figures = job.work() if borrowed is None else borrowed
        except Exception as error:  # the other runs go on
            reason = f"{error}" if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
            store.fail(job, " ".join(reason.split())[:500])
            say(f"{place}: failed: {reason}")
            continue
        store.add(job, figures)
        shown = [f"{name} {figures[name]:.4f}" for name in ("P@3", "MRR") if name in figures]
        took = f"{time.perf_counter() - started:.0f} s" if borrowed is None else "taken over from another study"
        say(f"{place}: {', '.join([*shown, took])}")
    return store


def model_jobs(spec: Spec, datasets: DatasetCache | None = None) -> Iterator[Job]:
    """Yield the runs of a study with models: all rows with the first seed, then all with the next.

    A seed decides both the split and the training.
    """
    datasets = datasets or DatasetCache()
    for seed in range(spec.seeds):
        for row in spec.rows:
            if seed < spec.seeds_of(row):
                yield Job(
                    row.data,
                    row.label,
                    seed,
                    work=lambda row=row, seed=seed: train_and_measure(spec, row, seed, datasets(row.data)),  # type: ignore[misc]
                    model=row.model,
                    parameters=row.parameters,
                    protocol=spec.protocol,
                    measures=spec.measures,
                    test_users=str(spec.options.get("test_users", "")),
                )


def data_jobs(
    figures: Callable[[Interactions], dict[str, Any]], label: str
) -> Callable[[Spec, DatasetCache], Iterator[Job]]:
    """Return a function that makes one job per data set of a study, on all of its positives."""

    def jobs(spec: Spec, datasets: DatasetCache) -> Iterator[Job]:
        for data in spec.sets:
            yield Job(data, label, 0, work=lambda data=data: figures(datasets(data)))  # type: ignore[misc]

    return jobs


def train_and_measure(spec: Spec, row: StudyRow, seed: int, data: Interactions) -> dict[str, Any]:
    """Train a row's model with one seed on a 60/20/20 split of each user's positives, and return its figures."""
    split = data.split(PARTS, seed)
    model = create(row.model, **row.parameters)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    started = time.perf_counter()
    model.fit(split.train, split.valid)
    seconds = time.perf_counter() - started
    measures = [MEASURES[name] for name in spec.measures]
    report = evaluate(
        model,
        split.train,
        split.test,
        valid=split.valid,
        protocol=spec.protocol,
        metrics=[measure.family for measure in measures if measure.family],
        k=spec.k,
        users=_test_users(spec, row.data),
    )
    history = getattr(model, "history_", None)
    fitted = FittedRun(model, split, report)
    figures = {name: value for measure in measures for name, value in measure.figures(fitted).items()}
    return {
        "split": report.split,
        "users": report.n_users,
        "epochs": len(history.epochs) if history else 0,
        "best_epoch": history.best.number if history and history.best else 0,
        "seconds": round(seconds, 2),
        **{name: round(float(value), 6) for name, value in figures.items()},
    }


def _test_users(spec: Spec, data: str) -> IntArray | None:
    """Return the rows of the test users, where a study names a file of them in the folder of the data set."""
    file = spec.options.get("test_users")
    if file is None:
        return None
    folder = DatasetStore().locate(data)
    if folder is None or not (folder / file).is_file():
        raise DataError(
            f"{file}: is not beside the files of {data}; put it there, or leave test_users out of the study"
        )
    users: IntArray = np.load(folder / file, allow_pickle=False)
    return users


@dataclass(frozen=True)
class FittedRun:
    """A model after training, its split, and its evaluation."""

    model: Recommender
    split: Split
    report: Report


@dataclass(frozen=True)
class Measure:
    """A group of figures that a run records, and the family of metrics that it needs of the evaluation."""

    figures: Callable[[FittedRun], dict[str, float]]
    family: str = ""


def _diversity(run: FittedRun) -> dict[str, float]:
    wanted = ("MaxDiv@", "cooccurrence_ILD@", "attribute_ILD@")
    return {name: value for name, value in run.report.metrics.items() if name.startswith(wanted)}


def _categories(run: FittedRun) -> dict[str, float]:
    """Return MAP by category, and the share of each category in the test positives."""
    test, attributes = run.split.test, run.split.test.items.attributes
    if attributes is None:
        raise DataError("the items have no attributes: accuracy by category needs genres or tags")
    counts = (test.csr @ attributes.matrix.astype(np.float64)).sum(axis=0)
    share = dict(zip(map(str, attributes.names), (counts / test.n_positives).tolist(), strict=True))
    found = run.report.categories
    return {f"MAP {name}": value for name, value in found.items()} | {f"share {name}": share[name] for name in found}


def _generalisation(run: FittedRun) -> dict[str, float]:
    history: Any = getattr(run.model, "history_", None)
    loss = history.best.loss if history is not None and history.best else math.nan
    valid = math.nan if run.split.valid is None else validation(run.model, run.split.train, run.split.valid, "MRR")
    return {"training loss": loss, "validation MRR": valid}


MEASURES: Registry[Measure] = Registry("measure")
MEASURES.add("accuracy", Measure(lambda run: {name: run.report.metrics[name] for name in METRICS}, "accuracy"))
MEASURES.add("diversity", Measure(_diversity, "diversity"))
MEASURES.add("categories", Measure(_categories, "categories"))
MEASURES.add("generalisation", Measure(_generalisation))
