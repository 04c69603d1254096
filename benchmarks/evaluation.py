"""Evaluation against a plain version with NumPy: sort each user's scores, then look up the held-out items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.timing import Jobs, best_seconds
from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.protocol import PROTOCOLS, MetricInput, select
from dpcml.evaluation.ranks import rank_held_out
from dpcml.retrieval.exact import nearest_scores
from dpcml.utils.arrays import FloatArray, IntArray

CUTOFFS = (3, 5, 10, 20)


@dataclass(frozen=True)
class VectorModel:
    """Random vectors of the size that the paper uses: scoring costs the same as with trained ones."""

    user_vectors_: FloatArray  # (users, C, d)
    item_vectors_: FloatArray  # (items, d)

    def score(self, users: IntArray) -> FloatArray:
        """Return minus the squared distance to the nearest vector; shape (users, items)."""
        return nearest_scores(self.user_vectors_[users], self.item_vectors_)


@dataclass(frozen=True)
class FixedScores:
    """Scores computed beforehand, so that only ranking and metrics are timed."""

    scores: FloatArray

    def score(self, users: IntArray) -> FloatArray:
        """Return rows of the fixed scores."""
        return self.scores[users]


def bench_evaluation(
    data: Interactions, *, n_vectors: int = 5, dim: int = 100, repeats: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Time the evaluation of a vector model on a 60/20/20 split.

    Returns
    -------
    dict
        ``seconds``: all metrics with scoring; ``ranking_seconds``: ranks and accuracy of given scores;
        ``numpy_seconds``: the same accuracy from an argsort per user; ``ratio_to_numpy``: the ratio of these two.

    Examples
    --------
    >>> found = bench_evaluation(Interactions.from_csr(np.ones((20, 30))), dim=4, repeats=1)
    >>> found["users"], found["ratio_to_numpy"] > 0
    (20, True)
    """
    rng = np.random.default_rng(seed)
    train, _, test = data.split((0.6, 0.2, 0.2), rng)
    model = VectorModel(
        rng.standard_normal((data.n_users, n_vectors, dim), dtype=np.float32) / np.float32(np.sqrt(dim)),
        rng.standard_normal((data.n_items, dim), dtype=np.float32) / np.float32(np.sqrt(dim)),
    )
    fixed = FixedScores(model.score(np.arange(data.n_users)))
    rules = PROTOCOLS["text"]

    def ours() -> dict[str, float]:
        ranks = rank_held_out(fixed, train, test, top=0)
        per_user, _ = select("accuracy", CUTOFFS).compute(MetricInput(ranks, rules))
        return {name: float(np.nanmean(values)) for name, values in per_user.items()}

    jobs: Jobs = {
        "all": lambda: evaluate(model, train, test, protocol="text", k=CUTOFFS),
        "ours": ours,
        "numpy": lambda: plain_evaluation(fixed.scores, train, test, CUTOFFS),
    }
    jobs["all"]()  # compiles the kernels, or loads them
    seconds = best_seconds(jobs, repeats)
    expected = plain_evaluation(fixed.scores, train, test, CUTOFFS)
    return {
        "benchmark": "evaluation",
        "users": data.n_users,
        "items": data.n_items,
        "vectors": n_vectors,
        "dim": dim,
        "seconds": seconds["all"],
        "ranking_seconds": seconds["ours"],
        "numpy_seconds": seconds["numpy"],
        "ratio_to_numpy": seconds["numpy"] / seconds["ours"],
        "largest_difference": max(abs(value - expected[name]) for name, value in ours().items()),
    }


def plain_evaluation(
    scores: FloatArray, train: Interactions, test: Interactions, cutoffs: tuple[int, ...]
) -> dict[str, float]:
    """Return accuracy from a mask, an argsort and a lookup per user; ties are in the order of the sort.

    Examples
    --------
    >>> train, test = (Interactions.from_csr(np.array(rows)) for rows in ([[1, 0, 0]], [[0, 0, 1]]))
    >>> plain_evaluation(np.array([[3.0, 1.0, 2.0]]), train, test, (1,))["P@1"]
    1.0
    """
    found: dict[str, list[float]] = {}
    for user in np.flatnonzero(test.per_user).tolist():
        row = scores[user].copy()
        row[train.of(user)] = -np.inf
        held = test.of(user)
        hits = np.isin(np.argsort(-row, kind="stable"), held)
        places = np.flatnonzero(hits) + 1
        for n in cutoffs:
            found.setdefault(f"P@{n}", []).append(hits[:n].sum() / n)
            found.setdefault(f"R@{n}", []).append(hits[:n].sum() / len(held))
            ideal = (1 / np.log2(np.arange(2, min(n, len(held)) + 2))).sum()
            found.setdefault(f"NDCG@{n}", []).append((1 / np.log2(places[places <= n] + 1)).sum() / ideal)
            found.setdefault(f"HR@{n}", []).append(float(hits[:n].any()))
        found.setdefault("MAP", []).append((np.arange(1, len(held) + 1) / places).mean())
        found.setdefault("MRR", []).append((1 / places).sum())
        others = len(row) - len(train.of(user)) - len(held)
        if others:
            wrong = (places - np.arange(1, len(held) + 1)).sum()
            found.setdefault("AUC", []).append(1 - wrong / (len(held) * others))
    return {name: float(np.mean(values)) for name, values in found.items()}
