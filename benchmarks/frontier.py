"""Accuracy against minority recall and coverage: our dial and other re-rankers, on top of several models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.mix import ranks_of_lists
from benchmarks.workloads import fitted, with_seed
from dpcml.data.interactions import Interactions
from dpcml.evaluation import diversity, groups, metrics
from dpcml.models import create
from dpcml.models.base import Recommender
from dpcml.models.multi_interest import MultiInterest
from dpcml.retrieval.aspects import Aspects, CategoryAspects, mixed_lists
from dpcml.retrieval.request import UserBatch
from dpcml.retrieval.rerank import pool_size
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.packages import require, version

MODELS = ("ease", "ials", "cml", "dpcml", "blend")
METHODS = {  # re-ranker, and what it takes as interests
    "minority": ("minority", "categories"),
    "minority, vectors": ("minority", "interests"),
    "mmr": ("mmr", "categories"),
    "xquad": ("xquad", "categories"),
    "calibrated": ("calibrated", "categories"),
}
OURS = "minority"
STEPS = 11  # of every dial
LOSSES = (0.01, 0.02, 0.05, 0.1)  # shares of NDCG that a list for smaller interests may cost


def bench_frontier(
    sets: Mapping[str, Interactions],
    *,
    models: Sequence[str] = MODELS,
    steps: int = STEPS,
    n: int = 10,
    seeds: int = 3,
    part: str = "test",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Evaluate every re-ranker at the same steps of its dial, on the lists of every model.

    Parameters
    ----------
    sets
        Data by name; items need categories.
    models
        Names of models or presets; the last one with vectors gives the interests of ``minority, vectors``.
    steps
        Values of the dial, evenly spaced from 0 to 1.
    n
        Length of the lists.
    seeds
        Runs, each with its own 60/20/20 split and models.
    part
        ``test``, or ``valid`` while a method is developed: models are then trained without a validation part.
    settings
        Parameters by name of a model.

    Returns
    -------
    dict
        ``points``: per data set, model, method and ``mix`` the values of ``NDCG@n``, ``minority_R@n`` and
        ``coverage@n`` for each seed. ``summary``: the best mean minority recall for some losses of NDCG, and the share
        of a method's points that lie on or inside the line through those of our dial on the same model. Training (and,
        for ``test``, validation) positives are no candidates.

    Examples
    --------
    >>> from dpcml.data.synthetic import planted
    >>> world = {"planted": planted(200, 120, seed=1).data}
    >>> small = {"dpcml": {"n_vectors": 2, "dim": 8, "epochs": 5, "n_candidates": 4}}
    >>> found = bench_frontier(world, models=("ease", "dpcml"), steps=3, seeds=1, settings=small)
    >>> len(found["points"]), found["summary"][0]["method"]
    (30, 'minority')
    """
    points: dict[tuple[str, str, str, float], dict[str, list[float]]] = {}
    for name, data in sets.items():
        for seed in range(seeds):
            for key, figures in _run(data, models, steps, n, seed, part, settings or {}):
                for metric, value in figures.items():
                    points.setdefault((name, *key), {}).setdefault(metric, []).append(value)
    rows = [
        {"data": data, "model": model, "method": method, "mix": mix, **values}
        for (data, model, method, mix), values in points.items()
    ]
    return {
        "benchmark": "frontier",
        "version": version(),
        "protocol": "strict",
        "part": part,
        "split": [0.6, 0.2, 0.2],
        "seeds": list(range(seeds)),
        "n": n,
        "settings": {name: dict(values) for name, values in (settings or {}).items()},
        "points": rows,
        "summary": summary(rows, n),
    }


_Point = tuple[tuple[str, str, float], dict[str, float]]


def _run(
    data: Interactions,
    models: Sequence[str],
    steps: int,
    n: int,
    seed: int,
    part: str,
    settings: Mapping[str, Mapping[str, Any]],
) -> Iterator[_Point]:
    train, valid, test = data.split((0.6, 0.2, 0.2), seed)
    held = test if part == "test" else valid
    users = np.flatnonzero(held.per_user)
    seen = train.csr + valid.csr if part == "test" else train.csr
    ready, known = dict[str, Recommender](), list[Recommender]()
    for name in sorted(models, key=lambda name: name != "blend"):  # its members first
        wanted = with_seed(create(name, **settings.get(name, {})), seed)
        ready[name] = fitted(wanted, train, valid if part == "test" else None, known)
        known += getattr(ready[name], "members_", [])
    vectors = [model for model in ready.values() if isinstance(model, MultiInterest)]
    aspects: dict[str, Aspects] = {"categories": CategoryAspects(groups.attributes_of(train), train.csr[users])}
    if vectors:
        aspects["interests"] = vectors[-1].aspects(UserBatch.known(train, users), "interests")
    for name, model in ready.items():
        batch = UserBatch(sparse.csr_array(seen[users]), users)
        lists = model.top_items(batch, pool_size(n))
        for method, (reranker, by) in METHODS.items():
            if by not in aspects:
                continue
            for mix in np.linspace(0, 1, steps):
                items, _ = mixed_lists(aspects[by], lists.items, lists.scores, n, float(mix), reranker)
                yield (name, method, round(float(mix), 6)), _figures(items, users, train, held, n)


def _figures(lists: IntArray, users: IntArray, train: Interactions, held: Interactions, n: int) -> dict[str, float]:
    ranks = ranks_of_lists(lists, users, held)
    minority = ranks.only(groups.outside_majority(ranks, train))
    return {
        f"NDCG@{n}": float(np.nanmean(metrics.ndcg(ranks, n))),
        f"minority_R@{n}": float(np.nanmean(metrics.recall(minority, n))),
        f"coverage@{n}": diversity.coverage(lists, train.n_items),
    }


def summary(points: Sequence[Mapping[str, Any]], n: int = 10) -> list[dict[str, Any]]:
    """Return, for each data set, model and method, what the means over seeds come to.

    Examples
    --------
    >>> rows = [{"data": "d", "model": "m", "method": "minority", "mix": mix, "NDCG@10": [a], "minority_R@10": [b]}
    ...         for mix, a, b in ((0, 0.2, 0.1), (0.5, 0.199, 0.15), (1, 0.1, 0.3))]
    >>> found = summary(rows)[0]
    >>> found["minority_R@10"], found["at_loss"]["0.01"], found["at_loss"]["0.1"], found["inside_ours"]
    (0.1, 0.15, 0.15, 1.0)
    """
    curves: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in points:
        key = row["data"], row["model"], row["method"]
        curves.setdefault(key, []).append((np.mean(row[f"NDCG@{n}"]), np.mean(row[f"minority_R@{n}"])))
    found = []
    for (data, model, method), curve in curves.items():
        accuracy, recall = np.array(curve).T
        ours = curves.get((data, model, OURS), curve)
        found.append(
            {
                "data": data,
                "model": model,
                "method": method,
                f"NDCG@{n}": float(accuracy[0]),
                f"minority_R@{n}": float(recall[0]),
                "at_loss": {f"{loss:g}": float(recall[accuracy >= (1 - loss) * accuracy[0]].max()) for loss in LOSSES},
                "inside_ours": float(inside(np.array(curve), np.array(ours)).mean()),
            }
        )
    return found


def inside(points: FloatArray, line: FloatArray, tolerance: float = 1e-9) -> BoolArray:
    """Return which points (x, y) are on or below a line of points, where both coordinates are better if larger.

    The line goes on level from its largest y to smaller x.

    Examples
    --------
    >>> inside(np.array([[0.5, 0.5], [0.5, 0.7], [0.1, 1.0], [1.1, 0.0]]), np.array([[1, 0], [0.4, 0.8]])).tolist()
    [True, False, False, False]
    """
    order = np.argsort(line[:, 0], kind="stable")
    x, y = line[order].T
    y = np.maximum.accumulate(y[::-1])[::-1]  # what is reached at this accuracy or a better one
    reached = np.interp(points[:, 0], x, y, right=-np.inf)
    return np.asarray(points[:, 1] <= reached + tolerance)


def draw(found: Mapping[str, Any], file: Path, model: str = "dpcml") -> None:
    """Draw minority recall and coverage against NDCG, one row of panels per data set, with matplotlib.

    Parameters
    ----------
    found
        What `bench_frontier` returned.
    file
        Where the figure goes; the suffix says which format.
    model
        The model whose methods are drawn with thick lines; those of others are thin.
    """
    n, points = found["n"], found["points"]
    names = list(dict.fromkeys(row["data"] for row in points))
    figure = require("matplotlib.figure", "plots").Figure(figsize=(9, 3.2 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 2, squeeze=False)
    for row, name in zip(axes, names, strict=True):
        for axis, metric in zip(row, (f"minority_R@{n}", f"coverage@{n}"), strict=True):
            for one in dict.fromkeys(point["model"] for point in points):
                for k, method in enumerate(METHODS):
                    some = [p for p in points if (p["data"], p["model"], p["method"]) == (name, one, method)]
                    curve = [[np.mean(p[f"NDCG@{n}"]), np.mean(p[metric])] for p in some]
                    label = method if one == model else None
                    width = 2.0 if one == model else 0.7
                    axis.plot(*np.array(curve).reshape(-1, 2).T, color=f"C{k}", linewidth=width, label=label)
            axis.set(title=name, xlabel=f"NDCG@{n}", ylabel=metric)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(file)
