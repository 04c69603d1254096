"""Figures over a parameter, from the rows of a study that lie on curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpcml.paper.kinds.base import Results
from dpcml.paper.paper import published
from dpcml.paper.plotting import COLOURS, MARKS
from dpcml.paper.spec import Row
from dpcml.utils.arrays import FloatArray

UNSCALED = ("training loss",)  # figures that are no share, and are shown as they are


@dataclass(frozen=True)
class Curve:
    """A figure over the values of a parameter."""

    at: list[Any]  # values of the parameter
    mean: FloatArray  # (values,)
    spread: FloatArray  # (values,) standard deviation over seeds, 0 for a single one
    theirs: FloatArray  # (values,) the paper's figure, NaN where it has none


def series_of(results: Results, data: str) -> dict[str, list[Row]]:
    """Return the finished rows of each curve on a data set, ordered as the study has them."""
    found: dict[str, list[Row]] = {}
    for row in results.rows(data):
        if row.series and row.point:
            found.setdefault(row.series, []).append(row)
    return found


def values(results: Results, row: Row, metric: str) -> FloatArray:
    """Return a row's figures in a metric, one per seed, as shown."""
    done = results.of(row).sort("seed")
    scale = 1.0 if metric in UNSCALED else results.spec.scale
    return scale * done[metric].cast(pl.Float64).to_numpy()


def curve(results: Results, rows: list[Row], parameter: str, metric: str) -> Curve:
    """Return a metric over a parameter, in ascending order of the parameter."""
    ordered = sorted(rows, key=lambda row: float(row.point[parameter]))
    found = [values(results, row, metric) for row in ordered]
    spec = results.spec
    theirs = [
        np.nan if row.paper is None else spec.scale * published(row.data, row.paper, spec.published).get(metric, np.nan)
        for row in ordered
    ]
    return Curve(
        [row.point[parameter] for row in ordered],
        np.array([one.mean() for one in found]),
        np.array([one.std(ddof=1) if len(one) > 1 else 0.0 for one in found]),
        np.array(theirs, dtype=float),
    )


def draw_curve(axes: Any, found: Curve, label: str, place: int, *, mark: int | None = None) -> None:
    """Draw a curve with its spread, and the paper's as a dashed line of the same colour."""
    colour, sign = COLOURS[place % len(COLOURS)], MARKS[(place if mark is None else mark) % len(MARKS)]
    at = np.arange(len(found.at))
    axes.errorbar(
        at, found.mean, found.spread, color=colour, marker=sign, markersize=8, linewidth=2.2, capsize=4, label=label
    )
    if not np.isnan(found.theirs).all():
        axes.plot(at, found.theirs, color=colour, marker=sign, markersize=7, markerfacecolor="none", linestyle="--",
                  linewidth=1.6, label=f"{label}, the paper")  # fmt: skip
    axes.set_xticks(at, [f"{value:g}" for value in found.at])
