"""Tables of methods by metrics, with the paper's figures beside ours, and the verdicts on its claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dpcml.paper.document import Heading, Note, Notes, ReportBlock, ReportTable, TableCell, TableLine
from dpcml.paper.published import published_figures, title_of
from dpcml.paper.spec import Claim, Spec, StudyRow
from dpcml.paper.study_types.base import STUDY_TYPES, StudyResults, StudyType, provenance
from dpcml.paper.verdicts import PairedGap, judge, paired_gap
from dpcml.utils.arrays import FloatArray

OWNERS = {"paper": "The paper says that", "control": "A control of ours:"}


def table_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return a table, notes and provenance for each data set."""
    found: list[ReportBlock] = []
    for data in results.sets():
        lines = comparison(results, data)
        found.append(Heading(title_of(data)))
        found.append(ReportTable(["seeds", *results.spec.metrics, "seconds"], lines))
        if notes := [*against_paper(lines, results.spec), *claim_notes(results, data)]:
            found.append(Notes(notes))
        found.append(provenance(results, data))
    return found


def comparison(results: StudyResults, data: str) -> list[TableLine]:
    """Return a line per row: mean and deviation over seeds, and the paper's figures."""
    spec, rows = results.spec, results.rows(data)
    values = [[cell(spec, row, results.of(row), metric) for metric in spec.metrics] for row in rows]
    best = [
        max((c.mean for c in column if not np.isnan(c.mean)), default=np.inf) for column in zip(*values, strict=True)
    ]
    lines = []
    for row, cells in zip(rows, values, strict=True):
        done = results.of(row)
        marked = [
            TableCell(c.mean, c.spread, c.theirs, c.digits, best=len(rows) > 1 and c.mean == top)
            for c, top in zip(cells, best, strict=True)
        ]
        seconds = f"{_column(done, 'seconds').mean():.0f}"
        lines.append(TableLine(row.label, [str(done.height), *marked, seconds], row.paper))
    return lines


def cell(spec: Spec, row: StudyRow, done: pl.DataFrame, metric: str) -> TableCell:
    """Return a row's figure in a metric over its seeds, beside the paper's."""
    values = spec.scale * _column(done, metric)
    theirs = None if row.paper is None else published_figures(row.data, row.paper, spec.published).get(metric)
    return TableCell(
        float(values.mean()),
        float(values.std(ddof=1)) if len(values) > 1 else None,
        None if theirs is None else spec.scale * theirs,
        spec.digits,
    )


def against_paper(lines: Sequence[TableLine], spec: Spec) -> list[Note]:
    """Return a note that counts the cells at or above the paper's, and names those below."""
    whole: list[str] = []
    below: list[str] = []
    cells = missed = 0
    for line in (line for line in lines if line.compared()):
        compared = list(zip(spec.metrics, line.cells[1:], strict=False))
        under = [
            f"{metric} {found.difference()}"
            for metric, found in compared
            if isinstance(found, TableCell) and found.theirs is not None and (found.gap() or 0) < 0
        ]
        counted = sum(isinstance(found, TableCell) and found.theirs is not None for _, found in compared)
        whole += [] if under else [f"*{line.label}*"]
        below += [f"*{line.label}* ({', '.join(under) if len(under) < counted else 'all'})"] if under else []
        cells, missed = cells + counted, missed + len(under)
    if not cells:
        return []
    text = f"{cells - missed} of {cells} cells are at or above the paper's figures."
    text += f" Every cell: {', '.join(whole)}." if whole else ""
    text += f" Below: {'; '.join(below)}." if below else ""
    return [Note(text)]


def claim_notes(results: StudyResults, data: str) -> list[Note]:
    """Return whether the study's claims hold on a data set."""
    spec = results.spec
    current = [results.of(row) for row in results.rows(data)]
    done = pl.concat(current, how="diagonal_relaxed") if current else results.on(data)
    return claim_verdicts(spec.claims, done, data, spec.metrics, spec.scale, spec.digits)


def _column(done: pl.DataFrame, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if name not in done.columns:
        return np.full(max(done.height, 1), np.nan)
    return done[name].cast(pl.Float64).to_numpy().astype(np.float64)


def paired_gaps(done: pl.DataFrame, data: str, better: str, worse: str, metrics: Sequence[str]) -> list[PairedGap]:
    """Return the differences of two rows, paired by seed: both have the same split for a seed.

    Examples
    --------
    >>> done = pl.DataFrame({"data": ["d"] * 2, "label": ["a", "b"], "seed": [0, 0], "MAP": [0.25, 0.5]})
    >>> paired_gaps(done, "d", "a", "b", ["MAP"])[0].mean
    -0.25
    """
    one, other = (_by_seed(done, data, label) for label in (better, worse))
    seeds = sorted(set(one) & set(other))
    found = []
    for metric in metrics if seeds else ():
        differences: FloatArray = np.array([one[seed][metric] - other[seed][metric] for seed in seeds], dtype=float)
        found.append(paired_gap(metric, differences))
    return found


def claim_verdicts(
    claims: Sequence[Claim],
    done: pl.DataFrame,
    data: str,
    metrics: Sequence[str],
    scale: float = 100.0,
    digits: int = 2,
) -> list[Note]:
    """Return a note for each pair of rows of the claims: whether it holds, in how many metrics, and by how much.

    The pairs are judged together: p-values are corrected for their number.
    """
    pairs = [(claim, worse) for claim in claims for worse in claim.worse]
    found = [paired_gaps(done, data, claim.better, worse, claim.metrics or metrics) for claim, worse in pairs]
    judged = [(pair, gaps) for pair, gaps in zip(pairs, found, strict=True) if gaps]
    notes = []
    for ((claim, worse), _), verdict in zip(judged, judge([gaps for _, gaps in judged]), strict=True):
        first = verdict.gaps[0]
        spread = "" if np.isnan(first.error) else f" ± {2 * scale * first.error:.{digits}f}"
        notes.append(
            Note(
                f"{OWNERS[claim.by]} {claim.text}. In our runs this **{verdict.words}** for *{claim.better}* against"
                f" *{worse}*: of {len(verdict.gaps)} metrics {verdict.counts}; {first.metric}"
                f" {scale * first.mean:+.{digits}f}{spread}, {verdict.seeds}.",
                verdict.name,
                claim=True,
            )
        )
    return notes


def _by_seed(done: pl.DataFrame, data: str, label: str) -> dict[int, dict[str, float]]:
    if not done.height:
        return {}
    same = done.filter((pl.col("data") == data) & (pl.col("label") == label))
    return {int(line["seed"]): line for line in same.iter_rows(named=True)}


STUDY_TYPES.add("table", StudyType(table_blocks))
