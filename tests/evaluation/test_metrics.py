"""Metrics against brute force over every order of ties, and against an independent library."""

import itertools

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, Qrel, R, ScoredDoc, Success, nDCG

from dpcml import Interactions
from dpcml.evaluation import metrics
from dpcml.evaluation.ranks import Ranks, rank_held_out


class Fixed:
    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=np.float32)

    def score(self, users):
        return self.scores[users]


def ranks_of(scores, held) -> Ranks:
    held = np.atleast_2d(held).astype(bool)
    nothing = Interactions.from_csr(np.zeros(held.shape))
    return rank_held_out(Fixed(np.atleast_2d(scores)), nothing, Interactions.from_csr(held))


def in_order(hits: np.ndarray, n: int) -> dict[str, float]:
    """All metrics of one ranking without ties, from their definitions."""
    places = np.flatnonzero(hits) + 1
    gain = (1 / np.log2(places[places <= n] + 1)).sum()
    ideal = (1 / np.log2(np.arange(2, min(n, hits.sum()) + 2))).sum()
    pairs = [(a, b) for a in places for b in np.flatnonzero(~hits) + 1]
    return {
        "precision": hits[:n].sum() / n,
        "recall": hits[:n].sum() / hits.sum(),
        "hit_rate": float(hits[:n].any()),
        "ndcg": gain / ideal,
        "average_precision": np.mean([(places <= place).sum() / place for place in places]),
        "reciprocal_rank": 1 / places[0],
        "reciprocal_rank_sum": (1 / places).sum(),
        "auc": np.mean([a < b for a, b in pairs]) if pairs else np.nan,
    }


def over_all_orders(scores: np.ndarray, held: np.ndarray, n: int) -> dict[str, float]:
    """The mean of each metric over all orders of the items that respect the scores."""
    levels = [np.flatnonzero(scores == value).tolist() for value in sorted(set(scores.tolist()), reverse=True)]
    found = [
        in_order(held[[item for level in order for item in level]], n)
        for order in itertools.product(*(itertools.permutations(level) for level in levels))
    ]
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


AT_CUTOFF = ("precision", "recall", "hit_rate", "ndcg")


@pytest.mark.parametrize("seed", range(60))
def test_ties_earn_the_mean_over_all_orders(seed):
    rng = np.random.default_rng(seed)
    n_items = int(rng.integers(1, 8))
    scores = rng.integers(0, rng.integers(1, 4), n_items).astype(np.float32)
    held = rng.random(n_items) < 0.5
    held[rng.integers(n_items)] = True
    n = int(rng.integers(1, n_items + 3))
    ranks = ranks_of(scores, held)
    for name, expected in over_all_orders(scores, held, n).items():
        function = getattr(metrics, name)
        value = function(ranks, n) if name in AT_CUTOFF else function(ranks)
        assert value[0] == pytest.approx(expected, rel=1e-9, nan_ok=True), name


def test_metrics_agree_with_an_independent_library():
    rng = np.random.default_rng(1)
    scores = rng.permuted(np.tile(np.arange(50), (20, 1)), axis=1)
    held = rng.random((20, 50)) < 0.15
    held[:, 0] = True
    qrels = [Qrel(str(u), str(i), 1) for u, i in zip(*np.nonzero(held), strict=True)]
    run = [ScoredDoc(str(u), str(i), float(scores[u, i])) for u in range(20) for i in range(50)]
    ours = ranks_of(scores, held)
    cases = [(AP, metrics.average_precision(ours)), (RR, metrics.reciprocal_rank(ours))]
    for n in (1, 3, 10, 50):
        cases += [
            (P @ n, metrics.precision(ours, n)),
            (R @ n, metrics.recall(ours, n)),
            (nDCG @ n, metrics.ndcg(ours, n)),
            (Success @ n, metrics.hit_rate(ours, n)),
        ]
    for measure, values in cases:
        theirs = {int(one.query_id): one.value for one in ir_measures.iter_calc([measure], qrels, run)}
        np.testing.assert_allclose(values, [theirs[u] for u in range(20)], atol=1e-6, err_msg=str(measure))


@pytest.mark.parametrize(("n_items", "n_held"), [(40, 1), (40, 7), (300, 12)])
def test_constant_scores_earn_chance(n_items, n_held):
    rng = np.random.default_rng(0)
    held = np.zeros((1, n_items), dtype=bool)
    held[0, :n_held] = True
    ranks = ranks_of(np.zeros((1, n_items)), held)
    chance = [in_order(rng.permutation(held[0]), 5) for _ in range(20_000)]
    for name in chance[0]:
        function = getattr(metrics, name)
        value = (function(ranks, 5) if name in AT_CUTOFF else function(ranks))[0]
        drawn = np.array([one[name] for one in chance])
        assert abs(value - drawn.mean()) < 5 * drawn.std() / np.sqrt(len(drawn)) + 1e-9, name
    assert metrics.precision(ranks, 5)[0] == pytest.approx(n_held / n_items)
    assert metrics.auc(ranks)[0] == pytest.approx(0.5)


def test_full_ideal_compares_with_n_items():
    one_hit_on_top = Ranks.from_places([[0]])
    assert metrics.ndcg(one_hit_on_top, 3)[0] == pytest.approx(1)
    assert metrics.ndcg(one_hit_on_top, 3, full_ideal=True)[0] == pytest.approx(1 / (1 + 1 / np.log2(3) + 0.5))


def test_users_without_relevant_items_are_undefined():
    few = Ranks.from_places([[0], [1]]).only(np.array([True, False]))
    for name in ("recall", "hit_rate", "ndcg"):
        assert np.isnan(getattr(metrics, name)(few, 3)).tolist() == [False, True], name
    for name in ("average_precision", "reciprocal_rank"):
        assert np.isnan(getattr(metrics, name)(few)).tolist() == [False, True], name


def test_auc_is_undefined_when_everything_is_held_out():
    assert np.isnan(metrics.auc(ranks_of([[1, 2]], [[1, 1]]))).all()
