"""The results file: every trial, kept as soon as it is done, so that a killed search goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from dpcml.tuning.trial import OK, Outcome, Task
from dpcml.utils.errors import DataError
from dpcml.utils.files import atomic
from dpcml.utils.packages import version

PROTOCOL = "released"  # of the validation figure, see `dpcml.evaluation.evaluate.validation`
COLUMNS: dict[str, Any] = {
    "trial": pl.Int64,
    "status": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "model": pl.String,
    "parameters": pl.String,
    "asked_epochs": pl.Int64,
    "epochs": pl.Int64,
    "best_epoch": pl.Int64,
    "seconds": pl.Float64,
    "seed": pl.Int64,
    "data": pl.String,
    "split": pl.String,
    "protocol": pl.String,
    "version": pl.String,
    "error": pl.String,
}
_IDENTITY = ("model", "parameters", "asked_epochs", "metric", "seed", "split", "version")


@dataclass(frozen=True)
class Setting:
    """What all trials of a search share."""

    data: str  # in words
    split: str  # hash


class Trials:
    """All trials in a file; a trial that was done before with the same settings, split and version is found again.

    Parameters
    ----------
    path
        A CSV file; None keeps the trials in memory only.
    setting
        What all trials share.
    resume
        Whether trials that the file holds count; else they are replaced.

    Examples
    --------
    >>> trials = Trials(None, Setting("planted", "abc"))
    >>> trials.add(Task(1, "ease", {"l2": 2.0}), Outcome(0.25, 1.0))
    >>> trials.done(Task(7, "ease", {"l2": 2.0})).value
    0.25
    >>> trials.done(Task(7, "ease", {"l2": 3.0})) is None
    True
    """

    def __init__(self, path: Path | None, setting: Setting, *, resume: bool = True) -> None:
        self.path, self.setting = path, setting
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        if resume and path is not None and path.exists():
            self._rows = {self._identity(row): row for row in _read(path)}

    def done(self, task: Task) -> Outcome | None:
        """Return the outcome of a task that ended well before; None where it is still to be done."""
        row = self._rows.get(self._identity(self._row(task)))
        if row is None or row["status"] != OK:
            return None
        return Outcome(row["value"], row["seconds"], row["epochs"], row["best_epoch"])

    def add(self, task: Task, outcome: Outcome) -> None:
        """Add a trial, or replace an earlier one of the same settings, and write them all."""
        row = self._row(task) | {
            "status": outcome.status,
            "value": outcome.value,
            "epochs": outcome.epochs,
            "best_epoch": outcome.best_epoch,
            "seconds": round(outcome.seconds, 3),
            "error": outcome.error,
        }
        self._rows[self._identity(row)] = row
        self.write()

    def write(self) -> None:
        """Write all trials, as a whole or not at all."""
        if self.path is not None:
            with atomic(self.path) as temporary:
                self.frame().write_csv(temporary)

    def frame(self) -> pl.DataFrame:
        """Return all trials."""
        return pl.DataFrame(list(self._rows.values()), schema=COLUMNS)

    def _row(self, task: Task) -> dict[str, Any]:
        return {
            "trial": task.number,
            "metric": task.metric,
            "model": task.model,
            "parameters": as_json(task.parameters),
            "asked_epochs": task.epochs,
            "seed": task.seed,
            "data": self.setting.data,
            "split": self.setting.split,
            "protocol": PROTOCOL,
            "version": version(),
        }

    @staticmethod
    def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in _IDENTITY)


def as_json(parameters: Mapping[str, Any]) -> str:
    """Return parameters as one line of text that is the same for the same parameters.

    Examples
    --------
    >>> as_json({"l2": 1.0, "diversity": (0.1, None)})
    '{"diversity": [0.1, null], "l2": 1.0}'
    """
    return json.dumps(parameters, sort_keys=True)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        found = pl.read_csv(path, schema_overrides=COLUMNS)
        missing = sorted(set(COLUMNS) - set(found.columns))
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a list of trials ({error}); move it away or name another") from None
    if missing:
        raise DataError(f"{path}: no list of trials, {missing[0]!r} is missing; name another folder")
    return found.select(*COLUMNS).to_dicts()
