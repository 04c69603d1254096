"""The runs of a study as jobs, and the store that keeps the finished and the failed ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from dpcml.models import MODELS
from dpcml.models.parameters import current_params
from dpcml.models.presets import PRESETS, default_params
from dpcml.paper import fingerprint
from dpcml.results_store import ResultsRow, ResultsStore, parameters_text
from dpcml.utils.errors import DataError, DpcmlError
from dpcml.utils.packages import version

KEY = ("data", "label", "seed")  # of a row in the results of a study
FAILURES = ".failures.csv"
UNCOMPARED = ("random_state", "n_threads")  # parameters that are not part of the settings


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
    modules: tuple[str, ...] = ()  # whose code makes the figures, where no model is named
    hashes: Callable[[], tuple[str, ...]] = tuple  # of the data and the split, as far as they are known here

    @property
    def settings(self) -> str:
        """The parameters as text."""
        return parameters_text(self.parameters)

    def made_by(self) -> str:
        """Return the parts of the fingerprint that do not depend on data: code and settings."""
        if not self.model:
            return fingerprint.join(fingerprint.modules_hash(self.modules), fingerprint.text_hash(self.settings))
        settings = f"{all_parameters(self.model, self.settings)} {self.protocol} {self.test_users}"
        return fingerprint.join(fingerprint.model_code(self.model), fingerprint.text_hash(settings))

    def fingerprint(self) -> str:
        """Return the fingerprint of what makes the figures: code, settings, data, split; see `dpcml.paper.fingerprint`.

        Examples
        --------
        >>> job = Job("planted", "a", 0, work=dict, model="popularity", hashes=lambda: ("0123456789",))
        >>> job.fingerprint().split("-")[2]
        '01234567'
        """
        return fingerprint.join(*self.made_by().split("-"), *self.hashes())

    def identity(self) -> ResultsRow:
        """Return the columns that a run has of its own, even where its figures are those of another study's."""
        return {"label": self.label, "parameters": self.settings, "fingerprint": self.fingerprint()}

    def row(self) -> ResultsRow:
        """Return the columns that identify the run."""
        return {
            "data": self.data, "label": self.label, "model": self.model, "parameters": self.settings,
            "seed": self.seed, "protocol": self.protocol, "version": version(), "measures": " ".join(self.measures),
            "test_users": self.test_users, "fingerprint": self.fingerprint(),
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
    def rows(self) -> list[ResultsRow]:
        """The finished runs, as plain data."""
        return self._done.rows

    @property
    def failed(self) -> pl.DataFrame:
        """The failed runs, with their reasons."""
        return self._failed.frame

    def has(self, job: Job) -> bool:
        """Return whether a run is finished, and was made by the same code, settings and data as it would be now."""
        return any(
            row["label"] == job.label
            and settings_key(job.model, row["parameters"]) == settings_key(job.model, job.settings)
            for row in _same(self._done.rows, job)
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
        self._done.put([{**job.row(), **figures, **job.identity()}])
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


def settings_key(model: str, settings: str) -> str:
    """Return a text that is the same for the same settings, whether defaults are among them or not.

    Examples
    --------
    >>> settings_key("itemknn", "{}") == settings_key("itemknn", '{"k": 100}'), settings_key("", "{}")
    (True, '{}')
    """
    try:
        return all_parameters(model, settings) if model else settings
    except DpcmlError:  # a model or a parameter that is no longer there
        return settings


def _floats(value: Any) -> Any:
    """Return a value with floats in place of integers, so that 10 and 10.0 are the same."""
    if isinstance(value, (list, tuple)):
        return [_floats(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _same(rows: Iterable[ResultsRow], job: Job) -> Iterator[ResultsRow]:
    """Yield the rows with a job's data, users, model, seed, protocol and fingerprint that hold all of its measures."""
    made_by = job.made_by()
    for row in rows:
        if (row["data"], row["seed"]) != (job.data, job.seed) or not fingerprint.fits(row.get("fingerprint"), made_by):
            continue  # the content of the data is compared last: it must be read for that
        measured = (row.get("measures") or "accuracy").split()  # old files have no such column
        same_run = all((row.get(key) or "") == getattr(job, key) for key in ("model", "protocol", "test_users"))
        if same_run and set(job.measures) <= set(measured) and fingerprint.fits(row["fingerprint"], job.fingerprint()):
            yield row
