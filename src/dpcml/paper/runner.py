"""Doing the runs of a study: finished ones are skipped, one that fails leaves the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.catalog.find import locate
from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import evaluate
from dpcml.models import create
from dpcml.paper.ledger import Job, Ledger
from dpcml.paper.measures import MEASURES, Fitted
from dpcml.paper.spec import Row, Spec
from dpcml.utils.arrays import IntArray
from dpcml.utils.errors import DataError, DownloadError
from dpcml.workflow import PARTS, Source

Say = Callable[[str], object]


class Library:
    """Data sets by name, each read once; one that cannot be read says so again without another try.

    Examples
    --------
    >>> Library()("planted").n_users
    1000
    """

    def __init__(self) -> None:
        self._read: dict[str, Interactions | Exception] = {}

    def __call__(self, name: str) -> Interactions:
        """Return a named set, a file's content, or the planted world."""
        if name not in self._read:
            try:
                self._read[name] = Source(name).read()
            except DownloadError:
                self._read[name] = DataError(f"{name} is not on this machine: run 'dpcml data fetch {name}'")
            except Exception as error:
                self._read[name] = error
        found = self._read[name]
        if isinstance(found, Exception):
            raise found
        return found


def do(jobs: Iterable[Job], path: str | Path, say: Say = lambda text: None) -> Ledger:
    """Do the jobs that are not in a results file yet; each is added as soon as it is done.

    Whatever goes wrong in a job, short of an interrupt, is kept as the reason of its failure and leaves the others; it
    is tried again next time. A run that another study in the same folder has done is taken over; one whose settings or
    whose version of the code changed is done anew.
    """
    ledger = Ledger(path)
    todo = [job for job in jobs if not ledger.has(job)]
    for number, job in enumerate(todo, 1):
        place = f"[{number}/{len(todo)}] {job}"
        started = time.perf_counter()
        try:
            borrowed = ledger.borrow(job)
            figures = job.work() if borrowed is None else borrowed
        except Exception as error:  # a run that dies must leave the others
            reason = f"{error}" if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
            ledger.fail(job, " ".join(reason.split())[:500])
            say(f"{place}: failed: {reason}")
            continue
        ledger.add(job, figures)
        shown = [f"{name} {figures[name]:.4f}" for name in ("P@3", "MRR") if name in figures]
        took = f"{time.perf_counter() - started:.0f} s" if borrowed is None else "taken over from another study"
        say(f"{place}: {', '.join([*shown, took])}")
    return ledger


def jobs(spec: Spec, library: Library | None = None) -> Iterator[Job]:
    """Yield the runs of a study: each row with each of its seeds, all rows of a seed before the next seed.

    A seed decides both the split and the training.
    """
    library = library or Library()
    for seed in range(spec.seeds):
        for row in spec.rows:
            if seed < spec.seeds_of(row):
                yield Job(
                    row.data,
                    row.label,
                    seed,
                    work=lambda row=row, seed=seed: train_and_measure(spec, row, seed, library(row.data)),  # type: ignore[misc]
                    model=row.model,
                    parameters=row.parameters,
                    protocol=spec.protocol,
                    measures=spec.measures,
                    test_users=str(spec.options.get("test_users", "")),
                )


def train_and_measure(spec: Spec, row: Row, seed: int, data: Interactions) -> dict[str, Any]:
    """Train a row's model with one seed on 60/20/20 of each user's positives, and return its figures."""
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
        k=spec.at,
        beyond_accuracy=any(measure.beyond for measure in measures),
        users=_test_users(spec, row.data),
    )
    history = getattr(model, "history_", None)
    figures = {
        name: value for measure in measures for name, value in measure.figures(Fitted(model, split, report)).items()
    }
    return {
        "split": report.split,
        "users": report.n_users,
        "epochs": len(history.epochs) if history else 0,
        "best_epoch": history.best.number if history and history.best else 0,
        "seconds": round(seconds, 2),
        **{name: round(float(value), 6) for name, value in figures.items()},
    }


def _test_users(spec: Spec, data: str) -> IntArray | None:
    """Return the rows of the users that a study tests on, where it names a file of them in the data set's folder."""
    file = spec.options.get("test_users")
    if file is None:
        return None
    folder = locate(data)
    if folder is None or not (folder / file).is_file():
        raise DataError(
            f"{file}: is not beside the files of {data}; put it there, or leave test_users out of the study"
        )
    users: IntArray = np.load(folder / file, allow_pickle=False)
    return users
