"""Tables: methods by metrics on each data set, the paper's figures beside ours, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dpcml.paper.claims import judge
from dpcml.paper.document import Block, Heading, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results, provenance
from dpcml.paper.paper import published, title_of
from dpcml.paper.spec import Row, Spec
from dpcml.paper.table import Cell, Line, Table


def blocks(results: Results) -> list[Block]:
    """Return a table, notes and provenance for each data set."""
    found: list[Block] = []
    for data in results.sets():
        lines = comparison(results, data)
        found.append(Heading(title_of(data)))
        found.append(Table(["seeds", *results.spec.metrics, "seconds"], lines))
        if notes := [*against_paper(lines, results.spec), *claims(results, data)]:
            found.append(Notes(notes))
        found.append(provenance(results, data))
    return found


def comparison(results: Results, data: str) -> list[Line]:
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
            Cell(c.mean, c.spread, c.theirs, c.digits, best=len(rows) > 1 and c.mean == top)
            for c, top in zip(cells, best, strict=True)
        ]
        seconds = f"{_column(done, 'seconds').mean():.0f}"
        lines.append(Line(row.label, [str(done.height), *marked, seconds], row.paper))
    return lines


def cell(spec: Spec, row: Row, done: pl.DataFrame, metric: str) -> Cell:
    """Return a row's figure in a metric over its seeds, beside the paper's."""
    values = spec.scale * _column(done, metric)
    theirs = None if row.paper is None else published(row.data, row.paper, spec.published).get(metric)
    return Cell(
        float(values.mean()),
        float(values.std(ddof=1)) if len(values) > 1 else None,
        None if theirs is None else spec.scale * theirs,
        spec.digits,
    )


def against_paper(lines: Sequence[Line], spec: Spec) -> list[Note]:
    """Return a note that counts the cells at or above the paper's, and names those below."""
    whole: list[str] = []
    below: list[str] = []
    cells = missed = 0
    for line in (line for line in lines if line.compared()):
        compared = list(zip(spec.metrics, line.cells[1:], strict=False))
        under = [
            f"{metric} {found.difference()}"
            for metric, found in compared
            if isinstance(found, Cell) and found.theirs is not None and (found.gap() or 0) < 0
        ]
        counted = sum(isinstance(found, Cell) and found.theirs is not None for _, found in compared)
        whole += [] if under else [f"*{line.label}*"]
        below += [f"*{line.label}* ({', '.join(under) if len(under) < counted else 'all'})"] if under else []
        cells, missed = cells + counted, missed + len(under)
    if not cells:
        return []
    text = f"{cells - missed} of {cells} cells are at or above the paper's figures."
    text += f" Every cell: {', '.join(whole)}." if whole else ""
    text += f" Below: {'; '.join(below)}." if below else ""
    return [Note(text, "holds" if not missed else "partly")]


def claims(results: Results, data: str) -> list[Note]:
    """Return whether the study's claims hold on a data set."""
    spec = results.spec
    current = [results.of(row) for row in results.rows(data)]
    done = pl.concat(current, how="diagonal_relaxed") if current else results.on(data)
    return [note for claim in spec.claims for note in judge(claim, done, data, spec.metrics, spec.scale, spec.digits)]


def _column(done: pl.DataFrame, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    if name not in done.columns:
        return np.full(max(done.height, 1), np.nan)
    return done[name].cast(pl.Float64).to_numpy().astype(np.float64)


KINDS.add("table", Kind(blocks))
