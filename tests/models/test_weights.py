"""What models make of the weights of positives."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from dpcml import CML, EASE, IALS, Blend, Interactions, ItemKNN, load

SMALL = {"dim": 8, "epochs": 3, "n_candidates": 4, "batch_size": 32, "n_threads": 1, "init": "random"}
MODELS = {
    "itemknn": lambda: ItemKNN(k=5),
    "ials": lambda: IALS(dim=4, epochs=3, n_threads=1),
    "cml": lambda: CML(**SMALL, pull=0.5),
}


@pytest.fixture(scope="module")
def plain() -> Interactions:
    liked = np.random.default_rng(1).random((30, 20)) < 0.4
    return Interactions.from_csr(liked)


@pytest.fixture(scope="module")
def weighted(plain) -> Interactions:
    return replace(plain, weights=np.random.default_rng(2).exponential(50, plain.n_positives))


def scores(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return model.fit(data, progress=False).score(np.arange(data.n_users))


@pytest.mark.parametrize("name", MODELS)
def test_weights_change_what_is_learned_and_equal_ones_change_no_bit(name, plain, weighted):
    make = MODELS[name]
    alone = scores(make(), plain)
    assert not np.allclose(scores(make(), weighted), alone)
    assert (scores(make(), replace(plain, weights=np.full(plain.n_positives, 7.0))) == alone).all()


def test_itemknn_is_a_weighted_cosine(weighted, tmp_path):
    model = ItemKNN(k=19, shrink=2.0).fit(weighted)
    C = weighted.confidence.toarray().astype(float)
    squares = (C**2).sum(axis=0)
    similarity = C.T @ C / (np.sqrt(np.outer(squares, squares)) + 2.0)
    np.fill_diagonal(similarity, 0)
    np.testing.assert_allclose(model.score(np.arange(30)), C @ similarity, rtol=1e-4)
    saved = load(model.save(tmp_path / "m"))
    assert (saved.score([0, 7]) == model.score([0, 7])).all()


def test_ials_weighs_errors_by_confidence(weighted):
    """Users solve their weighted least squares, given the items."""
    model = IALS(dim=4, epochs=30, l2=1.0, confidence=3.0, n_threads=1).fit(weighted, progress=False)
    items, c = model.item_factors_.astype(float), 3.0 * weighted.confidence.toarray()
    for user in range(5):
        extra = np.where(c[user] > 0, c[user] - 1, 0)
        gram = items.T @ items + items.T @ (extra[:, None] * items) + np.eye(4)
        expected = np.linalg.solve(gram, items.T @ c[user])
        np.testing.assert_allclose(model.user_factors_[user], expected, atol=0.05)


def test_heavy_positives_come_nearer(plain):
    heavy = np.arange(plain.n_positives) % 2 == 0
    data = replace(plain, weights=np.where(heavy, 1e6, 0.0))
    model = CML(**{**SMALL, "epochs": 40}).fit(data, progress=False)
    found = model.score(np.arange(plain.n_users))[plain.rows, plain.indices]
    assert found[heavy].mean() > found[~heavy].mean() + 0.1


def test_a_model_without_use_for_weights_says_so(weighted):
    with pytest.warns(UserWarning, match="EASE ignores the weights of positives; dpcml, cml"):
        EASE().fit(weighted)
    with pytest.warns(UserWarning, match="EASE") as told:
        Blend([ItemKNN(), EASE()]).fit(weighted)
    assert len(told) == 1
