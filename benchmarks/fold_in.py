"""Accuracy of fold-in for users who were left out of training, against training with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import latency
from benchmarks.workloads import multi_interest_model
from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.ranks import Scorer
from dpcml.models import Recommender
from dpcml.models.multi_interest import MultiInterest
from dpcml.models.popularity import Popularity
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.errors import ParameterError

METRICS = ("P@3", "NDCG@10", "MAP", "MRR")
ITEMS_TIMED = 50  # history length of timed calls


@dataclass(frozen=True)
class FromHistories:
    """Scores users of the training data from their positives alone, as if they were new."""

    model: Recommender
    train: Interactions

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        return self.model.score_new([self.train.item_ids[self.train.of(user)] for user in users.tolist()])


def bench_fold_in(
    data: Interactions,
    *,
    model: str = "dpcml",
    held_out: float = 0.2,
    seeds: int = 3,
    calls: int = 200,
    **settings: Any,
) -> dict[str, Any]:
    """Leave some users out of training, fold them in from their training positives, and rank their test positives.

    Parameters
    ----------
    data
        All positives; they are split 60/20/20.
    model
        A model or preset with vectors.
    held_out
        Share of the users left out of training of one model; another model is trained with them.
    seeds
        Runs, each with its own split, choice of users and model.
    calls
        Timed calls of ``fold_in``, with histories of 50 items where there are as many.
    **settings
        Parameters of the model.

    Returns
    -------
    dict
        ``trained``, ``folded`` and ``popularity``: metrics of the held-out users under the strict protocol, means over
        the seeds; ``ratio``: folded to trained; ``milliseconds`` per call, median and 99th percentile.

    Examples
    --------
    >>> from dpcml.data.synthetic import planted
    >>> world = planted(200, 120, seed=1).data
    >>> found = bench_fold_in(world, seeds=1, calls=5, n_vectors=2, dim=8, epochs=10, n_candidates=4)
    >>> found["folded"]["MAP"] > found["popularity"]["MAP"]
    True
    """
    if not 0 < held_out < 1:
        raise ParameterError(f"held_out={held_out!r}: must be a share between 0 and 1")
    runs = [_run(data, model, held_out, seed, settings) for seed in range(seeds)]
    folding = runs[-1].pop("model")
    means = {
        kind: {name: float(np.mean([run[kind][name] for run in runs])) for name in METRICS}
        for kind in ("trained", "folded", "popularity")
    }
    return {
        "benchmark": "fold-in",
        "users": data.n_users,
        "items": data.n_items,
        "model": model,
        "parameters": folding.get_params(),
        "held_out": held_out,
        "seeds": seeds,
        "protocol": "strict",
        **means,
        "ratio": {name: means["folded"][name] / means["trained"][name] for name in METRICS},
        "milliseconds": _milliseconds(folding, calls),
    }


def _run(data: Interactions, name: str, held_out: float, seed: int, settings: dict[str, Any]) -> dict[str, Any]:
    train, valid, test = data.split((0.6, 0.2, 0.2), seed)
    rng = np.random.default_rng((seed, 1))
    active = np.flatnonzero(train.per_user)
    left_out = np.sort(rng.choice(active, size=max(1, round(held_out * len(active))), replace=False))
    kept = np.ones(data.n_users, dtype=bool)
    kept[left_out] = False
    parts = train.select(kept[train.rows]), valid.select(kept[valid.rows])
    with_them = multi_interest_model(name, random_state=seed, **settings).fit(train, valid)
    without = multi_interest_model(name, random_state=seed, **settings).fit(*parts)
    popular = Popularity().fit(parts[0])
    scorers: dict[str, Scorer] = {"trained": with_them, "folded": FromHistories(without, train), "popularity": popular}
    found: dict[str, Any] = {"model": without}
    for kind, scorer in scorers.items():
        report = evaluate(scorer, train, test, valid=valid, users=left_out, metrics=METRICS)
        found[kind] = report.metrics
    return found


def _milliseconds(model: MultiInterest, calls: int) -> dict[str, float]:
    """Time ``fold_in`` from external item ids to vectors."""
    ids = model.check_fitted().item_ids
    rng = np.random.default_rng(0)
    size = min(ITEMS_TIMED, len(ids) - 1)
    histories = [rng.choice(ids, size=size, replace=False) for _ in range(calls)]
    model.fold_in(histories[0])  # compiles the kernel, or loads it
    median, p99 = latency(partial(model.fold_in, history) for history in histories)
    return {"items": size, "median": median, "p99": p99}
