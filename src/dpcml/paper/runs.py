"""The runs of a study: which are left to do, and how one is done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.datasets import DatasetStore
from dpcml.data.interactions import Interactions
from dpcml.data.named_sets import DATASETS
from dpcml.data.split import Split, split_by
from dpcml.evaluation.evaluate import evaluate, validation
from dpcml.evaluation.report import Report
from dpcml.models import Recommender, create
from dpcml.models.neural.base import NeuralRecommender
from dpcml.paper.published import METRICS
from dpcml.paper.run_store import Job, RunStore
from dpcml.paper.spec import Spec, StudyRow
from dpcml.utils.arrays import IntArray
from dpcml.utils.errors import DataError, DownloadError
from dpcml.utils.names import Registry
from dpcml.utils.threads import default_threads
from dpcml.workflow import DataSource

Say = Callable[[str], object]


class DatasetCache:
    """Data sets by name, each read once; one that cannot be read raises the same error again.

    Examples
    --------
    >>> DatasetCache()("planted").n_users
    1000
    """

    def __init__(self) -> None:
        self._read: dict[str, Interactions | Exception] = {}
        self._splits: dict[tuple[str, int, str], str] = {}

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

    def hashes(self, name: str, seed: int | None = None, split: str = "ratio") -> tuple[str, ...]:
        """Return the hash of a set's content and, with a seed, that of its split; nothing if the set is not here.

        Examples
        --------
        >>> len(DatasetCache().hashes("planted")), len(DatasetCache().hashes("planted", seed=0))
        (1, 2)
        """
        if name in DATASETS and DatasetStore().locate(name) is None:
            return ()  # a check of results must not download
        try:
            data = self(name)
        except Exception:  # said when a run needs it
            return ()
        if seed is None:
            return (data.content_hash,)
        if (name, seed, split) not in self._splits:
            self._splits[name, seed, split] = split_by(data, split, seed).hash
        return data.content_hash, self._splits[name, seed, split]


Work = Callable[[list[Job]], Iterator[tuple[Job, Callable[[], dict[str, Any]]]]]  # jobs with their results, as they end


def one_after_the_other(jobs: list[Job]) -> Iterator[tuple[Job, Callable[[], dict[str, Any]]]]:
    """Yield jobs with their work, which is done when it is called."""
    yield from ((job, job.work) for job in jobs)


def run_jobs(
    jobs: Iterable[Job], path: str | Path, say: Say = lambda text: None, work: Work = one_after_the_other
) -> RunStore:
    """Do the jobs that are not in a results file yet; each is added as soon as it is done.

    An error in a job, short of an interrupt, is kept as the reason of its failure; the other jobs go on, and the failed
    one is tried again next time. A run that another study in the same folder has done is copied; one whose fingerprint
    no longer fits, because code, settings or data changed, is done again.
    """
    store = RunStore(path)
    todo = [job for job in jobs if not store.has(job)]
    left = []
    for job in todo:
        borrowed = store.borrow(job)
        if borrowed is None:
            left.append(job)
        else:
            store.add(job, borrowed)
            say(f"{job}: taken over from another study")
    for number, (job, result) in enumerate(work(left), 1):
        place = f"[{number}/{len(left)}] {job}"
        try:
            figures = result()
        except Exception as error:  # the other runs go on
            reason = f"{error}" if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
            store.fail(job, " ".join(reason.split())[:500])
            say(f"{place}: failed: {reason}")
            continue
        store.add(job, figures)
        shown = [f"{name} {figures[name]:.4f}" for name in ("P@3", "MRR") if name in figures]
        took = f"{figures['seconds']:.0f} s of training" if "seconds" in figures else "done"
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
                    work=lambda row=row, seed=seed: _run_row(spec, row, seed, datasets(row.data)),  # type: ignore[misc]
                    model=row.model,
                    parameters=row.parameters,
                    protocol=spec.protocol,
                    measures=spec.measures,
                    test_users=str(spec.options.get("test_users", "")),
                    hashes=lambda row=row, seed=seed: datasets.hashes(row.data, seed, spec.split),  # type: ignore[misc]
                )


def _run_row(spec: Spec, row: StudyRow, seed: int, data: Interactions) -> dict[str, Any]:
    with same_bits(row.model):
        return train_and_measure(spec, row, seed, data)


@contextmanager
def same_bits(model: str) -> Iterator[None]:
    """Let a PyTorch model run on one thread within a ``with``: its bits depend on the number, those of others do not.

    Examples
    --------
    >>> from dpcml.utils.threads import thread_count
    >>> with same_bits("hlr"):
    ...     thread_count()
    1
    """
    with default_threads(1) if isinstance(create(model), NeuralRecommender) else nullcontext():
        yield


def data_jobs(
    figures: Callable[[Interactions], dict[str, Any]], label: str
) -> Callable[[Spec, DatasetCache], Iterator[Job]]:
    """Return a function that makes one job per data set of a study, on all of its positives."""

    def jobs(spec: Spec, datasets: DatasetCache) -> Iterator[Job]:
        for data in spec.sets:
            yield Job(
                data,
                label,
                0,
                work=lambda data=data: figures(datasets(data)),  # type: ignore[misc]
                modules=(figures.__module__,),
                hashes=lambda data=data: datasets.hashes(data),  # type: ignore[misc]
            )

    return jobs


def train_and_measure(spec: Spec, row: StudyRow, seed: int, data: Interactions) -> dict[str, Any]:
    """Train a row's model with one seed on a split of each user's positives, and return its figures."""
    split = split_by(data, spec.split, seed)
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
