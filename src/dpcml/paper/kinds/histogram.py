"""How varied people's tastes are: users by the share of their item pairs that have no attribute in common."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dpcml.data.describe import BINS, preference_diversity
from dpcml.data.interactions import Interactions
from dpcml.paper.document import Block, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results
from dpcml.paper.kinds.of_data import data_jobs, source
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import COLOURS, TEXT, canvas

EDGES = np.arange(BINS + 1) / BINS
NAMES = [f"users {low:.2f}-{high:.2f}" for low, high in pairwise(EDGES)]


def figures(data: Interactions) -> dict[str, Any]:
    """Return the mean preference diversity, the share of users above one half, and the counts of the histogram."""
    found = preference_diversity(data)
    found = found[np.isfinite(found)]
    counts, _ = np.histogram(found.round(12), bins=EDGES)
    summary = {"mean": float(found.mean()), "above half": float((found > 0.5).mean()), "users": len(found)}
    return {**summary, **dict(zip(NAMES, counts.tolist(), strict=True))}


def blocks(results: Results) -> list[Block]:
    """Return one figure over all sets, and what it shows in words."""
    notes = [
        Note(
            f"{title_of(line['data'])}: mean preference diversity {line['mean']:.3f}; {line['above half']:.0%} of"
            f" {line['users']:,} users have more pairs of items without a common category than with one."
        )
        for line in results.lines()
    ]
    caption = "Users by preference diversity: the share of a user's ordered item pairs without a common category."
    return [results.picture("", caption, lambda: _draw(results)), Notes(notes), source(results)]


def _draw(results: Results) -> Any:
    lines = results.lines()
    figure, axes = canvas(max(6, 5.4 * len(lines)), 4.2, 1, len(lines))
    for one, line in zip(axes[0], lines, strict=True):
        shares = 100 * np.array([line[name] for name in NAMES]) / line["users"]
        one.bar(EDGES[:-1], shares, 1 / BINS, align="edge", color=COLOURS[0], edgecolor="white")
        one.axvline(line["mean"], color=COLOURS[5], linestyle="--", linewidth=2.5, label=f"mean {line['mean']:.2f}")
        one.set(xlim=(0, 1), ylim=(0, 1.25 * shares.max()))
        one.set_title(title_of(line["data"]), fontsize=TEXT)
        one.set_xlabel("preference diversity", fontsize=TEXT)
        one.legend(frameon=False, loc="upper left")
    axes[0, 0].set_ylabel("percent of users", fontsize=TEXT)
    return figure


KINDS.add("histogram", Kind(blocks, data_jobs(figures, "preference diversity")))
