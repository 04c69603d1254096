"""Studies from spec to report: `reproduce_one` by name, or `reproduce_all` of the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dpcml.paper.report import write_report, write_study
from dpcml.paper.runs import DatasetCache, Job, RunStore, Say, run_jobs
from dpcml.paper.spec import FOLDER, Spec, read_spec, specs
from dpcml.paper.study_types import STUDY_TYPES
from dpcml.utils.errors import DataError, ParameterError, did_you_mean


def study_titles() -> dict[str, str]:
    """Return the titles of all studies by name, in the order of the report.

    Examples
    --------
    >>> study_titles()["overall"]
    'Overall performance'
    """
    found = sorted(map(read_spec, specs()), key=lambda spec: (spec.place, spec.name))
    return {spec.name: spec.title for spec in found}


def reproduce_one(
    name: str,
    *,
    data: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    say: Say = lambda text: None,
) -> str:
    """Do the runs of one study that are not done yet, write its report, and return it as Markdown.

    Parameters
    ----------
    name
        See `study_titles`.
    data
        Only these data sets; names, files, or ``planted``.
    labels
        Only these rows.
    seeds
        Seeds per row in place of the study's.
    quick
        Few epochs, small grids, one seed; the results go to a folder ``quick`` within the other.
    out
        Folder; ``results/paper`` by default.
    say
        Called with a line of text for each run.
    """
    study = read_spec(name, quick)
    asked = _asked(study, data, seeds)
    folder = _folder(study, out, quick)
    wanted = _jobs(asked, DatasetCache())
    _check_labels(labels, wanted)
    store = _run(wanted, folder / f"{name}.csv", labels, say)
    failed = store.failed
    if failed.height and not store.done.height:
        raise DataError(f"no run of {name} ended well; the first: {failed['reason'][0]} (all: {store.failures_path})")
    text = write_study(study, folder)
    if study.folder == FOLDER:
        write_report(folder, quick=quick)
    return text


def reproduce_all(
    *,
    data: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    say: Say = lambda text: None,
) -> Path:
    """Do all studies of the paper, each on those of the data sets that it is about; return the file of the report.

    See `reproduce_one` for the parameters.
    """
    datasets = DatasetCache()
    studies = [spec for spec in (read_spec(name, quick) for name in study_titles()) if spec.folder == FOLDER]
    jobs = {spec.name: _jobs(_asked(spec, data, seeds), datasets) for spec in studies}
    _check_labels(labels, [job for of_study in jobs.values() for job in of_study])
    folder = Path(FOLDER)
    for spec in studies:
        folder = _folder(spec, out, quick)
        if data is not None and not set(data) & set(spec.sets):
            say(f"{spec.name}: is about {', '.join(spec.sets)} only")
            continue
        say(f"{spec.name}: {spec.title}")
        _run(jobs[spec.name], folder / f"{spec.name}.csv", labels, say)
        write_study(spec, folder)
    return write_report(folder, quick=quick)


def _asked(spec: Spec, data: Sequence[str] | None, seeds: int | None) -> Spec:
    """Return a study on some data sets, with some number of seeds per row."""
    return replace(spec.on(data), seeds=seeds) if seeds else spec.on(data)


def _jobs(spec: Spec, datasets: DatasetCache) -> list[Job]:
    return list(STUDY_TYPES[spec.study_type].jobs(spec, datasets))


def _check_labels(labels: Sequence[str] | None, jobs: Iterable[Job]) -> None:
    known = {job.label for job in jobs}
    for label in labels or ():
        if label not in known:
            raise ParameterError(f"no row {label!r} in these studies: {did_you_mean(label, known)}")


def _run(jobs: Iterable[Job], path: Path, labels: Sequence[str] | None, say: Say) -> RunStore:
    return run_jobs((job for job in jobs if labels is None or job.label in labels), path, say)


def _folder(spec: Spec, out: str | Path | None, quick: bool) -> Path:
    folder = Path(out) if out is not None else Path(spec.folder)
    return folder / "quick" if quick else folder
