"""Studies from start to report: one by name, or all of the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dpcml.paper.kinds import KINDS
from dpcml.paper.ledger import Job, Ledger
from dpcml.paper.report import write_report, write_study
from dpcml.paper.runner import Library, Say, do
from dpcml.paper.spec import FOLDER, Spec, read_spec, specs
from dpcml.utils.errors import DataError, ParameterError, did_you_mean


def study_titles() -> dict[str, str]:
    """Return the title of each study by its name, in the order of the report.

    Examples
    --------
    >>> study_titles()["overall"]
    'Overall performance'
    """
    found = sorted((read_spec(name) for name in specs()), key=lambda spec: (spec.place, spec.name))
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
        Told about each run.
    """
    spec = _with_data(read_spec(name, quick=quick, seeds=seeds), data)
    folder = _folder(spec, out, quick)
    wanted = _jobs(spec, Library())
    _check_labels(labels, wanted)
    ledger = _run(wanted, folder / f"{spec.name}.csv", labels, say)
    if ledger.failed.height and not ledger.done.height:
        raise DataError(
            f"no run of {name} ended well; the first: {ledger.failed['reason'][0]} (all: {ledger.failures_path})"
        )
    text = write_study(read_spec(name, quick=quick), folder)
    if spec.folder == FOLDER:
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
) -> list[Path]:
    """Do all studies of the paper, each on those of the data sets that it is about; return the files of the report.

    See `reproduce_one` for the parameters.
    """
    library = Library()
    found = [read_spec(name, quick=quick, seeds=seeds) for name in study_titles()]
    studies = {spec.name: spec for spec in found if spec.folder == FOLDER}
    _check_labels(labels, [job for spec in studies.values() for job in _jobs(spec, library)])
    folder = Path(FOLDER)
    for name, spec in studies.items():
        folder = _folder(spec, out, quick)
        if data is not None and not set(data) & set(spec.sets()):
            say(f"{name}: is about {', '.join(spec.sets())} only")
            continue
        say(f"{name}: {spec.title}")
        _run(_jobs(_with_data(spec, data), library), folder / f"{name}.csv", labels, say)
        write_study(read_spec(name, quick=quick), folder)
    return write_report(folder, quick=quick)


def _jobs(spec: Spec, library: Library) -> list[Job]:
    return list(KINDS[spec.kind].jobs(spec, library))


def _check_labels(labels: Sequence[str] | None, jobs: Iterable[Job]) -> None:
    known = {job.label for job in jobs}
    for label in labels or ():
        if label not in known:
            raise ParameterError(f"no row {label!r} in what is to be run: {did_you_mean(label, known)}")


def _run(jobs: Iterable[Job], path: Path, labels: Sequence[str] | None, say: Say) -> Ledger:
    return do((job for job in jobs if labels is None or job.label in labels), path, say)


def _with_data(spec: Spec, data: Sequence[str] | None) -> Spec:
    """Return a study on some data sets: those of its own that are named, or else whatever is named."""
    if data is None:
        return spec
    own = [name for name in spec.sets() if name in data]
    if not spec.data:
        return replace(spec, rows=tuple(row for row in spec.rows if row.data in data))
    return read_spec(spec.name, quick=spec.quick, seeds=spec.seeds, data=own or data)


def _folder(spec: Spec, out: str | Path | None, quick: bool) -> Path:
    folder = Path(out) if out is not None else Path(spec.folder)
    return folder / "quick" if quick else folder
