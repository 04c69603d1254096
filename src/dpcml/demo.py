"""The demo: one vector per user, several, and simple models on a planted world, where all interests are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.charts import COLOURS, OTHER, canvas, save
from dpcml.data.split import Split
from dpcml.data.synthetic import PlantedWorld, planted
from dpcml.evaluation.compare import Comparison, compare
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.report import Report
from dpcml.models import Recommender, create
from dpcml.utils.arrays import FloatArray
from dpcml.utils.files import write_text

METRICS = ("NDCG@10", "R@10", "minority_R@10", "attribute_ILD@10", "coverage@10")
MODELS = ("popularity", "itemknn", "ease", "ials", "cml", "dpcml", "blend")  # all with their defaults
LIST = 20  # length of the recommendation lists that the story is about


@dataclass(frozen=True)
class Demo:
    """The planted world, the models trained on it, and their reports."""

    world: PlantedWorld
    split: Split
    models: dict[str, Recommender]
    reports: dict[str, Report]
    comparison: Comparison

    def served(self, model: str, user: int) -> FloatArray:
        """Return the share of each category in a user's first recommendations, shape (categories,)."""
        ids, _ = self.models[model].recommend(self.world.data.user_ids[user], n=LIST)
        categories = self.world.truth.item_category[self.world.data.item_columns(ids)]
        return np.bincount(categories, minlength=len(self.world.truth.categories)) / len(ids)

    def agreement(self) -> str:
        """Return a sentence on how well the vectors of DPCML agree with the true categories."""
        found = self.reports["dpcml"].metrics
        return (
            f"The vectors of dpcml agree with the true categories by {found['interest_agreement']:.2f} on training"
            f" items and {found['interest_agreement_held_out']:.2f} on held-out ones"
            " (adjusted mutual information, at most 1)."
        )

    def typical(self) -> int:
        """Return, of the first 200 users, the one with the median share of minority interests in DPCML's list."""
        truth = self.world.truth
        users = range(min(200, self.world.data.n_users))
        shares = [self.served("dpcml", user)[truth.user_interests[user, 1:]].sum() for user in users]
        return int(np.argsort(shares, kind="stable")[len(shares) // 2])

    def story(self, user: int, n: int = 5) -> str:
        """Return a text: one user's interests, their shares in each model's list, and the first recommendations."""
        data, truth = self.world.data, self.world.truth
        mine = [int(category) for category in truth.user_interests[user] if category >= 0]
        shares = [f"{truth.categories[c]} {s:.0%}" for c, s in zip(mine, truth.user_shares[user], strict=False)]
        lines = [f"User {data.user_ids[user]} likes {', '.join(shares)}. Of the first {LIST} recommendations go to"]
        for name in self.models:
            served = self.served(name, user)
            parts = [f"{truth.categories[c]} {served[c]:.0%}" for c in mine]
            lines.append(f"  {name:<11} {', '.join(parts)}, other {1 - served[mine].sum():.0%}")
        for name in ("cml", "dpcml"):
            ids, _ = self.models[name].recommend(data.user_ids[user], n=n)
            shown = [
                f"{data.items.title(item)} ({truth.categories[truth.item_category[item]]})"
                for item in data.item_columns(ids)
            ]
            lines.append(f"First of {name}: {'; '.join(shown)}")
        return "\n".join(lines)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the world, the reports and the comparison; return the files."""
        folder = Path(folder)
        files = [folder / name for name in ("world.csv", "comparison.csv", "summary.txt")]
        self.world.write_csv(files[0])
        self.comparison.to_csv(files[1])
        write_text(files[2], f"{self.comparison}\n\n{self.agreement()}\n\n{self.story(self.typical())}\n")
        for name, report in self.reports.items():
            files.append(folder / f"report-{name}.json")
            report.to_json(files[-1])
        return files


def run_demo(n_users: int = 1000, n_items: int = 1000, seed: int = 0) -> Demo:
    """Train DPCML, the blend, CML and simple models on a planted world, and evaluate them on its test part.

    Parameters
    ----------
    n_users, n_items
        Size of the planted world.
    seed
        Seed of world and split.

    Examples
    --------
    >>> demo = run_demo(200, 150)
    >>> found = demo.comparison.cells
    >>> found["dpcml"]["R@10"].mean > found["popularity"]["R@10"].mean
    True
    """
    world = planted(n_users, n_items, seed=seed)
    split = world.data.split((0.6, 0.2, 0.2), seed)
    blend = create("blend").fit(split.train, split.valid, progress=False)
    fitted = {"blend": blend, "dpcml": blend.multi_interest}  # which has the defaults: no need to train it twice
    models = {name: fitted.get(name) or create(name).fit(split.train, split.valid, progress=False) for name in MODELS}
    reports = {
        name: evaluate(model, split.train, split.test, valid=split.valid, k=10) for name, model in models.items()
    }
    return Demo(world, split, models, reports, compare(reports.values(), METRICS))


def draw_demo(demo: Demo, path: str | Path, user: int | None = None) -> None:
    """Draw the interests in one user's lists, and the recall of minority interests over all users, as a PNG.

    Needs matplotlib: ``pip install -e '.[plots]'``.
    """
    figure, axes = canvas(13.5, 5.2, 1, 2, width_ratios=(1.7, 1))
    left, right = axes[0]
    _one_user(left, demo, demo.typical() if user is None else user)
    _all_users(right, demo)
    save(figure, Path(path))


def _one_user(axes: Any, demo: Demo, user: int) -> None:
    truth = demo.world.truth
    mine = [int(category) for category in truth.user_interests[user] if category >= 0]
    bars = {"the user": np.append(truth.user_shares[user][: len(mine)], 0.0)}
    for model in [name for name in ("dpcml", "blend", "cml", "ease", "ials") if name in demo.models]:
        served = demo.served(model, user)
        bars[model] = np.append(served[mine], 1 - served[mine].sum())
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
    axes.spines["bottom"].set_visible(False)
    axes.grid(visible=False)
    axes.set_title(f"One user's interests, and the first {LIST} recommendations", fontsize=14)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=len(names))


def _all_users(axes: Any, demo: Demo) -> None:
    names = [name for name in demo.reports if name != "popularity"]
    heights = [demo.reports[name].metrics["minority_R@10"] for name in names]
    colours = [COLOURS[0] if name in ("dpcml", "blend") else OTHER for name in names]
    bars = axes.bar(names, heights, color=colours, width=0.7)
    axes.bar_label(bars, fmt="%.3f", padding=2)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)
    axes.margins(y=0.15)
    axes.set_title("Minority interests: recall@10", fontsize=14)
