import numpy as np
import pytest

from dpcml.kernels.gradients import Objective
from dpcml.kernels.mining import HARDEST
from dpcml.retrieval.fold_in import FoldIn, start_vectors
from dpcml.utils.errors import DataError


@pytest.fixture
def items():
    rng = np.random.default_rng(0)
    centres = np.eye(6, 12)
    vectors = np.repeat(centres, 500, axis=0) + 0.1 * rng.standard_normal((3000, 12))
    return (0.9 * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def folding(**changes):
    objective = Objective(*np.float32([1, 0, 0.5, 10]), False, True, False, 12)
    return FoldIn(objective, **{"n_candidates": 10, **changes})


def test_both_interests_are_found(items):
    liked = np.array([3, 10, 77, 200, 1010, 1300])
    vectors = folding().vectors(items, liked, 2)
    score = (vectors @ items.T).max(axis=0)
    assert score[np.r_[0:500, 1000:1500]].mean() > np.delete(score, np.r_[0:500, 1000:1500]).max()


def test_the_same_bits_whatever_the_order_and_other_seeds_differ(items):
    liked = np.array([3, 10, 77, 200, 1010, 1300])
    one = folding().vectors(items, liked, 2)
    assert (folding().vectors(items, liked[::-1], 2) == one).all()
    assert (folding(seed=1).vectors(items, liked, 2) != one).any()


def test_negatives_are_never_liked_and_come_by_weight(items):
    weights = np.ones(3000)
    weights[:30] = 1e4
    pool = folding(weights=weights)._pool(np.arange(5), 3000)
    assert not set(pool.tolist()) & set(range(5))
    assert (pool < 30).mean() > 0.9
    assert len(folding()._pool(np.arange(2999), 3000)) == 1
    assert set(folding(pool=4)._pool(np.arange(3), 6).tolist()) == {3, 4, 5}
    with pytest.raises(DataError, match="all 3000 items are liked: there is no negative left to learn from"):
        folding()._pool(np.arange(3000), 3000)


@pytest.mark.parametrize("n_liked", [1, 2, 300])
def test_few_and_many_liked_items(items, n_liked):
    vectors = folding().vectors(items, np.arange(n_liked), 4)
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_start_is_on_the_sphere_even_for_items_at_the_origin():
    assert np.isfinite(start_vectors(np.zeros((2, 3), np.float32), 2)).all()


def test_attraction_of_the_liked_items_alone_counts(items):
    liked = np.array([3, 10, 77, 200, 1010, 1300])
    plain = folding().vectors(items, liked, 2)
    weights = np.full(3000, 50.0, np.float32)
    weights[liked] = 0
    assert (folding(attraction=weights).vectors(items, liked, 2) == plain).all()
    weights[:], weights[liked] = 0, 20
    drawn = folding(attraction=weights).vectors(items, liked, 2)

    def near(vectors):
        return ((vectors[:, None] - items[liked]) ** 2).sum(axis=2).min(axis=0).mean()

    assert near(drawn) < near(plain)


def test_several_hard_negatives_find_both_interests(items):
    liked = np.array([3, 10, 77, 200, 1010, 1300])
    hardest = {"n_candidates": 30, "n_negatives": 3, "choice": HARDEST}
    vectors = folding(**hardest).vectors(items, liked, 2)
    score = (vectors @ items.T).max(axis=0)
    assert score[np.r_[0:500, 1000:1500]].mean() > np.delete(score, np.r_[0:500, 1000:1500]).max()
    assert (vectors != folding(n_candidates=30).vectors(items, liked, 2)).any()
