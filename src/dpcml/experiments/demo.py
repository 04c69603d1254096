"""The demo: what a stranger sees first, on generated data with a known truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpcml.data.planted import PlantedWorld, planted
from dpcml.data.split import Split
from dpcml.evaluation.compare import Comparison, compare
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.report import Report
from dpcml.files import atomic, write_text
from dpcml.models import MODELS, Recommender

METRICS = ("P@10", "R@10", "NDCG@10", "MRR", "minority_R@10", "attribute_ILD@10", "coverage@10")
SETTINGS = {"popularity": {}, "itemknn": {}, "ease": {"l2": 50.0}}


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    world: PlantedWorld
    split: Split
    models: dict[str, Recommender]
    reports: dict[str, Report]
    comparison: Comparison

    def story(self, user: int = 0, n: int = 5) -> str:
        """Tell one user's interests and what each model recommends, as text."""
        data, truth = self.world.data, self.world.truth
        interests = [
            f"{truth.categories[category]} {share:.0%}"
            for category, share in zip(truth.user_interests[user], truth.user_shares[user], strict=True)
            if share > 0
        ]
        lines = [f"user {data.user_ids[user]} likes {', '.join(interests)}; recommended:"]
        for name, model in self.models.items():
            ids, _ = model.recommend(data.user_ids[user], n=n)
            shown = [
                f"{data.items.title(item)} ({', '.join(data.items.attributes.of(item))})"
                for item in data.item_columns(ids)
                if data.items.attributes is not None
            ]
            lines.append(f"  {name:<11} {'; '.join(shown)}")
        return "\n".join(lines)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the world, the reports and the comparison; return the files."""
        folder = Path(folder)
        files = [folder / name for name in ("world.csv", "comparison.csv", "summary.txt")]
        self.world.write_csv(files[0])
        self.comparison.to_csv(files[1])
        write_text(files[2], f"{self.comparison}\n\n{self.story()}\n")
        for name, report in self.reports.items():
            files.append(folder / f"report-{name}.json")
            report.to_json(files[-1])
        return files


def run_demo(n_users: int = 1000, n_items: int = 1000, seed: int = 0) -> Demo:
    """Fit the simple models on a planted world and compare them.

    Examples
    --------
    >>> demo = run_demo(200, 150)
    >>> found = demo.comparison.cells
    >>> found["ease"]["R@10"].mean > found["popularity"]["R@10"].mean
    True
    """
    world = planted(n_users, n_items, seed=seed)
    split = world.data.split((0.6, 0.2, 0.2), seed)
    models = {name: MODELS[name](**settings).fit(split.train) for name, settings in SETTINGS.items()}
    reports = {
        name: evaluate(model, split.train, split.test, valid=split.valid, at=(10,)) for name, model in models.items()
    }
    return Demo(world, split, models, reports, compare(reports.values(), METRICS))


def plot(demo: Demo, path: str | Path) -> None:
    """Draw the recall of majority and minority interests of each model."""
    import numpy as np

    from dpcml.extras import require

    figure = require("matplotlib.figure", "plots").Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    names = list(demo.reports)
    shown = {"all held-out items": "R@10", "outside the majority interest": "minority_R@10"}
    for k, (label, metric) in enumerate(shown.items()):
        heights = [demo.reports[name].metrics[metric] for name in names]
        bars = axes.bar(np.arange(len(names)) + 0.4 * k, heights, 0.38, label=label, color=("#0072B2", "#E69F00")[k])
        axes.bar_label(bars, fmt="%.2f", padding=2)
    axes.set_xticks(np.arange(len(names)) + 0.2, names)
    axes.set_ylabel("recall@10")
    axes.set_title("Who is served? A planted world of majority and minority interests")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=150)
