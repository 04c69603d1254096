"""Weights of a blend: the search, and its cached candidates against full rankings."""

import numpy as np
import pytest
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.evaluation import blending
from dpcml.evaluation.blending import TOLERANCE, _hardly_worse, blend_scores, find_weights
from dpcml.evaluation.evaluate import evaluate, validation
from dpcml.evaluation.groups import majority_category
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


def test_weights_that_users_do_not_tell_apart_are_hardly_worse():
    rng = np.random.default_rng(0)
    best = 0.5 + 0.1 * rng.standard_normal(1000)
    noise = 0.1 * rng.standard_normal(1000)
    noise -= noise.mean()
    error = noise.std() / np.sqrt(1000)
    assert _hardly_worse(best - noise - 0.9 * error, best)
    assert not _hardly_worse(best - noise - 1.1 * error, best), "more than a standard error"
    assert not _hardly_worse(best - 1e-6, best), "all users lose"
    assert not _hardly_worse(best - 10 * noise - 1.5 * TOLERANCE * best.mean(), best), "too much, whatever the noise"
    best[:500] = np.nan  # users who do not count
    assert _hardly_worse(best, best)


def test_without_categories_the_favoured_model_gets_what_costs_next_to_nothing(models, split):
    train, valid, _ = split
    nearly = models[0].scores + 0.3 * np.random.default_rng(1).standard_normal((60, 40))
    models = [models[0], Fixed(nearly)]
    plain, first, second = (find_weights(models, train, valid, favoured=place) for place in (None, 0, 1))
    assert first[0] >= plain[0] >= second[0]
    assert first[0] > second[0]
    best = validation(Mixed(models, plain, train), train, valid, "NDCG@5")
    for found in (first, second):
        assert validation(Mixed(models, found, train), train, valid, "NDCG@5") >= (1 - TOLERANCE) * best


@pytest.fixture
def two_kinds(split):
    """Training and validation part with a category for each item, and which items are outside a user's majority."""
    kinds = Attributes.from_sets([{"even" if item % 2 else "odd"} for item in range(40)])
    items = ItemTable(split.train.item_ids, attributes=kinds)
    train, valid = (Interactions.from_csr(part.csr, items=items) for part in (split.train, split.valid))
    return train, valid, kinds.matrix.toarray().T[majority_category(train)] == 0


def served(models, weights, train, valid):
    report = evaluate(Mixed(models, weights, train), train, valid, metrics="minority_R@10")
    return report.metrics["minority_R@10"]


def test_with_categories_minorities_decide_among_weights_that_are_as_good(models, split, two_kinds, monkeypatch):
    train, valid, outside = two_kinds
    minority = [models[0], Fixed(models[0].scores + np.where(outside, 0.6, 0.0))]
    monkeypatch.setattr(blending, "WORTH", 0.0)
    by_weight = find_weights(minority, split.train, split.valid, "NDCG@2", favoured=0)
    by_minorities = find_weights(minority, train, valid, "NDCG@2", favoured=0)
    assert by_weight[0] > by_minorities[0]
    assert served(minority, by_minorities, train, valid) > served(minority, by_weight, train, valid)
    monkeypatch.setattr(blending, "WORTH", 1e6)
    assert find_weights(minority, train, valid, "NDCG@2", favoured=0)[0] > by_minorities[0], "accuracy counts as well"


def test_a_bonus_is_found_beside_the_weights(models, two_kinds):
    train, valid, outside = two_kinds
    models = [Fixed(one.scores - 0.3 * one.scores.std() * outside) for one in models]  # minorities come too late
    scorers = [*models, Fixed(outside.astype(float))]
    plain = find_weights(models, train, valid, favoured=0)
    found = find_weights(models, train, valid, favoured=0, bonus=scorers[2])
    assert found[:2].sum() == pytest.approx(1)
    assert found[2] in np.float32(blending.BONUSES)
    without = np.append(plain, 0)
    assert served(scorers, found, train, valid) > served(scorers, without, train, valid)
    accuracy = [validation(Mixed(scorers, w, train), train, valid, "NDCG@5") for w in (found, without)]
    assert accuracy[0] >= (1 - TOLERANCE) * accuracy[1]


def test_a_bonus_that_does_not_serve_minorities_is_none(models, two_kinds):
    train, valid, outside = two_kinds
    assert find_weights(models, train, valid, favoured=0, bonus=Fixed(-outside.astype(float)))[2] == 0
    assert find_weights(models, train, valid, bonus=Fixed(outside.astype(float)))[2] == 0, "no model is favoured"
