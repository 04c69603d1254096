"""Studies from spec to report: `reproduce_one` by name, or `reproduce_all` of the paper's; reports in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcml.paper.consistency import consistent
from dpcml.paper.document import Heading, Note, Notes, ReportBlock, ReportTable, TableLine, details, markdown
from dpcml.paper.parallel import in_turns, one_thread_each
from dpcml.paper.run_store import Job, RunStore
from dpcml.paper.runs import DatasetCache, Say, run_jobs
from dpcml.paper.searches import run_searches, searches
from dpcml.paper.spec import FOLDER, TUNING, Spec, read_spec, specs
from dpcml.paper.study_types import STUDY_TYPES, StudyResults
from dpcml.paper.summary import coverage, several_or_one
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.files import write_text

TITLE = "The paper's tables and figures, reproduced"
QUICK = (
    "**A quick run**: few epochs from a spectral start, small grids, one seed. It shows that everything works; its"
    " figures and verdicts say little about the full study."
)
LEGEND = (
    "Each table has our mean ± standard deviation over seeds, the paper's figure and the difference (ours minus the"
    " paper's); the best of our column is bold. Every note is computed from the figures beside it. A claim *holds*"
    " where the difference is significant in most metrics and in none against; it *does not hold* where it is"
    " significant against in any metric, and is *level* otherwise, also where there is one seed only. Differences are"
    " paired by seed and tested by Student's t at 5%; in each metric, p-values are corrected for the number of claims"
    " of the study on the data set (Holm): with two or three seeds only very regular differences are significant. After"
    " ± of a difference are two standard errors."
)


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
    workers: int = 1,
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
        Folder; ``results/paper`` by default. The settings that searches have found are read from ``tuning`` beside it,
        or within it if it is given.
    workers
        Processes of one thread each that share the runs; 1: all runs in this process, on all threads.
    say
        Called with a line of text for each run.
    """
    study = _study(name, quick, out)
    asked = _asked(study, data, seeds)
    folder = _folder(study, out, quick)
    wanted = _jobs(asked, DatasetCache())
    _check_labels(labels, wanted)
    store = _run(asked, wanted, folder / f"{name}.csv", labels, workers, say)
    failed = store.failed
    if failed.height and not store.done.height:
        raise DataError(f"no run of {name} ended well; the first: {failed['reason'][0]} (all: {store.failures_path})")
    text = write_study(study, folder)
    if study.folder == FOLDER:
        write_report(folder, quick=quick, tuning=study.tuning)
    return text


def search_settings(
    *,
    data: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    workers: int = 1,
    say: Say = lambda text: None,
) -> list[str]:
    """Do the searches for settings that are not done yet; return those that failed, with their reasons.

    See `reproduce_one` for the parameters; ``models`` are the names of models and presets.
    """
    folder = (Path(FOLDER if out is None else out) / "quick" / "tuning") if quick else _tuning(out)
    return run_searches(searches(data, models, quick), folder, workers=workers, say=say)


def reproduce_all(
    *,
    data: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    workers: int = 1,
    say: Say = lambda text: None,
) -> Path:
    """Do all searches and studies of the paper, each on the data sets that it is about; return the report's file.

    Quick runs, and those of some rows, begin without searches: quick ones take the models' defaults. See
    `reproduce_one` for the parameters.
    """
    if not quick and labels is None:
        known = {one.data for one in searches()}
        wanted = None if data is None else [name for name in data if name in known]
        if wanted is None or wanted:
            search_settings(data=wanted, out=out, workers=workers, say=say)
    datasets = DatasetCache()
    studies = [spec for spec in (_study(name, quick, out) for name in study_titles()) if spec.folder == FOLDER]
    jobs = {spec.name: _jobs(_asked(spec, data, seeds), datasets) for spec in studies}
    _check_labels(labels, [job for of_study in jobs.values() for job in of_study])
    folder = Path(FOLDER)
    for spec in studies:
        folder = _folder(spec, out, quick)
        if data is not None and not set(data) & set(spec.sets):
            say(f"{spec.name}: is about {', '.join(spec.sets)} only")
            continue
        say(f"{spec.name}: {spec.title}")
        asked = _asked(spec, data, seeds)
        _run(asked, jobs[spec.name], folder / f"{spec.name}.csv", labels, workers, say)
        write_study(spec, folder)
    return write_report(folder, quick=quick, tuning=studies[0].tuning)


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


def _run(spec: Spec, jobs: list[Job], path: Path, labels: Sequence[str] | None, workers: int, say: Say) -> RunStore:
    wanted = [job for job in jobs if labels is None or job.label in labels]
    if workers == 1 or not all(job.model for job in wanted):  # times are measured in this process, on all threads
        return run_jobs(wanted, path, say)
    place = {id(job): k for k, job in enumerate(jobs)}

    def shared(left: list[Job]) -> Iterator[tuple[Job, Callable[[], dict[str, Any]]]]:
        with one_thread_each(workers) as pool:
            for job, future in in_turns(pool, workers, left, lambda job: (_work, spec, place[id(job)])):
                yield job, future.result

    return run_jobs(wanted, path, say, shared)


def _work(spec: Spec, place: int) -> dict[str, Any]:
    """Return the figures of a job of a study, in a worker process."""
    return _jobs_here(spec)[place].work()


_worker: dict[str, list[Job]] = {}  # jobs of the study that this process works on


def _jobs_here(spec: Spec) -> list[Job]:
    key = repr(spec)
    if key not in _worker:
        _worker.clear()
        _worker[key] = _jobs(spec, DatasetCache())
    return _worker[key]


def _study(name: str, quick: bool, out: str | Path | None) -> Spec:
    """Return a study with the settings that the searches have found; quick ones have none."""
    spec = read_spec(name, quick)
    return spec if quick else spec.searched_in(_tuning(out))


def _tuning(out: str | Path | None) -> Path:
    return Path(TUNING) if out is None else Path(out) / "tuning"


def _folder(spec: Spec, out: str | Path | None, quick: bool) -> Path:
    folder = Path(out) if out is not None else Path(spec.folder)
    return folder / "quick" if quick else folder


def study_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return all blocks of the report on one study."""
    spec = results.spec
    blocks: list[ReportBlock] = [Heading(spec.title, 1), spec.about.strip()]
    if spec.quick:
        blocks.append(Notes([Note(QUICK, "warning")]))
    if results.notes:
        blocks.append(Notes(results.notes))
    shown = STUDY_TYPES[spec.study_type].blocks(results) if results.done.height else []
    blocks += shown or ["No run of this study is done with its settings of today."]
    if results.failed.height:
        lines = [
            f"{line['data']}, {line['label']}, seed {line['seed']}: {line['reason']}"
            for line in results.failed.iter_rows(named=True)
        ]
        blocks.append(details(f"Runs that failed ({len(lines)})", lines))
    return blocks


def write_study(spec: Spec, folder: str | Path) -> str:
    """Write the report of one study beside its results file; return it."""
    folder = Path(folder)
    text = markdown(study_blocks(_results(spec, folder)))
    write_text(folder / f"{spec.name}.md", text)
    return text


def write_report(folder: str | Path, *, quick: bool = False, tuning: str | Path = TUNING) -> Path:
    """Write ``report.md`` over all studies of the paper that have results in a folder; return the file."""
    folder = Path(folder)
    there = [read_spec(name, quick) for name in specs() if (folder / f"{name}.csv").exists()]
    found = there if quick else [spec.searched_in(tuning) for spec in there]
    studies = sorted((spec for spec in found if spec.folder == FOLDER), key=lambda spec: (spec.place, spec.name))
    if not studies:
        raise ParameterError(f"{folder}: holds no results of a study of the paper; run 'dpcml reproduce NAME' first")
    shown = [_results(spec, folder) for spec in studies]
    told = [block for results in shown for block in study_blocks(results)]
    opening = [block for results in shown if results.spec.name == "overall" for block in several_or_one(results)]
    warning: list[ReportBlock] = [Notes([Note(QUICK, "warning")])] if quick else []
    blocks: list[ReportBlock] = [LEGEND, *warning, *opening, *verdicts(told), *coverage(shown), *told]
    write_text(folder / "report.md", markdown([Heading(TITLE, 1), *_lower(blocks)]))
    return folder / "report.md"


def verdicts(blocks: Sequence[ReportBlock]) -> list[ReportBlock]:
    """Return how many claims of each study hold, are level and do not hold, and the notes on all that do not hold.

    Examples
    --------
    >>> told = [Heading("S", 1), Notes([Note("x wins.", "fails", claim=True), Note("y wins.", "holds", claim=True)])]
    >>> print(markdown(verdicts(told)[1:]))
    |  | hold | level | do not hold |
    |---|---:|---:|---:|
    | S | 1 | 0 | 1 |
    <BLANKLINE>
    - S: x wins.
    <BLANKLINE>
    """
    study = part = ""
    counts: dict[str, Counter[str]] = {}
    against: list[Note] = []
    for block in blocks:
        if isinstance(block, Heading):
            study, part = (block.text, "") if block.level == 1 else (study, f", {block.text}")
        for note in block.notes if isinstance(block, Notes) else ():
            if note.claim:
                counts.setdefault(study, Counter())[note.verdict] += 1
                against += [Note(f"{study}{part}: {note.text}", note.verdict)] if note.verdict != "holds" else []
    if not counts:
        return []
    lines = [
        TableLine(name, [str(found[one]) for one in ("holds", "level", "fails")]) for name, found in counts.items()
    ]
    table = ReportTable(["hold", "level", "do not hold"], lines)
    return [
        Heading("Claims that hold in our runs, and those that do not or are level", 1),
        table,
        *([Notes(against)] if against else []),
    ]


def _results(spec: Spec, folder: Path) -> StudyResults:
    """Return the results of a study on its own data sets, and on others that its results file has."""
    store = RunStore(folder / f"{spec.name}.csv")
    done = store.done
    there = list(dict.fromkeys(done["data"])) if done.height else []
    others = [name for name in there if name not in spec.sets]
    if others and spec.data:
        spec = replace(spec, data=(*spec.data, *others))
    shown, notes = consistent(spec, done, _jobs(spec, DatasetCache()))
    return StudyResults(spec, shown, folder, store.failed, tuple(notes))


def _lower(blocks: Sequence[ReportBlock]) -> list[ReportBlock]:
    """Return blocks with headings one level lower, below the title of the whole."""
    return [Heading(one.text, one.level + 1) if isinstance(one, Heading) else one for one in blocks]
