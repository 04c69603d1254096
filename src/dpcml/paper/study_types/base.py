"""Types of studies, found by name in `STUDY_TYPES`: the runs that a study needs, and the blocks of its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from dpcml.data.charts import save
from dpcml.paper.document import FIGURES, Note, Notes, ReportBlock, details
from dpcml.paper.published import title_of
from dpcml.paper.run_store import Job, settings_key
from dpcml.paper.runs import DatasetCache, model_jobs
from dpcml.paper.spec import Spec, StudyRow
from dpcml.results_store import parameters_text
from dpcml.utils.errors import MissingExtraError
from dpcml.utils.names import Registry

SPLIT_WORDS = {
    "ratio": "60/20/20 per user; a seed decides split and training",
    "released": "the split of the released code; a seed decides the training alone",
}


@dataclass(frozen=True)
class StudyResults:
    """A study, its finished runs that may be shown, its failed ones, and the folder of its report."""

    spec: Spec
    done: pl.DataFrame
    folder: Path = Path()
    failed: pl.DataFrame = field(default_factory=pl.DataFrame)
    notes: tuple[Note, ...] = ()  # on rows that are left out, or were made by an earlier version

    def of(self, row: StudyRow) -> pl.DataFrame:
        """Return the finished runs of a row with its current settings, one line per seed."""
        if not self.done.height:
            return self.done
        same = self.done.filter((pl.col("data") == row.data) & (pl.col("label") == row.label))
        if not same.height:
            return same
        wanted = settings_key(row.model, parameters_text(row.parameters))
        return same.filter([settings_key(row.model, text) == wanted for text in same["parameters"]])

    def on(self, data: str) -> pl.DataFrame:
        """Return the finished runs on a data set."""
        return self.done.filter(pl.col("data") == data) if self.done.height else self.done

    def rows(self, data: str) -> list[StudyRow]:
        """Return the rows of a data set that have finished runs."""
        return [row for row in self.spec.rows if row.data == data and self.of(row).height]

    def sets(self) -> list[str]:
        """Return the data sets that have finished runs with the current settings of a row, in the study's order."""
        return [name for name in self._done_sets() if self.rows(name) or not self.spec.rows]

    def lines(self) -> list[dict[str, Any]]:
        """Return all finished runs as plain data, set by set in the study's order."""
        return [line for data in self._done_sets() for line in self.on(data).iter_rows(named=True)]

    def _done_sets(self) -> list[str]:
        found = set(self.done["data"]) if self.done.height else set()
        return [name for name in self.spec.sets if name in found]

    def picture(self, name: str, caption: str, draw: Callable[[], Any]) -> ReportBlock:
        """Draw a figure and return the block that shows it, or a note where matplotlib is missing."""
        name = f"{self.spec.name}-{name}" if name else self.spec.name
        try:
            save(draw(), self.folder / FIGURES / f"{name}.png")
        except MissingExtraError as error:
            return Notes([Note(f"A figure is left out: {error}")])
        return f"![{caption}]({FIGURES}/{name}.png)\n\n*{caption}*"


@dataclass(frozen=True)
class StudyType:
    """How a study is computed and shown."""

    blocks: Callable[[StudyResults], Sequence[ReportBlock]]
    jobs: Callable[[Spec, DatasetCache], Iterable[Job]] = model_jobs


STUDY_TYPES: Registry[StudyType] = Registry("type of study")


def provenance(results: StudyResults, data: str) -> str:
    """Return the protocol, splits, seeds, version and settings of the figures on a data set."""
    spec, done = results.spec, results.on(data)
    lines = []
    if "split" in done.columns and spec.protocol:
        known = done.drop_nulls("split").unique(["seed", "split"]).sort("seed")
        splits = ", ".join(f"seed {line['seed']}: `{line['split']}`" for line in known.iter_rows(named=True))
        lines.append(f"Protocol `{spec.protocol}`; {SPLIT_WORDS.get(spec.split, spec.split)}. Splits {splits}")
    versions = ", ".join(sorted(set(done["version"])))
    hurry = " --quick" if spec.quick else ""
    command = f"dpcml reproduce {spec.name}{hurry} --data {data}"
    lines.append(f"dpcml {versions}; `{command}` does the runs that are missing or out of date")
    for row in results.rows(data):
        values = ", ".join(f"{name} {json.dumps(value)}" for name, value in row.parameters.items())
        lines.append(f"*{row.label}*: `{row.model}`{', ' + values if values else ''}")
    return details(f"Settings, protocol, splits and version of the figures on {title_of(data)}", lines)


def data_provenance(results: StudyResults) -> str:
    """Return version and command of figures on whole data sets, which involve no split, seed or protocol."""
    versions = ", ".join(sorted(set(results.done["version"])))
    return details(
        "Version of the figures",
        [
            f"dpcml {versions}; all positives of each set, prepared by the paper's rules: no split, seed or protocol",
            f"`dpcml reproduce {results.spec.name}` does the runs that are missing or out of date",
        ],
    )
