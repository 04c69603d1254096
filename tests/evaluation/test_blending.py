"""Weights of a blend: the search, and its cached candidates against full rankings."""

import numpy as np
import pytest
from scipy import sparse

from dpcml.evaluation import blending
from dpcml.evaluation.blending import TOLERANCE, _favour, blend_scores, find_weights
from dpcml.evaluation.evaluate import validation
from dpcml.utils.errors import DataError


class Fixed:
    """A model with given scores."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, users):
        return self.scores[users]


class Mixed:
    """The blend of some models, scored in full."""

    def __init__(self, models, weights, train):
        self.models, self.weights, self.train = models, weights, train

    def score(self, users):
        parts = [model.score(users) for model in self.models]
        return blend_scores(parts, self.weights, self.train.csr[users])


@pytest.fixture
def split(blocks):
    return blocks.split((0.5, 0.3, 0.2), np.random.default_rng(1))


@pytest.fixture
def models(split):
    rng = np.random.default_rng(0)
    truth = split.valid.csr.toarray()
    return [Fixed(scale * (truth * lift + rng.standard_normal(truth.shape))) for scale, lift in ((1, 1.0), (90, 0.7))]


def test_standardised_scores_are_those_of_numpy():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((9, 30)).astype(np.float32) * 5 + 3
    scores[4] = 7.25  # a user for whom all items are alike
    likes = sparse.csr_array(rng.random((9, 30)) < 0.3)
    found = blend_scores([scores], np.array([2.0]), likes)
    for user in range(9):
        own = scores[user, likes.toarray()[user] == 0].astype(float)
        expected = 2 * (scores[user] - own.mean()) / own.std() if own.std() else np.zeros(30)
        np.testing.assert_allclose(found[user], expected, atol=1e-5)


def test_a_user_who_likes_everything_is_no_error():
    assert blend_scores([np.ones((1, 3))], np.ones(1), sparse.csr_array(np.ones((1, 3)))).tolist() == [[0, 0, 0]]


def test_the_weights_found_are_as_good_as_any_on_a_grid(models, split, monkeypatch):
    monkeypatch.setattr(blending, "BEST", 10)  # the cached items are few, and still enough
    train, valid, _ = split
    found = find_weights(models, train, valid)
    value = validation(Mixed(models, found, train), train, valid, "NDCG@5")
    grid = [np.array([w, 1 - w]) for w in np.linspace(0, 1, 21)]
    others = [validation(Mixed(models, weights, train), train, valid, "NDCG@5") for weights in grid]
    assert value >= max(others) - 1e-3
    assert value > max(others[0], others[-1]), "together they are better than either"


def test_the_same_weights_on_any_number_of_threads(models, split, monkeypatch):
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("DPCML_THREADS", threads)
        found.append(find_weights(models, split.train, split.valid).tolist())
    assert found[0] == found[1]


def test_blocks_and_samples_of_users(models, split, monkeypatch):
    whole = find_weights(models, split.train, split.valid)
    monkeypatch.setattr(blending, "BLOCK_BYTES", 4 * 40 * 7)
    assert (find_weights(models, split.train, split.valid) == whole).all()
    monkeypatch.setattr(blending, "USERS", 10)
    assert find_weights(models, split.train, split.valid).sum() == pytest.approx(1)


def test_scores_of_another_scale_change_nothing(models, split):
    again = [Fixed(models[0].scores * 1000 + 5), models[1]]
    np.testing.assert_allclose(
        find_weights(again, split.train, split.valid), find_weights(models, split.train, split.valid), atol=1e-6
    )


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_the_search_finds_a_smooth_optimum(n):
    target = np.arange(1, n + 1) / (n * (n + 1) / 2)
    found = blending._search(lambda weights: -float(((weights - target) ** 2).sum()), n)
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found, target, atol=0.03)


def test_nothing_to_choose_by(models, split):
    empty = type(split.valid).from_codes(
        np.zeros(0, np.int64), np.zeros(0, np.int64), split.train.user_ids, split.train.items
    )
    with pytest.raises(DataError, match="no user has a validation positive"):
        find_weights(models, split.train, empty)
    with pytest.raises(DataError, match="NaN or infinity"):
        find_weights([Fixed(np.full((60, 40), np.nan))], split.train, split.valid)


def test_a_favoured_model_gets_what_costs_next_to_nothing():
    best = np.array([0.2, 0.5, 0.3])

    def value(weights):  # falls with the distance from the best
        return 1 - 0.1 * np.abs(weights - best).sum()

    found = _favour(value, best, 0)
    np.testing.assert_allclose(found[1] / found[2], 5 / 3)
    assert found[0] > 0.2
    assert value(found) >= 1 - TOLERANCE > value(found + 0.05 * (np.eye(3)[0] - best))
    np.testing.assert_array_equal(_favour(lambda weights: float(np.allclose(weights, best)), best, 0), best)
    np.testing.assert_array_equal(_favour(lambda weights: 1.0, best, 2), [0, 0, 1])
