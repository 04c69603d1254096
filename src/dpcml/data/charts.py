"""Figures: drawn by matplotlib without global state, in colours for colour-blind readers, readable at half size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dpcml.data.describe import Description
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import atomic
from dpcml.utils.packages import require

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")  # Okabe and Ito
MARKS = ("o", "s", "^", "D", "v", "P")  # curves differ in marker as well as in colour
OTHER = "#999999"
TEXT = 14  # points in a figure 10 inches wide: still 7 at half size
TOP = 20  # categories shown
LABEL = 30  # characters of a name
SUFFIXES = (".png", ".svg", ".pdf")


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
        one.spines[["top", "right"]].set_visible(False)
        one.set_axisbelow(True)
        one.grid(axis="y", color=OTHER, alpha=0.35, linewidth=0.8)
    return figure, axes


def save(figure: Any, path: Path) -> None:
    """Write a figure to a PNG, SVG or PDF file, as a whole or not at all; small text is enlarged."""
    for text in figure.findobj(require("matplotlib.text", "plots").Text):
        if text.get_fontsize() < TEXT - 3:
            text.set_fontsize(TEXT - 2)  # still readable at half size
    kind = path.suffix.lower()[1:]
    with atomic(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=100, metadata={"Software": None} if kind == "png" else None)


def draw_diversity(axes: Any, edges: Sequence[float], heights: Any, mean: float) -> None:
    """Draw a histogram of preference diversity, with its mean as a dashed line."""
    widths = [high - low for low, high in pairwise(edges)]
    axes.bar(edges[:-1], heights, widths, align="edge", color=COLOURS[0], edgecolor="white")
    axes.axvline(mean, color=COLOURS[5], linestyle="--", linewidth=2.5, label=f"mean {mean:.3f}")
    axes.set(xlim=(0, 1), ylim=(0, 1.25 * max(heights)))
    axes.legend(frameon=False, loc="upper left")


def draw_shares(axes: Any, names: Sequence[str], shares: Mapping[str, Sequence[float]]) -> None:
    """Draw horizontal bars for each name, one per kind of share; ``shares`` gives percents by label."""
    for k, (label, values) in enumerate(shares.items()):
        places = [place + 0.4 * k - 0.2 for place in range(len(names))]
        axes.barh(places, values, 0.4, color=COLOURS[k], label=label)
    short = [name if len(name) <= LABEL else name[: LABEL - 1] + "…" for name in names]
    axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in short])  # a dollar would begin a formula
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=OTHER, alpha=0.35)
    axes.legend(frameon=False, loc="lower right")


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
    categories, diversity = description.categories, description.preference_diversity
    if not categories or diversity is None:
        raise DataError("nothing to plot: the items have no attributes; pass a catalogue with genres or tags")
    shown = categories[:TOP]
    figure, axes = canvas(14, max(4.0, 1.6 + 0.3 * len(shown)), 1, 2)
    left, right = axes[0]
    draw_diversity(left, diversity.edges, diversity.counts, diversity.mean)
    left.set_xlabel("share of a user's item pairs without a common attribute")
    left.set(ylabel="users", title="Preference diversity")
    positives = [100 * category.positives / description.positives for category in shown]
    items = [100 * category.items / description.items for category in shown]
    draw_shares(right, [one.name for one in shown], {"of all positives": positives, "of all items": items})
    more = "" if len(categories) <= TOP else f": the {TOP} most frequent of {len(categories):,}"
    right.set(xlabel="percent (an item may be in several categories)", title=f"Categories{more}")
    if title:
        figure.suptitle(title, fontweight="bold")
    save(figure, path)
    return path
