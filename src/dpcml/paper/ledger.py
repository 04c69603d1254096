"""The results file of a study: one line per finished run, written as a whole after each; failures stand beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from dpcml.utils.errors import DataError
from dpcml.utils.files import atomic
from dpcml.utils.packages import version

KEY = ("data", "label", "seed")
SUFFIX = ".failures.csv"
APART = ("random_state", "n_threads")  # parameters that are not part of the settings


@dataclass(frozen=True)
class Job:
    """One run that a study asks for: what identifies it, and how to do it."""

    data: str
    label: str
    seed: int
    work: Callable[[], dict[str, Any]]  # returns the figures
    model: str = ""  # empty where no model is trained
    parameters: dict[str, Any] = field(default_factory=dict)
    protocol: str = ""
    measures: tuple[str, ...] = ("accuracy",)
    test_users: str = ""  # the file with those that it is tested on; empty: all

    @property
    def settings(self) -> str:
        """The parameters as text."""
        return json.dumps(self.parameters, sort_keys=True)

    def __str__(self) -> str:
        return f"{self.data}, {self.label}, seed {self.seed}"


class Ledger:
    """The finished and the failed runs of a study.

    Parameters
    ----------
    path
        The CSV file of finished runs; failed ones are kept in a file beside it while there are any.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "study.csv")
    ...     job = Job("a", "b", 0, work=dict)
    ...     ledger.add(job, {"P@3": 0.25})
    ...     ledger.has(job), Ledger(ledger.path).done["P@3"].to_list()
    (True, [0.25])
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.failures_path = self.path.with_name(self.path.name.removesuffix(".csv") + SUFFIX)
        self.done, self.failed = _read(self.path), _read(self.failures_path)

    def has(self, job: Job) -> bool:
        """Say whether a run is there, with these settings, by this version of the code."""
        return any(line["label"] == job.label and line["parameters"] == job.settings for line in _like(self.done, job))

    def borrow(self, job: Job) -> dict[str, Any] | None:
        """Return the same run from another study in the same folder, whatever it is called there."""
        if not job.model:
            return None
        for file in sorted(self.path.parent.glob("*.csv")):
            if file == self.path or file.name.endswith(SUFFIX):
                continue
            try:
                others = _read(file)
            except DataError:
                continue  # no results of a study
            for line in _like(others, job):
                if resolved(job.model, line["parameters"]) == resolved(job.model, job.settings):
                    return {name: value for name, value in line.items() if value is not None}
        return None

    def add(self, job: Job, figures: dict[str, Any]) -> None:
        """Keep a finished run, in place of an older one, and write the file."""
        self.done = _with(self.done, {**_identity(job), **figures, "label": job.label, "parameters": job.settings})
        _write(self.path, self.done)
        if self.failed.height:
            self.failed = _without(self.failed, job.data, job.label, job.seed)
            _write(self.failures_path, self.failed)

    def fail(self, job: Job, reason: str) -> None:
        """Keep why a run failed, until it succeeds."""
        self.failed = _with(self.failed, {**_identity(job), "reason": reason})
        _write(self.failures_path, self.failed)


@cache
def resolved(model: str, settings: str) -> str:
    """Return all parameters that a model has with some settings, seed and threads apart, as text.

    Examples
    --------
    >>> resolved("dpcml2", "{}") == resolved("dpcml2", '{"n_vectors": 5, "diversity_weight": 10}')
    True
    """
    from dpcml.models import create

    made = create(model, **json.loads(settings))
    known = {name: _float(value) for name, value in made.get_params().items() if name not in APART}
    return json.dumps([type(made).__name__, known], sort_keys=True)


def _float(value: Any) -> Any:
    """Return a value with floats in place of whole numbers, so that 10 and 10.0 are the same."""
    if isinstance(value, (list, tuple)):
        return [_float(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _identity(job: Job) -> dict[str, Any]:
    return {
        "data": job.data, "label": job.label, "model": job.model, "parameters": job.settings, "seed": job.seed,
        "protocol": job.protocol, "version": version(), "measures": " ".join(job.measures),
        "test_users": job.test_users,
    }  # fmt: skip


def _like(done: pl.DataFrame, job: Job) -> Iterator[dict[str, Any]]:
    """Yield the lines with a job's data, users, model, seed, protocol and version that hold all of its measures."""
    if not {"data", "model", "seed", "parameters", "version"} <= set(done.columns):
        return
    same = (pl.col("data") == job.data) & (pl.col("seed") == job.seed) & (pl.col("version") == version())
    for line in done.filter(same).iter_rows(named=True):
        measured = (line.get("measures") or "accuracy").split()  # files of old have accuracy only
        same_run = all((line.get(key) or "") == getattr(job, key) for key in ("model", "protocol", "test_users"))
        if same_run and set(job.measures) <= set(measured):
            yield line


def _with(lines: pl.DataFrame, record: dict[str, Any]) -> pl.DataFrame:
    new = pl.DataFrame([record])
    if not lines.height:
        return new
    others = _without(lines, *(record[name] for name in KEY))
    return pl.concat([others, new], how="diagonal_relaxed").sort(*KEY)


def _without(lines: pl.DataFrame, data: str, label: str, seed: int) -> pl.DataFrame:
    return lines.filter(~((pl.col("data") == data) & (pl.col("label") == label) & (pl.col("seed") == seed)))


def _read(path: Path) -> pl.DataFrame:
    if not path.exists():
        return pl.DataFrame()
    texts = ("data", "label", "model", "parameters", "protocol", "version", "measures", "test_users", "reason")
    try:
        return pl.read_csv(path, schema_overrides=dict.fromkeys(texts, pl.String), infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: cannot be read as results of a study ({reason}); move it away") from None


def _write(path: Path, lines: pl.DataFrame) -> None:
    if not lines.height:
        path.unlink(missing_ok=True)
        return
    with atomic(path) as temporary:
        lines.write_csv(temporary, float_precision=6)
