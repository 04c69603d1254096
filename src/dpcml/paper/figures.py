"""Figures of studies: drawn without global state, in colours for colour-blind readers, readable at half size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpcml.paper.document import FIGURES
from dpcml.utils.files import atomic
from dpcml.utils.packages import require

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")  # Okabe and Ito
MARKS = ("o", "s", "^", "D", "v", "P")  # curves differ in marker as well as in colour
OTHER = "#999999"
TEXT = 14  # points in a figure 10 inches wide: still 7 at half size


def canvas(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Any, Any]:
    """Return a figure and its axes, of which there are (rows, columns).

    Examples
    --------
    >>> figure, axes = canvas(10, 4, 1, 2)
    >>> axes.shape
    (1, 2)
    """
    figure = require("matplotlib.figure", "plots").Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for one in axes.flat:
        plain(one)
    return figure, axes


def plain(axes: Any) -> None:
    """Remove the upper and the right frame, and make the grid light."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=OTHER, alpha=0.35, linewidth=0.8)


def save(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG into the folder of figures beside a report."""
    matplotlib = require("matplotlib", "plots")
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_fontsize() < TEXT - 3:
            text.set_fontsize(TEXT - 2)  # still readable at half size
    with atomic(folder / FIGURES / f"{name}.png") as temporary:
        figure.savefig(temporary, dpi=100, metadata={"Software": None})
