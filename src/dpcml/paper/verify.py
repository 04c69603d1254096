"""Whether results come out again: random cells of the results files are run anew and compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.paper import fingerprint
from dpcml.paper.run_store import Job, RunStore, settings_key
from dpcml.paper.runs import DatasetCache, Say
from dpcml.paper.spec import FOLDER, read_spec, specs
from dpcml.paper.study_types import STUDY_TYPES
from dpcml.results_store import ResultsRow
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError

MEASURED = ("timing", "scale")  # types of studies whose figures are times and memory, which never come out the same
# Columns that are no figures: what identifies a run, how it was made, and how long it took.
NO_FIGURES = {
    "data", "label", "model", "parameters", "seed", "protocol", "version", "measures", "test_users", "fingerprint",
    "split", "users", "epochs", "best_epoch", "seconds",
}  # fmt: skip
DECIMALS = 6  # of figures in results files


@dataclass(frozen=True)
class ResultCell:
    """One figure of a results file, and the job that makes it."""

    study: str
    job: Job
    metric: str
    file: float
    fits: bool  # whether today's code, settings and data are those that made it


@dataclass(frozen=True)
class Difference:
    """A cell that came out otherwise."""

    study: str
    row: str
    data: str
    seed: int
    metric: str
    file: float
    now: float | None  # None if the run failed
    fingerprint_fits: bool  # False: code, settings or data are not those that made the figure


@dataclass(frozen=True)
class Verification:
    """How many cells were run again, and which came out otherwise."""

    cells: int
    identical: int
    outdated: int  # cells whose fingerprint does not fit, whether or not their figures are the same
    different: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON.

        Examples
        --------
        >>> Verification(1, 1, 0, ()).to_dict()
        {'cells': 1, 'identical': 1, 'outdated': 0, 'different': []}
        """
        return {**asdict(self), "different": [asdict(one) for one in self.different]}


def verify(
    n_cells: int = 20,
    *,
    data: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    seed: int = 0,
    quick: bool = False,
    out: str | Path | None = None,
    say: Say = lambda text: None,
) -> Verification:
    """Run random cells of the results files again, and say which differ.

    A cell is one figure of one run. Times and memory are not compared. Cells of one run share it.

    Parameters
    ----------
    n_cells
        Cells to draw; all, where there are fewer.
    data, labels
        Only these data sets, and rows.
    seed
        Seed of the draw.
    quick
        The results of quick runs.
    out
        Folder of the results; ``results/paper`` by default.
    say
        Called with a line of text for each run.
    """
    at_least("cells", n_cells, 1)
    folder = Path(out or FOLDER) / "quick" if quick else Path(out or FOLDER)
    known = list(_cells(folder, data, labels, quick, out))
    if not known:
        raise DataError(f"{folder}: no figures that can be run again; run 'dpcml reproduce NAME' first")
    rng = np.random.default_rng(seed)
    drawn = [known[k] for k in sorted(rng.permutation(len(known))[:n_cells])]
    made: dict[tuple[Any, ...], ResultsRow] = {}
    different = []
    for number, cell in enumerate(drawn, 1):
        job = cell.job
        run = (job.made_by(), job.data, job.seed, job.model, job.measures, job.label if not job.model else "")
        if run not in made:
            made[run] = _figures(job, say)
        now = made[run].get(cell.metric)
        same = now is not None and _same(cell.file, now)
        say(
            f"[{number}/{len(drawn)}] {cell.study}: {job}, {cell.metric} {cell.file}:"
            f" {'identical' if same else f'now {now}'}{'' if cell.fits else ' (made by other code, settings or data)'}"
        )
        if not same:
            value = None if now is None or math.isnan(now) else round(float(now), DECIMALS)
            found = (cell.study, job.label, job.data, job.seed, cell.metric, cell.file, value, cell.fits)
            different.append(Difference(*found))
    outdated = sum(not cell.fits for cell in drawn)
    return Verification(len(drawn), len(drawn) - len(different), outdated, tuple(different))


def _cells(
    folder: Path, data: Sequence[str] | None, labels: Sequence[str] | None, quick: bool, out: str | Path | None
) -> Iterator[ResultCell]:
    """Yield the figures of all runs in a folder that the studies still have with the same settings."""
    datasets = DatasetCache()
    for name in specs():
        spec, file = read_spec(name, quick), folder / f"{name}.csv"
        if not quick and out is not None:
            spec = spec.searched_in(Path(out) / "tuning")
        if spec.study_type in MEASURED or not file.exists():
            continue
        rows = {
            (row["data"], row["label"], row["seed"], settings_key(row.get("model") or "", row["parameters"])): row
            for row in RunStore(file).rows
        }
        others = [found for found in dict.fromkeys(key[0] for key in rows) if found not in spec.sets]
        for asked in (spec, *([spec.on(others)] if others else [])):
            for job in STUDY_TYPES[spec.study_type].jobs(asked, datasets):
                row = rows.get((job.data, job.label, job.seed, settings_key(job.model, job.settings)))
                wanted = (data is None or job.data in data) and (labels is None or job.label in labels)
                if row is not None and wanted:
                    yield from _of_run(name, job, row)


def _of_run(study: str, job: Job, row: ResultsRow) -> Iterator[ResultCell]:
    fits = fingerprint.fits(row.get("fingerprint"), job.fingerprint())
    for metric, value in row.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if metric not in NO_FIGURES and number and not math.isnan(value):
            yield ResultCell(study, job, metric, value, fits)


def _figures(job: Job, say: Say) -> ResultsRow:
    """Return the figures of a run; none if it fails, which a line says."""
    try:
        return job.work()
    except Exception as error:  # the other cells go on
        say(f"{job}: failed: {error}")
        return {}


def _same(file: float, now: float) -> bool:
    """Return whether a figure is the one in a file, which has six decimals."""
    return round(float(file), DECIMALS) == round(float(now), DECIMALS)
