"""Metrics over parameters: a sweep of one, a surface of two, and training loss beside held-out ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpcml.data.charts import COLOURS, MARKS, TEXT, canvas
from dpcml.paper.document import Heading, Note, Notes, ReportBlock, ReportTable, TableCell, TableLine
from dpcml.paper.published import published_figures, title_of
from dpcml.paper.spec import StudyRow
from dpcml.paper.study_types.base import STUDY_TYPES, StudyResults, StudyType, provenance
from dpcml.paper.study_types.tables import table_blocks
from dpcml.paper.verdicts import PairedGap, judge, paired_gap
from dpcml.utils.arrays import FloatArray
from dpcml.utils.packages import require

UNSCALED = ("training loss",)  # figures that are no share, and are shown as they are
DARK = "#111111"  # text on light cells
SHOWN = {"training loss": 3, "validation MRR": 2, "MRR": 2}  # with digits
NAMES = {"MRR": "test MRR"}


@dataclass(frozen=True)
class Curve:
    """A figure over the values of a parameter."""

    at: list[Any]  # values of the parameter
    mean: FloatArray  # (values,)
    spread: FloatArray  # (values,) standard deviation over seeds, 0 for a single one
    theirs: FloatArray  # (values,) the paper's figure, NaN where it has none


def series_of(results: StudyResults, data: str) -> dict[str, list[StudyRow]]:
    """Return the finished rows of each curve on a data set, ordered as the study has them."""
    found: dict[str, list[StudyRow]] = {}
    for row in results.rows(data):
        if row.series and row.point:
            found.setdefault(row.series, []).append(row)
    return found


def _drawn_sets(results: StudyResults) -> list[str]:
    """Return the data sets that have a curve: all, unless a search has found other settings since."""
    return [data for data in results.sets() if series_of(results, data)]


def values(results: StudyResults, row: StudyRow, metric: str) -> FloatArray:
    """Return a row's figures in a metric, one per seed, as shown."""
    done = results.of(row).sort("seed")
    scale = 1.0 if metric in UNSCALED else results.spec.scale
    return scale * done[metric].cast(pl.Float64).to_numpy()


def curve(results: StudyResults, rows: list[StudyRow], parameter: str, metric: str) -> Curve:
    """Return a metric over a parameter, in ascending order of the parameter."""
    ordered = sorted(rows, key=lambda row: float(row.point[parameter]))
    found = [values(results, row, metric) for row in ordered]
    spec = results.spec
    theirs = [
        np.nan
        if row.paper is None
        else spec.scale * published_figures(row.data, row.paper, spec.published).get(metric, np.nan)
        for row in ordered
    ]
    return Curve(
        [row.point[parameter] for row in ordered],
        np.array([one.mean() for one in found]),
        np.array([one.std(ddof=1) if len(one) > 1 else 0.0 for one in found]),
        np.array(theirs, dtype=float),
    )


def row_gap(
    results: StudyResults, better: StudyRow, worse: StudyRow, metric: str, name: str, sign: int = 1
) -> PairedGap:
    """Return the difference of two rows in a metric, paired by seed; ``sign`` is -1 where less is better."""
    one, other = (dict(zip(_seeds(results, row), values(results, row, metric), strict=True)) for row in (better, worse))
    shared = sorted(set(one) & set(other))
    return paired_gap(name, np.array([sign * (one[seed] - other[seed]) for seed in shared] or [0.0]))


def _seeds(results: StudyResults, row: StudyRow) -> list[int]:
    return [int(seed) for seed in results.of(row).sort("seed")["seed"]]


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


def sweep_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return for each data set a figure, notes on the maximum of each curve, and the blocks of a table."""
    spec, found = results.spec, table_blocks(results)
    drawn: list[ReportBlock] = []
    for block in found:
        drawn.append(block)
        if isinstance(block, Heading):
            data = next(name for name in results.sets() if title_of(name) == block.text)
            shown = " and ".join(spec.options["shown"])
            caption = (
                f"{shown} over the {spec.options['axis']}, on {block.text}: mean and standard deviation over seeds."
            )
            if spec.published and any(row.paper for row in results.rows(data)):
                caption += " Dashed: the paper's figures."
            drawn += [
                results.picture(data, caption, lambda data=data: _draw_sweep(results, data)),  # type: ignore[misc]
                Notes(_highest(results, data)),
            ]
    return drawn


def _highest(results: StudyResults, data: str) -> list[Note]:
    """Return notes on the parameter with the highest value of each curve, ours and the paper's."""
    parameter, notes = results.spec.options["parameter"], []
    for name, rows in series_of(results, data).items():
        for metric in results.spec.options["shown"]:
            found = curve(results, rows, parameter, metric)
            text = f"*{name}*: {metric} is highest at {found.at[int(found.mean.argmax())]:g} in our runs"
            known = [(theirs, at) for theirs, at in zip(found.theirs, found.at, strict=True) if theirs == theirs]
            text += f", at {max(known)[1]:g} in the paper's" if known else ""
            notes.append(Note(f"{text}; it varies by {found.mean.max() - found.mean.min():.2f} over the range."))
    return notes


def _draw_sweep(results: StudyResults, data: str) -> Any:
    options = results.spec.options
    figure, axes = canvas(11, 4.6, 1, len(options["shown"]))
    for one, metric in zip(axes[0], options["shown"], strict=True):
        for place, (name, rows) in enumerate(series_of(results, data).items()):
            draw_curve(one, curve(results, rows, options["parameter"], metric), name, place)
        one.set_title(metric, fontsize=TEXT)
        one.set_xlabel(options["axis"], fontsize=TEXT)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


STUDY_TYPES.add("sweep", StudyType(sweep_blocks))


def surface_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return for each data set the surfaces as a figure and as tables, and how they compare with no control."""
    metric, found = results.spec.options["metric"], list[ReportBlock]()
    for data in _drawn_sets(results):
        caption = f"Metrics over the bounds of DCRS on {title_of(data)}; the highest of each panel is framed."
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda data=data: _draw_surfaces(results, data)),  # type: ignore[misc]
            Notes(
                [
                    note
                    for name, rows in series_of(results, data).items()
                    for note in _surface_notes(results, data, name, rows)
                ]
            ),
        ]
        for name, rows in series_of(results, data).items():
            lower, upper, grid = surface(results, rows, metric)
            lines = [
                TableLine(
                    f"{name}, delta_1 {low:g}",
                    [TableCell(value, digits=results.spec.digits, best=value == np.nanmax(grid)) for value in grid[k]],
                )
                for k, low in enumerate(lower)
            ]
            found.append(ReportTable([f"{metric}, delta_2 {high:g}" for high in upper], lines))
        found.append(provenance(results, data))
    return found


def surface(results: StudyResults, rows: list[StudyRow], metric: str) -> tuple[list[float], list[float], FloatArray]:
    """Return lower bounds, upper bounds and means over seeds of shape (lower, upper); NaN where there is no run."""
    points = {(float(low), float(high)): row for row in rows for low, high in [row.point["diversity"]]}
    lower, upper = (sorted({point[k] for point in points}) for k in (0, 1))
    grid = np.full((len(lower), len(upper)), np.nan)
    for (low, high), row in points.items():
        grid[lower.index(low), upper.index(high)] = values(results, row, metric).mean()
    return lower, upper, grid


def _surface_notes(results: StudyResults, data: str, name: str, rows: list[StudyRow]) -> list[Note]:
    metric, digits = results.spec.options["metric"], results.spec.digits
    lower, upper, grid = surface(results, rows, metric)
    k, j = np.unravel_index(int(np.nanargmax(grid)), grid.shape)
    best = f"the highest {metric} of *{name}* is {grid[k, j]:.{digits}f} at ({lower[k]:g}, {upper[j]:g})"
    free = [row for row in results.rows(data) if row.series == name and not row.point]
    if not free:
        return [Note(f"In our runs {best}.")]
    reference = float(values(results, free[0], metric).mean())
    (verdict,) = judge([[row_gap(results, row, free[0], metric, row.label) for row in rows]])
    text = (
        f"The paper says that the control boosts accuracy. In our runs this **{verdict.words}** for *{name}*: of"
        f" {len(rows)} pairs of bounds, against no control ({reference:.{digits}f}), {verdict.counts},"
        f" {verdict.seeds}; {best}."
    )
    return [Note(text, verdict.name, claim=True)]


def _draw_surfaces(results: StudyResults, data: str) -> Any:
    """Draw a row of panels per metric, with one panel per curve."""
    options, curves = results.spec.options, series_of(results, data)
    metrics = options.get("shown", [options["metric"]])
    figure, axes = canvas(5.6 * len(curves), 4.4 * len(metrics), len(metrics), len(curves))
    for panels, metric in zip(axes, metrics, strict=True):
        for one, (name, rows) in zip(panels, curves.items(), strict=True):
            figure.colorbar(_draw_surface(one, *surface(results, rows, metric)), ax=one)
            one.set_title(f"{name}, {metric}", fontsize=TEXT)
    return figure


def _draw_surface(one: Any, lower: list[float], upper: list[float], grid: FloatArray) -> Any:
    """Draw a metric over both bounds, with its values; return the image."""
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
    return shown


def _frame(column: int, row: int) -> Any:
    rectangle = require("matplotlib.patches", "plots").Rectangle
    return rectangle((column - 0.47, row - 0.46), 0.94, 0.92, fill=False, edgecolor="#D55E00", linewidth=3)


STUDY_TYPES.add("surface", StudyType(surface_blocks))


def generalisation_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return for each data set a figure, a table, and whether more vectors mean less loss and better ranks."""
    found: list[ReportBlock] = []
    for data in _drawn_sets(results):
        caption = (
            f"Training loss (mean hinge of the kept epoch) and MRR on validation and test part against the number of"
            f" vectors per user, on {title_of(data)}: mean and standard deviation over seeds."
        )
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda data=data: _draw_generalisation(results, data)),  # type: ignore[misc]
            Notes([note for name in series_of(results, data) for note in _generalisation_notes(results, data, name)]),
            _generalisation_table(results, data),
            provenance(results, data),
        ]
    return found


def _generalisation_curves(results: StudyResults, data: str, name: str) -> dict[str, Curve]:
    rows = series_of(results, data)[name]
    return {metric: curve(results, rows, "n_vectors", metric) for metric in SHOWN}


def _generalisation_notes(results: StudyResults, data: str, name: str) -> list[Note]:
    """Compare every number of vectors above one with one."""
    rows = sorted(series_of(results, data)[name], key=lambda row: float(row.point["n_vectors"]))
    if len(rows) < 2 or rows[0].point["n_vectors"] != 1:
        return []
    signs = {metric: -1 if metric == "training loss" else 1 for metric in SHOWN}
    gaps = [
        [row_gap(results, row, rows[0], metric, f"{row.point['n_vectors']:g}", sign) for row in rows[1:]]
        for metric, sign in signs.items()
    ]
    notes = []
    for (metric, sign), verdict in zip(signs.items(), judge(gaps), strict=True):
        words = "lower" if sign < 0 else "higher"
        better = [gap.metric for gap in verdict.gaps if gap.side > 0]
        where = f"C = {', '.join(better)}" if better else "no C"
        best = max(verdict.gaps, key=lambda gap: gap.mean)
        notes.append(
            Note(
                f"The paper says that several vectors have a {words} {NAMES.get(metric, metric)} than one. In our runs"
                f" this **{verdict.words}** for *{name}*: significantly {words} at {where} ({verdict.counts},"
                f" {verdict.seeds}); at best"
                f" {sign * best.mean:+.{SHOWN[metric]}f}, at C = {best.metric}.",
                verdict.name,
                claim=True,
            )
        )
    return notes


def _generalisation_table(results: StudyResults, data: str) -> ReportTable:
    lines = []
    for name in series_of(results, data):
        found = _generalisation_curves(results, data, name)
        for k, value in enumerate(next(iter(found.values())).at):
            cells = [TableCell(one.mean[k], one.spread[k], digits=SHOWN[metric]) for metric, one in found.items()]
            lines.append(TableLine(f"{name}, C = {value:g}", cells))
    return ReportTable([NAMES.get(metric, metric) for metric in SHOWN], lines)


def _draw_generalisation(results: StudyResults, data: str) -> Any:
    names = list(series_of(results, data))
    figure, axes = canvas(11, 4.2 * len(names), len(names), 2)
    for row, name in zip(axes, names, strict=True):
        found = _generalisation_curves(results, data, name)
        draw_curve(row[0], found["training loss"], "training loss", 5)
        draw_curve(row[1], found["validation MRR"], "validation", 0)
        draw_curve(row[1], found["MRR"], "test", 1)
        row[0].set_title(f"{name}: training loss", fontsize=TEXT)
        row[1].set_title(f"{name}: MRR", fontsize=TEXT)
        row[1].legend(frameon=False)
        for one in row:
            one.set_xlabel("vectors per user, C", fontsize=TEXT)
    return figure


STUDY_TYPES.add("generalisation", StudyType(generalisation_blocks))
