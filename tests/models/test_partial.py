import copy

import numpy as np
import pytest

from dpcml import DPCML, Interactions, load, save
from dpcml.data.synthetic import planted
from dpcml.evaluation import metrics
from dpcml.evaluation.ranks import rank_held_out
from dpcml.utils.errors import DataError, ParameterError

NEW_USERS, NEW_ITEMS = np.arange(360, 400), np.arange(150, 160)


def part(data, keep, users=None, items=None):
    """Return some positives; rows or columns beyond ``users`` or ``items`` do not exist in it."""
    return Interactions.from_codes(
        data.rows[keep], data.indices[keep], data.user_ids[:users], data.items.select(np.arange(items or data.n_items))
    )


@pytest.fixture(scope="module")
def parts():
    return planted(400, 160, seed=2).data.split((0.7, 0.3), 0)


@pytest.fixture(scope="module")
def trained(parts):
    train = parts.train
    old = (train.rows < 360) & (train.indices < 150)
    model = DPCML(n_vectors=3, dim=8, epochs=25, n_candidates=6, learning_rate=0.01)
    return model.fit(part(train, old, 360, 150)), part(train, ~old)


@pytest.fixture
def model(trained):
    return copy.copy(trained[0])


def recall(model, parts, users, items=None):
    ranks = rank_held_out(model, parts.train, parts.test, users=users, top=0)
    return np.nanmean(metrics.recall(ranks if items is None else ranks.only(np.isin(ranks.items, items)), 10))


def test_new_users_and_new_items_are_served_nearly_as_after_a_full_training(model, trained, parts):
    model.partial_fit(trained[1])
    full = DPCML(**model.get_params()).fit(parts.train)
    assert model.train_.content_hash == parts.train.content_hash
    assert recall(model, parts, NEW_USERS) > 0.8 * recall(full, parts, NEW_USERS)
    assert recall(model, parts, np.arange(360), NEW_ITEMS) > 0.8 * recall(full, parts, np.arange(360), NEW_ITEMS)
    assert recall(model, parts, np.arange(360)) > 0.8 * recall(full, parts, np.arange(360))


def test_what_is_old_stays(model, trained, parts):
    before, old = trained[0], trained[0].train_
    only_users = part(parts.train, (parts.train.rows >= 360) & (parts.train.indices < 150))
    model.partial_fit(only_users)
    assert (model.item_vectors_[:150] == before.item_vectors_).all()
    assert (model.user_vectors_[:360] == before.user_vectors_).all()
    same = model.recommend(np.arange(50), n=10, items=np.arange(150))[0] == before.recommend(np.arange(50), n=10)[0]
    assert same.all()
    assert before.train_ is old, "a copy has grown, not the model itself"


def test_users_without_something_new_keep_their_lists_but_for_new_items(model, trained):
    before, more = trained
    model.partial_fit(more)
    quiet = np.setdiff1d(np.arange(360), more.rows)
    assert len(quiet) > 5
    assert (model.user_vectors_[quiet] == before.user_vectors_[quiet]).all()
    assert (model.item_vectors_[:150] == before.item_vectors_).all()
    found, expected = model.recommend(quiet, n=10)[0], before.recommend(quiet, n=10)[0]
    kept = [len(np.intersect1d(a, b)) / 10 for a, b in zip(found, expected, strict=True)]
    assert np.mean(kept) > 0.7
    for a, b in zip(found, expected, strict=True):
        old = [item for item in a.tolist() if item < 150]
        assert old == [item for item in b.tolist() if item in old], "the old order"


def test_the_same_bits_again_and_after_saving(model, trained, tmp_path):
    other = copy.copy(trained[0])
    one, two = model.partial_fit(trained[1]), other.partial_fit(trained[1])
    assert (one.user_vectors_ == two.user_vectors_).all()
    save(one, tmp_path / "model")
    assert load(tmp_path / "model").recommend(399, n=5)[0].tolist() == one.recommend(399, n=5)[0].tolist()


def test_strangers_who_like_strange_things(model):
    more = Interactions.from_csr(np.ones((1, 2)), user_ids=[900], item_ids=[901, 902])
    model.partial_fit(more, epochs=2)
    assert np.isfinite(model.user_vectors_).all()
    assert np.isfinite(model.item_vectors_).all()
    assert len(model.recommend(900, n=5)[0]) == 5


def test_bad_input(model, parts):
    with pytest.raises(ParameterError, match="epochs=-1"):
        model.partial_fit(parts.train, epochs=-1)
    with pytest.raises(DataError, match="holds nothing new"):
        model.partial_fit(np.zeros((2, 2)))
    everything = Interactions.from_csr(np.ones((1, 150)), user_ids=[900])
    with pytest.raises(DataError, match="user 900 likes all 150 items"):
        model.partial_fit(everything)
