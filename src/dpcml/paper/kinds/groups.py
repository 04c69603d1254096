"""Accuracy by interest: MAP counting only the held-out items of one category."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from dpcml.paper.document import Block, Heading, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results, provenance
from dpcml.paper.kinds.curves import values
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import COLOURS, MARKS, TEXT, canvas
from dpcml.paper.table import Cell, Line, Table

PREFIX = "MAP "


def blocks(results: Results) -> list[Block]:
    """Return for each data set a figure, a table, and in how many categories one row is above another."""
    found: list[Block] = []
    for data in results.sets():
        caption = f"MAP by category on {title_of(data)}, mean over seeds; categories with most test items first."
        names = categories(results, data)
        table = Table(
            [row.label for row in results.rows(data)],
            [Line(name, [_cell(results, row, name) for row in results.rows(data)]) for name in names],
        )
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda data=data: _draw(results, data)),  # type: ignore[misc]
            Notes(_notes(results, data, names)),
            table,
            provenance(results, data),
        ]
    return found


def categories(results: Results, data: str) -> list[str]:
    """Return the categories that have figures, those with most positives first."""
    done = results.on(data)
    share = {
        name.removeprefix("share "): float(done[name].cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]
        for name in done.columns
        if name.startswith("share ") and done[name].drop_nulls().len()
    }
    known = [name.removeprefix(PREFIX) for name in done.columns if name.startswith(PREFIX)]
    filled = [name for name in known if done[PREFIX + name].drop_nulls().len()]
    return sorted(filled, key=lambda name: (-share.get(name, 0.0), name))


def _cell(results: Results, row: Any, name: str) -> Cell:
    found = values(results, row, PREFIX + name)
    return Cell(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else None)


def _notes(results: Results, data: str, names: list[str]) -> list[Note]:
    """Return a note per claim: in how many categories, of the larger and of the smaller half, the row is above."""
    rows = {row.label: row for row in results.rows(data)}
    notes = []
    for claim in results.spec.claims:
        for worse in (name for name in claim.worse if name in rows and claim.better in rows):
            pair = rows[claim.better], rows[worse]
            means = [[values(results, row, PREFIX + name).mean() for name in names] for row in pair]
            gaps = np.array(means[0]) - np.array(means[1])
            half = len(names) // 2
            small = int((gaps[half:] > 0).sum())
            above = int((gaps > 0).sum())
            verdict = "holds" if above == len(names) else "partly" if above > len(names) / 2 else "fails"
            said = {"holds": "holds", "partly": "holds in most categories", "fails": "does not hold"}[verdict]
            notes.append(
                Note(
                    f"The paper says that {claim.text}. In our runs this **{said}**: *{claim.better}* is above"
                    f" *{worse}* in {above} of {len(names)} categories, in {small} of the {len(names) - half} smaller"
                    f" ones; gains from {gaps.min():+.2f} ({names[int(gaps.argmin())]}) to {gaps.max():+.2f}"
                    f" ({names[int(gaps.argmax())]}).",
                    verdict,
                    claim=True,
                )
            )
    return notes


def _draw(results: Results, data: str) -> Any:
    names, rows = categories(results, data), results.rows(data)
    figure, axes = canvas(10, 1.4 + 0.38 * len(names))
    one, at = axes[0, 0], np.arange(len(names))
    means = np.array([[values(results, row, PREFIX + name).mean() for name in names] for row in rows])
    one.hlines(at, means.min(axis=0), means.max(axis=0), color="#999999", linewidth=1.5, zorder=1)
    for k, row in enumerate(rows):
        one.scatter(means[k], at, s=80, color=COLOURS[k % 6], marker=MARKS[k % 6], label=row.label, zorder=2)
    one.set_yticks(at, names)
    one.invert_yaxis()
    one.set_xlabel("MAP by category, percent", fontsize=TEXT)
    one.grid(axis="x", color="#999999", alpha=0.35)
    figure.legend(loc="outside upper center", ncols=len(rows), frameon=False, fontsize=TEXT)
    return figure


KINDS.add("groups", Kind(blocks))
