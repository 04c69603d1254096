import numpy as np
import pytest

from dpcml import CML, DPCML, EASE, Interactions, ItemKNN, Popularity, RP3Beta, evaluate
from dpcml.data.synthetic import planted
from dpcml.utils.errors import DataError, ParameterError, UnknownIdError


@pytest.fixture(scope="module")
def world():
    return planted(500, 300, seed=3)


@pytest.fixture(scope="module")
def parts(world):
    return world.data.split((0.6, 0.2, 0.2), 0)


@pytest.mark.parametrize("settings", [{}, {"interests": (1, 4), "focus": 0.3, "noise": 0.2}, {"noise": 0.0}])
def test_positives_are_as_frequent_as_the_oracle_says(settings):
    # Lists are short and items many, so that an item is hardly ever drawn twice for a user.
    world = planted(20_000, 2_500, positives=5, popularity_exponent=0.2, seed=4, **settings)
    expected = np.zeros(2_500)
    for first in range(0, 20_000, 4_000):
        rows = np.arange(first, first + 4_000)
        chances = world.oracle().score(rows)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        expected += world.data.per_user[rows] @ chances
    seen = world.data.per_item
    assert ((seen - expected) ** 2 / expected).sum() / 2_500 == pytest.approx(1, abs=0.1)  # chi square per degree


def test_what_a_user_has_is_drawn_anew(world, parts):
    train, valid, test = parts
    users = np.arange(500)
    known = world.oracle(train, valid).score(users)
    seen = (train.csr + valid.csr).toarray() > 0
    assert not known[seen].any()
    np.testing.assert_allclose(known.sum(axis=1), 1)
    unaware = np.where(seen, 0, world.oracle().score(users))
    unaware /= unaware.sum(axis=1, keepdims=True)
    gain = np.log(known[test.rows, test.indices] / unaware[test.rows, test.indices])
    assert gain.mean() > 0.01  # the held-out positives are likelier


def test_no_model_is_better(world, parts):
    train, valid, test = parts
    names = ["NDCG@10", "minority_R@10"]
    best = evaluate(world.oracle(train, valid), train, test, valid=valid, metrics=names)
    assert best.model == "oracle"
    for model in (Popularity(), ItemKNN(), EASE(), RP3Beta(), CML(dim=32), DPCML(dim=32, n_vectors=3)):
        found = evaluate(model.fit(train, valid=valid), train, test, valid=valid, metrics=names)
        assert max(found.share_of(best).values()) < 0.95, model


def test_its_interests_are_the_truth(world, parts):
    train, _, test = parts
    oracle, truth = world.oracle(), world.truth
    found = oracle.nearest_interest(train.rows, train.indices)
    own = truth.user_interests[train.rows, found] == truth.item_category[train.indices]
    assert 0.9 < own.mean() < 1  # noise belongs to no interest
    assert not found[~own].any()
    report = evaluate(oracle, train, test, metrics="categories")
    assert report.metrics["interest_agreement"] > 0.85
    with pytest.raises(ParameterError, match="2 users and 1 items"):
        oracle.nearest_interest([1, 2], [1])
    with pytest.raises(UnknownIdError):
        oracle.nearest_interest([1], [300])


def test_parts_of_other_data_are_refused(world):
    with pytest.raises(DataError, match="no part of a split of this world"):
        world.oracle(Interactions.from_csr(np.eye(3)))
