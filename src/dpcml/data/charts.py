"""A description as bars in the terminal and as a figure in a file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpcml.data.describe import Category, Description, Histogram
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import atomic
from dpcml.utils.packages import require

TOP = 20  # categories shown
LABEL = 30  # characters of a name in a figure
SUFFIXES = (".png", ".svg", ".pdf")
# From the palette of Okabe and Ito, which stays apart for colour-blind eyes.
BLUE, ORANGE = "#0072B2", "#E69F00"


def bars(rows: Sequence[tuple[str, float]], width: int = 80, mark: str = "█") -> str:
    """Draw labelled horizontal bars as text, the longest one as wide as there is room.

    Parameters
    ----------
    rows
        Label and value (at least 0) of each bar.
    width
        Columns to fit into. Labels that take more than a third of it are shortened.
    mark
        What bars are made of; ``"#"`` where the terminal knows only ASCII.

    Examples
    --------
    >>> print(bars([("Drama", 1200), ("War", 300)], width=30, mark="#"))
    Drama  ################  1,200
    War    ####                300
    """
    if not rows:
        return ""
    dots = "…" if mark == "█" else "."
    room = max(width // 3, 4)
    labels = [label if len(label) <= room else label[: room - 1] + dots for label, _ in rows]
    figures = [f"{value:,.0f}" for _, value in rows]
    label_width, figure_width = max(map(len, labels)), max(map(len, figures))
    space = max(width - label_width - figure_width - 4, 1)
    longest = max(value for _, value in rows) or 1
    lines = []
    for label, (_, value), figure in zip(labels, rows, figures, strict=True):
        length = max(round(space * value / longest), 1 if value else 0)
        lines.append(f"{label:<{label_width}}  {mark * length:<{space}}  {figure:>{figure_width}}")
    return "\n".join(lines)


def diversity_bars(histogram: Histogram, width: int = 80, mark: str = "█") -> str:
    """Draw how many users have which preference diversity.

    Examples
    --------
    >>> print(diversity_bars(Histogram(0.5, 3, (0.0, 0.5, 1.0), (1, 2)), width=30, mark="#"))
    0.00-0.50  ########          1
    0.50-1.00  ################  2
    """
    edges = [f"{edge:.2f}" for edge in histogram.edges]
    labels = [f"{low}-{high}" for low, high in pairwise(edges)]
    return bars(list(zip(labels, histogram.counts, strict=True)), width, mark)


def category_bars(categories: Sequence[Category], width: int = 80, mark: str = "█", top: int = TOP) -> str:
    """Draw the positives of the most frequent categories.

    Examples
    --------
    >>> print(category_bars([Category("Drama", 9, 40), Category("War", 1, 20)], width=20, mark="#"))
    Drama  #########  40
    War    ####       20
    """
    return bars([(category.name, category.positives) for category in categories[:top]], width, mark)


def check_suffix(path: Path) -> None:
    """Refuse a plot file whose name does not say a known format.

    Examples
    --------
    >>> check_suffix(Path("figure.bmp"))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: plot file 'figure.bmp': the name must end in one of .png, .svg, .pdf
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"plot file {str(path)!r}: the name must end in one of {', '.join(SUFFIXES)}")


def plot(description: Description, path: str | Path, title: str = "") -> Path:
    """Draw preference diversity and the most frequent categories into a PNG, SVG or PDF file.

    Parameters
    ----------
    description
        Of data whose items have attributes.
    path
        The file; its suffix decides the format. It is written as a whole or not at all.
    title
        The name of the data set, shown above the figure.

    Examples
    --------
    >>> import tempfile
    >>> from dpcml.data.describe import describe
    >>> from dpcml.data.synthetic import planted
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = plot(describe(planted(80, 60).data), Path(folder) / "world.svg", title="planted")
    ...     file.read_text().lstrip().startswith("<?xml")
    True
    """
    path = Path(path)
    check_suffix(path)
    if not description.categories or description.preference_diversity is None:
        raise DataError("nothing to plot: the items have no attributes; pass a catalogue with genres or tags")
    figures = require("matplotlib.figure", "plots")
    shown = description.categories[:TOP]
    figure = figures.Figure(figsize=(11, max(4.0, 1.6 + 0.24 * len(shown))), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_diversity(left, description.preference_diversity)
    _draw_categories(right, description, shown)
    if title:
        figure.suptitle(title, fontweight="bold")
    try:
        with atomic(path) as temporary:
            figure.savefig(temporary, format=path.suffix.lower()[1:], dpi=150)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _draw_diversity(axes: Any, histogram: Histogram) -> None:
    widths = [high - low for low, high in pairwise(histogram.edges)]
    axes.bar(histogram.edges[:-1], histogram.counts, widths, align="edge", color=BLUE, edgecolor="white")
    axes.axvline(histogram.mean, color="black", linestyle="--", label=f"mean {histogram.mean:.3f}")
    axes.set(
        xlim=(0, 1),
        xlabel="share of a user's item pairs without a common attribute",
        ylabel="users",
        title="Preference diversity",
    )
    axes.legend(frameon=False)
    axes.grid(axis="y", alpha=0.3)
    _plain(axes)


def _draw_categories(axes: Any, description: Description, shown: Sequence[Category]) -> None:
    total = len(description.categories or ())
    series = (
        (
            "of all positives",
            BLUE,
            -0.2,
            [100 * category.positives / description.positives for category in shown],
        ),
        ("of all items", ORANGE, 0.2, [100 * category.items / description.items for category in shown]),
    )
    for label, colour, shift, shares in series:
        axes.barh([place + shift for place in range(len(shown))], shares, 0.4, color=colour, label=label)
    axes.set_yticks(range(len(shown)), [_label(category.name) for category in shown])
    axes.set(
        xlabel="percent (an item may be in several categories)",
        title="Categories" if total <= len(shown) else f"Categories: the {len(shown)} most frequent of {total:,}",
    )
    axes.invert_yaxis()
    axes.legend(frameon=False, loc="lower right")
    axes.grid(axis="x", alpha=0.3)
    _plain(axes)


def _label(name: str) -> str:
    """Return a name as matplotlib should show it: not too long, and a dollar sign begins no formula."""
    short = name if len(name) <= LABEL else name[: LABEL - 1] + "…"
    return short.replace("$", r"\$")


def _plain(axes: Any) -> None:
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
