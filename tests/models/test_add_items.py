"""Items that nobody likes yet, added by their titles and attributes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dpcml import (
    CML,
    DPCML,
    EASE,
    GMF,
    Blend,
    DataError,
    Interactions,
    ItemKNN,
    ParameterError,
    Popularity,
    RP3Beta,
    load,
)
from dpcml.data.features import content_features
from dpcml.data.items import Attributes, ItemTable
from dpcml.retrieval.content import ContentRidge, with_new_items

N_USERS, N_ITEMS = 40, 24
SMALL = {"dim": 6, "epochs": 6, "n_candidates": 3}


def table(ids, kinds, titles=True) -> ItemTable:
    """Return films, every other one a war film."""
    words = np.array(
        [f"{'Battle' if kind == 'War' else 'Kiss'} {n}" for n, kind in zip(ids, kinds, strict=True)], object
    )
    return ItemTable(np.asarray(ids), words if titles else None, Attributes.from_sets([{kind} for kind in kinds]))


@pytest.fixture(scope="module")
def data() -> Interactions:
    """Half of the users like war films, the others romances."""
    rng = np.random.default_rng(0)
    kinds = ["War", "Romance"] * (N_ITEMS // 2)
    taste = (np.arange(N_USERS)[:, None] % 2) == (np.arange(N_ITEMS) % 2)
    likes = taste & (rng.random(taste.shape) < 0.6)
    likes[:2, :] |= taste[:2]
    return Interactions.from_csr(sparse.csr_array(likes), items=table(range(N_ITEMS), kinds))


NEW = table([100, 101], ["War", "Romance"])
MODELS = {
    "dpcml": lambda: DPCML(n_vectors=2, popularity=0.1, **SMALL),
    "cml": lambda: CML(**SMALL),
    "ease": lambda: EASE(),
    "dual": lambda: EASE(form="dual"),
    "sparse": lambda: EASE(form="sparse", k=5),
    "itemknn": lambda: ItemKNN(),
    "rp3beta": lambda: RP3Beta(),
    "blend": lambda: Blend([DPCML(n_vectors=2, **SMALL), EASE()], weights=[0.5, 0.5]),
}


@pytest.mark.parametrize("name", MODELS)
def test_new_items_are_recommended_to_those_who_like_their_kind(name, data, tmp_path):
    model = MODELS[name]().fit(data)
    before = model.score(np.arange(N_USERS))
    model.add_items(NEW)
    scores = model.score(np.arange(N_USERS))
    assert scores.shape == (N_USERS, N_ITEMS + 2)
    if name != "blend":  # whose scores are standardised over all items
        np.testing.assert_allclose(scores[:, :N_ITEMS], before, atol=1e-6)
    war, romance = scores[:, N_ITEMS], scores[:, N_ITEMS + 1]
    assert ((war > romance) == (np.arange(N_USERS) % 2 == 0)).mean() > 0.9
    assert model.recommend(0, n=1, items=[100, 101])[0].tolist() == [100]
    assert model.recommend_new(data.item_ids[[1, 3, 5]], n=1, items=[100, 101])[0].tolist() == [101]
    assert 100 in model.recommend(0, n=len(data.item_ids) + 2)[0], "beside known items"
    similar = model.similar_items(100, n=5)[0]
    assert sum(item % 2 == 0 for item in similar if item < N_ITEMS) >= 4
    reasons = model.explain(0, [100])
    assert "others like it" not in reasons[0].text
    again = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.score([0, 1]), model.score([0, 1]))
    assert again.recommend(0, n=1, where={"title": "battle 100"})[0].tolist() == [100]


@pytest.mark.parametrize("name", ["dpcml", "ease", "blend"])
def test_items_can_be_added_twice(name, data, tmp_path):
    once, twice = MODELS[name]().fit(data), MODELS[name]().fit(data)
    once.add_items(NEW)
    twice.add_items(NEW.select(np.array([0]))).add_items(NEW)  # the first one is known by now
    np.testing.assert_allclose(once.score([0, 1]), twice.score([0, 1]), atol=1e-4)
    load(twice.save(tmp_path / "model"))


def test_likes_may_follow(data):
    model = MODELS["blend"]().fit(data).add_items(NEW)
    more = Interactions.from_csr(np.ones((1, 2)), user_ids=[0], item_ids=[100, 2])
    model.partial_fit(more, epochs=1)
    assert model.train_.per_item[N_ITEMS] == 1
    scores = model.score([1])[0]
    assert np.isfinite(scores).all()
    assert scores[N_ITEMS + 1] > scores[N_ITEMS], "the other new item is still placed by its content"


def test_prediction_is_a_ridge_regression(data):
    both = with_new_items(data, NEW)
    ridge = ContentRidge.of(both, l2=2.0)
    features = content_features(both.items, both.per_item > 0).toarray()
    known, new = features[:N_ITEMS], features[N_ITEMS:]
    values = np.random.default_rng(1).normal(size=(N_ITEMS, 3))
    mean = values.mean(axis=0)
    solved = np.linalg.solve(known.T @ known + 2.0 * np.eye(known.shape[1]), known.T @ (values - mean))
    np.testing.assert_allclose(ridge.predict(values), new @ solved + mean, atol=1e-3)
    np.testing.assert_allclose(ridge.weights()[:N_ITEMS].T @ values, new @ solved + mean, atol=1e-3)


def test_items_without_likes_teach_nothing():
    ridge = ContentRidge(sparse.csr_array(np.ones((3, 1))), np.array([True, True, False]), l2=0.1)
    np.testing.assert_allclose(ridge.predict(np.array([[1.0], [1.0], [99.0]])), [[1.0]])
    assert ridge.weights()[2].tolist() == [0.0]


def test_features():
    films = ItemTable(
        np.arange(4),
        np.array(["Alien 1979", "Aliens 1986", "ALIEN 3", "Emma"], dtype=object),
        Attributes.from_sets([{"Horror"}, {"Horror"}, {"Horror"}, set()]),
    )
    found = content_features(films, np.array([True, True, True, False])).toarray()
    assert found.shape == (4, 2), "Horror and alien: other words are of one film"
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0])
    assert found[0].tolist() == found[2].tolist() != found[1].tolist(), "case does not matter"
    assert content_features(ItemTable(np.arange(2)), np.ones(2, bool)).shape == (2, 0)


def test_bad_input(data):
    model = EASE().fit(data)
    with pytest.raises(DataError, match="no new item among 24: the model knows them all"):
        model.add_items(data.items)
    with pytest.raises(DataError, match="1 of 1 new items share no attribute or word with liked ones"):
        model.add_items(ItemTable(np.array([100]), np.array(["Zebra"], dtype=object)))
    with pytest.raises(ParameterError, match="l2"):
        model.add_items(NEW, l2=0)
    odd = table([100, 101], ["War", "Zebra"], titles=False)
    with pytest.warns(UserWarning, match="1 of 2 new items share .* left out"):
        model.add_items(odd)
    assert model.train_.item_ids[N_ITEMS:].tolist() == [100]
    plain = EASE().fit(np.eye(4))
    with pytest.raises(DataError, match="give titles or attributes"):
        plain.add_items(NEW)


def test_models_that_cannot_say_so_and_stay_as_they_are(data):
    pytest.importorskip("torch")
    gmf = GMF(dim=4, epochs=1)
    for model in (gmf, Blend([EASE(), gmf], weights=[0.5, 0.5])):
        model.fit(data)
        before = model.score([0])
        with pytest.raises(ParameterError, match="GMF cannot take in items that nobody likes: use dpcml"):
            model.add_items(NEW)
        np.testing.assert_array_equal(model.score([0]), before)
    assert Popularity().fit(data).add_items(NEW).score([0])[0, -2:].tolist() == [0, 0]


def test_times_and_weights_stay(data):
    timed = replace(data, timestamps=np.arange(data.n_positives, dtype=float), weights=np.ones(data.n_positives))
    both = with_new_items(timed, NEW)
    np.testing.assert_array_equal(both.timestamps, timed.timestamps)
    np.testing.assert_array_equal(both.weights, timed.weights)


def test_a_file_of_items(data, tmp_path):
    file = tmp_path / "items.csv"
    file.write_text("id,title,genres\n3,Old,War\n100,Battle again,War\n", encoding="utf-8")
    model = EASE().fit(data).add_items(file)
    assert model.train_.items.title(N_ITEMS) == "Battle again"
    assert model.train_.items.title(3) == "Kiss 3", "known items stay as they are"


def test_new_items_can_be_asked_for(data):
    model = EASE().fit(data).add_items(NEW)
    assert sorted(model.recommend(0, where={"new": "yes"})[0].tolist()) == [100, 101]
    assert max(model.recommend(0, where={"new": "no"})[0]) < N_ITEMS
    with pytest.raises(ParameterError, match=r"say 'yes' .* or 'no'"):
        model.recommend(0, where={"new": "maybe"})
    assert model.explain(0, [100])[0].text.startswith("because of your interest in War: Battle")
