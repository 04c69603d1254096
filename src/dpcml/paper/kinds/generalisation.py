"""Training loss, and MRR on held-out parts, against the number of vectors: the paper's look at its corollary."""

from __future__ import annotations

from typing import Any

from dpcml.paper.document import Block, Heading, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results, provenance
from dpcml.paper.kinds.curves import Curve, curve, draw_curve, series_of
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import TEXT, canvas
from dpcml.paper.table import Cell, Line, Table

SHOWN = {"training loss": 3, "validation MRR": 2, "MRR": 2}  # with digits
NAMES = {"MRR": "test MRR"}


def blocks(results: Results) -> list[Block]:
    """Return for each data set a figure, a table, and whether more vectors mean less loss and better ranks."""
    found: list[Block] = []
    for data in results.sets():
        caption = (
            f"Training loss (mean hinge of the kept epoch) and MRR on validation and test part against the number of"
            f" vectors per user, on {title_of(data)}: mean and standard deviation over seeds."
        )
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda data=data: _draw(results, data)),  # type: ignore[misc]
            Notes([note for name in series_of(results, data) for note in _notes(results, data, name)]),
            _table(results, data),
            provenance(results, data),
        ]
    return found


def _curves(results: Results, data: str, name: str) -> dict[str, Curve]:
    rows = series_of(results, data)[name]
    return {metric: curve(results, rows, "n_vectors", metric) for metric in SHOWN}


def _notes(results: Results, data: str, name: str) -> list[Note]:
    """Compare every number of vectors above one with one."""
    notes = []
    for metric, found in _curves(results, data, name).items():
        if len(found.at) < 2 or found.at[0] != 1:
            continue
        sign = -1 if metric == "training loss" else 1
        gaps = sign * (found.mean[1:] - found.mean[0])
        better = [f"{value:g}" for value, gap in zip(found.at[1:], gaps, strict=True) if gap > 0]
        words = "lower" if sign < 0 else "higher"
        verdict = "holds" if len(better) == len(gaps) else "partly" if better else "fails"
        said = {"holds": "holds", "partly": "holds in part", "fails": "does not hold"}[verdict]
        where = f"C = {', '.join(better)}" if better else "no C"
        notes.append(
            Note(
                f"The paper says that several vectors have a {words} {NAMES.get(metric, metric)} than one. In our runs"
                f" this **{said}** for *{name}*: {words} at {where}; at best {sign * gaps.max():+.{SHOWN[metric]}f}, at"
                f" C = {found.at[1 + int(gaps.argmax())]:g}.",
                verdict,
                claim=True,
            )
        )
    return notes


def _table(results: Results, data: str) -> Table:
    lines = []
    for name in series_of(results, data):
        found = _curves(results, data, name)
        for k, value in enumerate(next(iter(found.values())).at):
            cells = [Cell(one.mean[k], one.spread[k], digits=SHOWN[metric]) for metric, one in found.items()]
            lines.append(Line(f"{name}, C = {value:g}", cells))
    return Table([NAMES.get(metric, metric) for metric in SHOWN], lines)


def _draw(results: Results, data: str) -> Any:
    names = list(series_of(results, data))
    figure, axes = canvas(11, 4.2 * len(names), len(names), 2)
    for row, name in zip(axes, names, strict=True):
        found = _curves(results, data, name)
        draw_curve(row[0], found["training loss"], "training loss", 5)
        draw_curve(row[1], found["validation MRR"], "validation", 0)
        draw_curve(row[1], found["MRR"], "test", 1)
        row[0].set_title(f"{name}: training loss", fontsize=TEXT)
        row[1].set_title(f"{name}: MRR", fontsize=TEXT)
        row[1].legend(frameon=False)
        for one in row:
            one.set_xlabel("vectors per user, C", fontsize=TEXT)
    return figure


KINDS.add("generalisation", Kind(blocks))
