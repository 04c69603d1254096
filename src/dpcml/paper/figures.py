"""Pictures of studies: drawn without global state, in colours that everybody can tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpcml.paper.demo import LIST, Demo
from dpcml.paper.plotting import COLOURS, OTHER
from dpcml.utils.files import atomic
from dpcml.utils.packages import require


def draw_demo(demo: Demo, path: str | Path, user: int | None = None) -> None:
    """Draw which of one user's interests each model serves, and the recall of minority interests over all users."""
    figure = require("matplotlib.figure", "plots").Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _one_user(left, demo, demo.example() if user is None else user)
    _all_users(right, demo)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _one_user(axes: Any, demo: Demo, user: int) -> None:
    truth = demo.world.truth
    mine = [int(category) for category in truth.user_interests[user] if category >= 0]
    bars = {"the user": np.append(truth.user_shares[user][: len(mine)], 0.0)}
    for name in ("dpcml", "cml", "ease"):
        served = demo.served(name, user)
        bars[name] = np.append(served[mine], 1 - served[mine].sum())
    names = [truth.categories[c] for c in mine] + ["other"]
    left = np.zeros(len(bars))
    for k, name in enumerate(names):
        widths = np.array([shares[k] for shares in bars.values()])
        colour = COLOURS[k % len(COLOURS)] if k < len(mine) else OTHER
        drawn = axes.barh(list(bars), widths, left=left, color=colour, label=name, height=0.7)
        axes.bar_label(
            drawn, [f"{width:.0%}" if width >= 0.06 else "" for width in widths], label_type="center", color="white"
        )
        left += widths
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.set_title(f"One user's interests, and the first {LIST} recommendations", fontsize=11)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=len(names))


def _all_users(axes: Any, demo: Demo) -> None:
    names = [name for name in demo.reports if name != "popularity"]
    heights = [demo.reports[name].metrics["minority_R@10"] for name in names]
    colours = [COLOURS[0] if name == "dpcml" else OTHER for name in names]
    bars = axes.bar(names, heights, color=colours, width=0.7)
    axes.bar_label(bars, fmt="%.3f", padding=2)
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.margins(y=0.15)
    axes.set_title("Minority interests: recall@10", fontsize=11)
