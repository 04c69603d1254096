"""How figures look: drawn without global state, in colours that everybody can tell apart, readable at half size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dpcml.paper.document import FIGURES
from dpcml.utils.files import atomic, write_text
from dpcml.utils.packages import require

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")  # Okabe and Ito
MARKS = ("o", "s", "^", "D", "v", "P")  # a second sign beside colour
OTHER = "#999999"
INK = "#010203"  # black that becomes the page's own colour of text in HTML
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
    """Take away what does not inform: upper and right frame, heavy grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=OTHER, alpha=0.35, linewidth=0.8)


def save(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as PNG, and as SVG whose text takes the colour of the page that it stands in."""
    matplotlib = require("matplotlib", "plots")
    _ink(figure, matplotlib)
    place = folder / FIGURES
    with matplotlib.rc_context({"svg.hashsalt": name}):
        with atomic(place / f"{name}.png") as temporary:
            figure.savefig(temporary, dpi=100, metadata={"Software": None})
        with atomic(place / f"{name}.svg") as temporary:
            figure.savefig(temporary, format="svg", transparent=True, metadata={"Date": None})
    drawing = (place / f"{name}.svg").read_text(encoding="utf-8")
    drawing = re.sub(r' (width|height)="[\d.]+pt"', "", drawing).replace(INK, "currentColor")
    write_text(place / f"{name}.svg", re.sub(r"[ \t]+\n", "\n", drawing))


def _ink(figure: Any, matplotlib: Any) -> None:
    """Give text, ticks and frames one colour and a size that survives shrinking."""
    black = {"black", "k", "#000000", (0, 0, 0, 1), (0.0, 0.0, 0.0, 1.0)}
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_color() in black:
            text.set_color(INK)
        if text.get_fontsize() < TEXT - 3:
            text.set_fontsize(TEXT - 2)
    for axes in figure.axes:
        axes.tick_params(colors=INK)
        for spine in axes.spines.values():
            spine.set_edgecolor(INK)
