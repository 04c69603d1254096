"""Reports in Markdown: one per study, and one over all studies of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpcml.paper.document import Details, Heading, Note, Notes, ReportBlock, ReportTable, TableLine, Text, markdown
from dpcml.paper.runs import RunStore
from dpcml.paper.spec import FOLDER, Spec, read_spec, specs
from dpcml.paper.study_types import STUDY_TYPES, StudyResults
from dpcml.utils.errors import ParameterError
from dpcml.utils.files import write_text

TITLE = "The paper's tables and figures, reproduced"
QUICK = (
    "**A quick run**: few epochs from a spectral start, small grids, one seed. It shows that everything works; its"
    " figures and verdicts say little about the full study."
)
LEGEND = (
    "Each table has our mean ± standard deviation over seeds, the paper's figure and the difference (ours minus the"
    " paper's); the best of our column is bold. Every note is computed from the figures beside it. *Level* is a gap"
    " within two standard errors of the differences over seeds; a single seed has no such band."
)


def study_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return all blocks of the report on one study."""
    spec = results.spec
    blocks: list[ReportBlock] = [Heading(spec.title, 1), Text(spec.about)]
    if spec.quick:
        blocks.append(Notes([Note(QUICK, "warning")]))
    if results.done.height:
        blocks += STUDY_TYPES[spec.study_type].blocks(results)
    else:
        blocks.append(Text("No run of this study is done yet."))
    if results.failed.height:
        lines = [
            f"{line['data']}, {line['label']}, seed {line['seed']}: {line['reason']}"
            for line in results.failed.iter_rows(named=True)
        ]
        blocks.append(Details(f"Runs that failed ({len(lines)})", lines))
    return blocks


def write_study(spec: Spec, folder: str | Path) -> str:
    """Write the report of one study beside its results file; return it."""
    folder = Path(folder)
    text = markdown(study_blocks(_results(spec, folder)))
    write_text(folder / f"{spec.name}.md", text)
    return text


def write_report(folder: str | Path, *, quick: bool = False) -> Path:
    """Write ``report.md`` over all studies of the paper that have results in a folder; return the file."""
    folder = Path(folder)
    found = [read_spec(name, quick) for name in specs() if (folder / f"{name}.csv").exists()]
    studies = sorted((spec for spec in found if spec.folder == FOLDER), key=lambda spec: (spec.place, spec.name))
    if not studies:
        raise ParameterError(f"{folder}: holds no results of a study of the paper; run 'dpcml reproduce NAME' first")
    told: list[ReportBlock] = []
    for spec in studies:
        told += study_blocks(_results(spec, folder))
    warning: list[ReportBlock] = [Notes([Note(QUICK, "warning")])] if quick else []
    blocks: list[ReportBlock] = [Text(LEGEND), *warning, *verdicts(told), *told]
    write_text(folder / "report.md", markdown([Heading(TITLE, 1), *_lower(blocks)]))
    return folder / "report.md"


def verdicts(blocks: Sequence[ReportBlock]) -> list[ReportBlock]:
    """Return how many claims of each study hold, and the notes on those that do not.

    Examples
    --------
    >>> told = [Heading("S", 1), Notes([Note("x wins.", "fails", claim=True), Note("y wins.", "holds", claim=True)])]
    >>> print(markdown(verdicts(told)[1:]))
    |  | hold | hold in part | do not hold |
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
                against += [Note(f"{study}{part}: {note.text}", note.verdict)] if note.verdict == "fails" else []
    if not counts:
        return []
    lines = [
        TableLine(name, [str(found[one]) for one in ("holds", "partly", "fails")]) for name, found in counts.items()
    ]
    table = ReportTable(["hold", "hold in part", "do not hold"], lines)
    return [
        Heading("Claims that hold in our runs, and those that do not", 1),
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
    return StudyResults(spec, done, folder, store.failed)


def _lower(blocks: Sequence[ReportBlock]) -> list[ReportBlock]:
    """Return blocks with headings one level lower, below the title of the whole."""
    return [Heading(one.text, one.level + 1) if isinstance(one, Heading) else one for one in blocks]
