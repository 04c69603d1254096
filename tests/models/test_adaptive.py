"""Adaptive numbers of vectors: vectors that a user does not use repeat the first one and change nothing."""

import copy

import numpy as np
import pytest

from dpcml import DPCML, Interactions, load, save
from dpcml.data.items import ItemTable
from dpcml.retrieval.aspects import VectorAspects, mixed_lists
from dpcml.retrieval.exact import Catalogue, best_by_distance, nearest_scores
from dpcml.retrieval.profile import UserProfile
from dpcml.retrieval.request import UserBatch
from dpcml.retrieval.rerank import pool_size

SETTINGS = {"n_vectors": "adaptive", "dim": 8, "epochs": 5, "n_candidates": 6, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def train():
    """150 users with from 1 to about 60 of 120 items in six kinds, of which a user likes three; the first has none."""
    rng = np.random.default_rng(0)
    kinds = rng.permuted(np.tile(np.arange(6), (150, 1)), axis=1)[:, :3]
    liked = (np.arange(120) % 6 == kinds[:, :, None]).any(axis=1) & (
        rng.random((150, 120)) < np.arange(150)[:, None] / 150
    )
    liked[np.arange(1, 150), kinds[1:, 0]] = True
    return Interactions.from_csr(liked)


@pytest.fixture(scope="module")
def fitted(train):
    return DPCML(**SETTINGS).fit(train)


@pytest.fixture
def model(fitted):
    return copy.copy(fitted)


def used(vectors):
    """Return how many vectors of each user come before those that repeat the first; check that these are the last."""
    repeats = (vectors == vectors[:, :1]).all(axis=2)
    repeats[:, 0] = False
    assert (np.diff(repeats.astype(int), axis=1) >= 0).all()
    return (~repeats).sum(axis=1)


def test_users_have_as_many_vectors_as_the_rule_says(fitted, train):
    counts = fitted.vector_counts(train.per_user)
    assert len(set(counts.tolist())) > 2, "the world must have users with few and with many vectors"
    assert fitted.user_vectors_.shape == (150, counts.max(), 8)
    assert used(fitted.user_vectors_).tolist() == counts.tolist()


def test_saved_and_loaded_it_has_the_same_vectors(fitted, tmp_path):
    again = load(save(fitted, tmp_path / "model"))
    assert again.n_vectors == "adaptive"
    assert again.user_vectors_.tobytes() == fitted.user_vectors_.tobytes()
    assert again.recommend(np.arange(150), n=9)[0].tolist() == fitted.recommend(np.arange(150), n=9)[0].tolist()
    assert again.fold_in([1, 2, 3]).tobytes() == fitted.fold_in([1, 2, 3]).tobytes()


def nothing(n_users):
    return np.zeros(n_users + 1, np.int64), np.zeros(0, np.int64)


@pytest.mark.parametrize("n", [10, 120])
def test_scores_and_lists_are_those_of_the_used_vectors_alone(fitted, train, n):
    counts, items = used(fitted.user_vectors_), fitted.item_vectors_
    catalogue = Catalogue.of(items)
    scores = fitted.score(np.arange(150))
    for user in range(0, 150, 7):
        own = fitted.user_vectors_[user : user + 1, : counts[user]]
        np.testing.assert_allclose(scores[user], nearest_scores(own, items)[0], atol=1e-5)
        if not len(train.of(user)):  # they get popular items
            continue
        ids, values = fitted.recommend(user, n=n, exclude_seen=False)
        best, expected = best_by_distance(own, catalogue, n, nothing(1))
        np.testing.assert_allclose(values, expected[0], atol=1e-5)
        assert ids.tolist() == best[0].tolist()
        mixed = fitted.recommend(user, n=n, exclude_seen=False, mix=0.6, mix_by="interests")[0]
        pool = best_by_distance(own, catalogue, min(pool_size(n), len(items)), nothing(1))
        shares = UserProfile(own[0], items, train.of(user)).shares[None]
        assert mixed.tolist() == mixed_lists(VectorAspects(own, shares, items), *pool, n, 0.6)[0][0].tolist()


def test_no_item_belongs_to_unused_vectors(fitted, train):
    aspects = fitted.aspects(UserBatch.known(train, np.arange(150)), "interests")
    affinity = aspects.affinity(slice(0, 150), np.tile(np.arange(120), (150, 1)))
    for user, count in enumerate(used(fitted.user_vectors_)):
        if len(train.of(user)):
            assert (affinity[user, :, count:] == 0).all()


def test_interests_are_those_of_the_used_vectors(fitted, train):
    counts = used(fitted.user_vectors_)
    nearest = fitted.nearest_interest(np.repeat(np.arange(150), 120), np.tile(np.arange(120), 150)).reshape(150, 120)
    for user in range(0, 150, 7):
        found = fitted.interests(user)
        assert sorted(one.number for one in found) == list(range(counts[user]))
        assert sum(one.share for one in found) == pytest.approx(1.0 if len(train.of(user)) else 0.0)
        reasons = fitted.recommend(user, n=20, explain=True, mix=0.5)[2]
        assert {reason.interest for reason in reasons} <= (set(range(counts[user])) if len(train.of(user)) else {None})
        assert nearest[user].max() < counts[user]


def test_new_users_have_vectors_by_the_same_rule(fitted):
    most = fitted.user_vectors_.shape[1]
    for size in (1, 4, 30, 100):
        vectors = fitted.fold_in(np.arange(size))
        count = min(most, int(fitted.vector_counts(np.array([size]))[0]))
        assert vectors.shape == (most, 8)
        assert used(vectors[None])[0] == count
        assert len(fitted.interests_new(np.arange(size))) == count
        own = nearest_scores(vectors[None, :count], fitted.item_vectors_)[0]
        np.testing.assert_allclose(fitted.score_new(np.arange(size)), own, atol=1e-5)


@pytest.mark.parametrize("epochs", [0, 3])
def test_partial_fit_keeps_who_has_how_many(model, fitted, train, epochs):
    """User 100 likes something new, 150 and 151 are new with few and many items, item 120 is new."""
    users = np.array([100, 150, *[151] * 50, 100, 151])
    items = np.array([np.setdiff1d(np.arange(120), train.of(100))[0], 3, *range(50), 120, 120])
    ids, places = np.unique(users, return_inverse=True)
    model.partial_fit(Interactions.from_codes(places, items, ids, ItemTable(np.arange(121))), epochs=epochs)
    before, found = used(fitted.user_vectors_), used(model.user_vectors_)
    assert found[:150].tolist() == before.tolist()
    assert found[150:].tolist() == np.minimum(fitted.vector_counts(np.array([1, 51])), before.max()).tolist()
    others = np.delete(np.arange(150), 100)
    assert (model.user_vectors_[others] == fitted.user_vectors_[others]).all()
    assert (model.user_vectors_[100] != fitted.user_vectors_[100]).any() == (epochs > 0)
    assert model.item_vectors_[:120].tobytes() == fitted.item_vectors_.tobytes()
    assert np.isfinite(model.score(np.arange(152))).all()
