"""Accuracy over the two bounds of the diversity control."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcml.paper.document import Block, Heading, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results, provenance
from dpcml.paper.kinds.curves import series_of, values
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import TEXT, canvas
from dpcml.paper.spec import Row
from dpcml.paper.table import Cell, Line, Table
from dpcml.utils.arrays import FloatArray

DARK = "#111111"  # on light cells, whatever the page's colours are


def blocks(results: Results) -> list[Block]:
    """Return for each data set the surfaces as a figure and as tables, and how they compare with no control."""
    metric, found = results.spec.options["metric"], list[Block]()
    for data in results.sets():
        caption = f"{metric} over the bounds of DCRS on {title_of(data)}; the highest of each panel is framed."
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda data=data: _draw(results, data)),  # type: ignore[misc]
            Notes(
                [note for name, rows in series_of(results, data).items() for note in _notes(results, data, name, rows)]
            ),
        ]
        for name, rows in series_of(results, data).items():
            lower, upper, grid = surface(results, rows, metric)
            lines = [
                Line(
                    f"{name}, delta_1 {low:g}",
                    [Cell(value, digits=results.spec.digits, best=value == np.nanmax(grid)) for value in grid[k]],
                )
                for k, low in enumerate(lower)
            ]
            found.append(Table([f"{metric}, delta_2 {high:g}" for high in upper], lines))
        found.append(provenance(results, data))
    return found


def surface(results: Results, rows: list[Row], metric: str) -> tuple[list[float], list[float], FloatArray]:
    """Return lower bounds, upper bounds and means over seeds of shape (lower, upper); NaN where there is no run."""
    points = {(float(low), float(high)): row for row in rows for low, high in [row.point["diversity"]]}
    lower, upper = (sorted({point[k] for point in points}) for k in (0, 1))
    grid = np.full((len(lower), len(upper)), np.nan)
    for (low, high), row in points.items():
        grid[lower.index(low), upper.index(high)] = values(results, row, metric).mean()
    return lower, upper, grid


def _notes(results: Results, data: str, name: str, rows: list[Row]) -> list[Note]:
    metric, digits = results.spec.options["metric"], results.spec.digits
    lower, upper, grid = surface(results, rows, metric)
    k, j = np.unravel_index(int(np.nanargmax(grid)), grid.shape)
    best = f"the highest {metric} of *{name}* is {grid[k, j]:.{digits}f} at ({lower[k]:g}, {upper[j]:g})"
    free = [row for row in results.rows(data) if row.series == name and not row.point]
    if not free:
        return [Note(f"In our runs {best}.")]
    reference = float(values(results, free[0], metric).mean())
    above, n = int((grid > reference).sum()), int((~np.isnan(grid)).sum())
    text = (
        f"The paper says that the control boosts accuracy. In our runs {above} of {n} pairs of bounds are above"
        f" *{name}* without control ({reference:.{digits}f}); {best}."
    )
    return [Note(text, "holds" if above == n else "partly" if above else "fails", claim=True)]


def _draw(results: Results, data: str) -> Any:
    metric, curves = results.spec.options["metric"], series_of(results, data)
    figure, axes = canvas(5.6 * len(curves), 4.9, 1, len(curves))
    for one, (name, rows) in zip(axes[0], curves.items(), strict=True):
        lower, upper, grid = surface(results, rows, metric)
        shown = one.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
        middle = (np.nanmin(grid) + np.nanmax(grid)) / 2
        for (k, j), value in np.ndenumerate(grid):
            if not np.isnan(value):
                colour = "white" if value < middle else DARK
                one.text(j, k, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=TEXT)
        k, j = np.unravel_index(int(np.nanargmax(grid)), grid.shape)
        one.add_patch(_frame(int(j), int(k)))
        one.grid(visible=False)
        one.set_xticks(range(len(upper)), [f"{value:g}" for value in upper])
        one.set_yticks(range(len(lower)), [f"{value:g}" for value in lower])
        one.set_xlabel("upper bound, delta_2", fontsize=TEXT)
        one.set_ylabel("lower bound, delta_1", fontsize=TEXT)
        one.set_title(f"{name}, {metric}", fontsize=TEXT)
        figure.colorbar(shown, ax=one)
    return figure


def _frame(column: int, row: int) -> Any:
    from dpcml.utils.packages import require

    rectangle = require("matplotlib.patches", "plots").Rectangle
    return rectangle((column - 0.47, row - 0.46), 0.94, 0.92, fill=False, edgecolor="#D55E00", linewidth=3)


KINDS.add("surface", Kind(blocks))
