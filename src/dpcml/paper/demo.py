"""The demo: what a stranger sees first, on generated data with a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.planted import PlantedWorld, planted
from dpcml.data.split import Split
from dpcml.evaluation.compare import Comparison, compare
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.report import Report
from dpcml.models import Recommender, create
from dpcml.utils.arrays import FloatArray
from dpcml.utils.files import write_text

METRICS = ("P@10", "R@10", "MRR", "minority_R@10", "attribute_ILD@10", "coverage@10")
_VECTORS = {"dim": 32, "n_candidates": 10, "epochs": 30, "patience": None, "schedule": "linear"}
SETTINGS: dict[str, dict[str, Any]] = {
    "popularity": {},
    "itemknn": {},
    "ease": {"l2": 50.0},
    "cml": _VECTORS,
    "dpcml": {**_VECTORS, "n_vectors": 3, "diversity": (0.2, 0.5)},
}
LIST = 20  # length of the lists that the story looks at


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    world: PlantedWorld
    split: Split
    models: dict[str, Recommender]
    reports: dict[str, Report]
    comparison: Comparison

    def served(self, model: str, user: int) -> FloatArray:
        """Return the share of a user's first recommendations that goes to each category; shape (categories,)."""
        ids, _ = self.models[model].recommend(self.world.data.user_ids[user], n=LIST)
        categories = self.world.truth.item_category[self.world.data.item_columns(ids)]
        return np.bincount(categories, minlength=len(self.world.truth.categories)) / len(ids)

    def example(self) -> int:
        """Return the user, of the first 200, for whom DPCML serves most of the minority interests that CML does not.

        It is the most favourable example, not a typical one, and must be shown as such.
        """
        truth = self.world.truth

        def served_minorities(model: str, user: int) -> float:
            return float(self.served(model, user)[truth.user_interests[user, 1:]].clip(max=0.2).sum())

        users = range(min(200, self.world.data.n_users))
        gains = [served_minorities("dpcml", user) - served_minorities("cml", user) for user in users]
        return int(np.argmax(gains))

    def story(self, user: int, n: int = 5) -> str:
        """Tell one user's interests, which of them each model serves, and with what, as text."""
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
        write_text(files[2], f"{self.comparison}\n\n{self.story(self.example())}\n")
        for name, report in self.reports.items():
            files.append(folder / f"report-{name}.json")
            report.to_json(files[-1])
        return files


def run_demo(n_users: int = 1000, n_items: int = 1000, seed: int = 0) -> Demo:
    """Train models with one and with several vectors per user on a planted world, and simple ones beside them.

    Examples
    --------
    >>> demo = run_demo(200, 150)
    >>> found = demo.comparison.cells
    >>> found["dpcml"]["R@10"].mean > found["popularity"]["R@10"].mean
    True
    """
    world = planted(n_users, n_items, seed=seed)
    split = world.data.split((0.6, 0.2, 0.2), seed)
    models = {name: create(name, **settings).fit(split.train, split.valid) for name, settings in SETTINGS.items()}
    reports = {
        name: evaluate(model, split.train, split.test, valid=split.valid, at=(10,)) for name, model in models.items()
    }
    return Demo(world, split, models, reports, compare(reports.values(), METRICS))
