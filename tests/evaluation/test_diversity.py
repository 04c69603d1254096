import itertools

import numpy as np
import pytest

from dpcml import Interactions
from dpcml.data.items import Attributes
from dpcml.evaluation import diversity

RNG = np.random.default_rng(0)
LISTS = np.array([[0, 4, 2, 7], [5, 1, 0, -1], [3, -1, -1, -1], [7, 4, 2, 0]])
LIKES = Interactions.from_csr(RNG.random((30, 8)) < 0.4)
NAMES = ["a", "b", "c"]
SETS = [set(RNG.choice(NAMES, size=RNG.integers(0, 4), replace=False).tolist()) for _ in range(8)]


def mean_over_pairs(dissimilarity, items):
    pairs = list(itertools.combinations([i for i in items if i >= 0], 2))
    return np.mean([dissimilarity(a, b) for a, b in pairs]) if pairs else np.nan


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_attribute_dissimilarity_matches_a_loop(n):
    def jaccard(a, b):
        union = SETS[a] | SETS[b]
        return 1 - (len(SETS[a] & SETS[b]) / len(union) if union else 0)

    found = diversity.attribute_dissimilarity(LISTS, Attributes.from_sets(SETS))[:, n - 1]
    np.testing.assert_allclose(found, [mean_over_pairs(jaccard, row[:n]) for row in LISTS])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_cooccurrence_dissimilarity_matches_a_loop(n):
    likes = LIKES.csr.toarray()

    def cosine(a, b):
        return 1 - likes[:, a] @ likes[:, b] / np.sqrt(likes[:, a].sum() * likes[:, b].sum())

    found = diversity.cooccurrence_dissimilarity(LISTS, LIKES)[:, n - 1]
    np.testing.assert_allclose(found, [mean_over_pairs(cosine, row[:n]) for row in LISTS])


def test_max_div_sums_squared_distances_over_ordered_pairs(monkeypatch):
    monkeypatch.setattr(diversity, "USERS_AT_ONCE", 3)
    vectors = RNG.standard_normal((8, 5)).astype(np.float32)
    expected = [
        sum(((vectors[a] - vectors[b]) ** 2).sum() for a in row for b in row if a >= 0 and b >= 0) for row in LISTS
    ]
    np.testing.assert_allclose(diversity.max_div(LISTS, vectors), expected, rtol=1e-5, atol=1e-5)


def test_coverage_gini_and_novelty():
    assert diversity.coverage(LISTS, 8) == 7 / 8
    exposure = np.bincount(LISTS[LISTS >= 0], minlength=8)
    differences = np.abs(exposure[:, None] - exposure).mean()
    assert diversity.gini(LISTS, 8) == pytest.approx(differences / (2 * exposure.mean()))
    share = LIKES.per_item / LIKES.n_users
    np.testing.assert_allclose(
        diversity.novelty(LISTS, LIKES), [np.mean([-np.log2(share[i]) for i in row if i >= 0]) for row in LISTS]
    )


def test_empty_lists():
    empty = np.full((2, 3), -1)
    assert diversity.coverage(empty, 8) == 0
    assert np.isnan(diversity.gini(empty, 8))
    assert np.isnan(diversity.novelty(empty, LIKES)).all()
    assert np.isnan(diversity.cooccurrence_dissimilarity(empty, LIKES)).all()
    assert diversity.max_div(empty, np.ones((8, 2))).tolist() == [0, 0]
