"""Sensitivity to one parameter: curves beside the paper's, and the table behind them."""

from __future__ import annotations

from typing import Any

from dpcml.paper.document import Block, Heading, Note, Notes
from dpcml.paper.kinds import table
from dpcml.paper.kinds.base import KINDS, Kind, Results
from dpcml.paper.kinds.curves import curve, draw_curve, series_of
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import TEXT, canvas


def blocks(results: Results) -> list[Block]:
    """Return for each data set a figure, where each curve is highest, and the blocks of a table."""
    spec, found = results.spec, table.blocks(results)
    drawn: list[Block] = []
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
                results.picture(data, caption, lambda data=data: _draw(results, data)),  # type: ignore[misc]
                Notes(_highest(results, data)),
            ]
    return drawn


def _highest(results: Results, data: str) -> list[Note]:
    """Return notes that say where each curve is highest, and where the paper's is."""
    parameter, notes = results.spec.options["parameter"], []
    for name, rows in series_of(results, data).items():
        for metric in results.spec.options["shown"]:
            found = curve(results, rows, parameter, metric)
            text = f"*{name}*: {metric} is highest at {found.at[int(found.mean.argmax())]:g} in our runs"
            known = [(theirs, at) for theirs, at in zip(found.theirs, found.at, strict=True) if theirs == theirs]
            text += f", at {max(known)[1]:g} in the paper's" if known else ""
            notes.append(Note(f"{text}; it varies by {found.mean.max() - found.mean.min():.2f} over the range."))
    return notes


def _draw(results: Results, data: str) -> Any:
    options = results.spec.options
    figure, axes = canvas(11, 4.6, 1, len(options["shown"]))
    for one, metric in zip(axes[0], options["shown"], strict=True):
        for place, (name, rows) in enumerate(series_of(results, data).items()):
            draw_curve(one, curve(results, rows, options["parameter"], metric), name, place)
        one.set_title(metric, fontsize=TEXT)
        one.set_xlabel(options["axis"], fontsize=TEXT)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


KINDS.add("sweep", Kind(blocks))
