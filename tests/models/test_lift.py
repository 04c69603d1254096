"""Popularity as a last coordinate of the vectors."""

import copy
import json

import numpy as np
import pytest

from dpcml import CML, DPCML, GFJA, Interactions, load, save
from dpcml.data.items import ItemTable
from dpcml.data.synthetic import planted
from dpcml.evaluation.evaluate import validation
from dpcml.models.adaptive import POPULARITY_WEIGHT, POPULARITY_WEIGHTS, lift
from dpcml.storage import CARD

SETTINGS = {"n_vectors": 2, "dim": 9, "epochs": 5, "n_candidates": 6, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def parts():
    return planted(120, 80, seed=3).data.split((0.7, 0.3), 0)


@pytest.fixture(scope="module")
def fitted(parts):
    return DPCML(**SETTINGS, popularity=0.3).fit(parts.train)


def penalty(train, weight):
    """Return by how much less popular items lie farther away."""
    return weight * (np.log1p(train.per_item.max()) - np.log1p(train.per_item))


def by_hand(model, train, weight):
    """Return scores from the trained coordinates and the numbers of likes, in float64."""
    U, V = model.user_vectors_[:, :, :-1].astype(float), model.item_vectors_[:, :-1].astype(float)
    return -((U[:, :, None] - V) ** 2).sum(axis=3).min(axis=1) - penalty(train, weight)


def test_score_is_that_of_the_trained_coordinates_less_a_penalty(fitted, parts):
    np.testing.assert_allclose(fitted.score(np.arange(120)), by_hand(fitted, parts.train, 0.3), atol=1e-5)
    assert fitted.item_vectors_.shape == (80, 9)
    assert not fitted.user_vectors_[:, :, -1].any()
    np.testing.assert_allclose(fitted.item_vectors_[:, -1] ** 2, penalty(parts.train, 0.3), atol=1e-5)
    assert (fitted.trained_items() == fitted.item_vectors_[:, :-1]).all()
    assert not fitted.fold_in([1, 2, 3])[:, -1].any()


def test_the_weight_does_not_change_training(fitted, parts):
    other = DPCML(**SETTINGS, popularity=0.7).fit(parts.train)
    assert (other.user_vectors_ == fitted.user_vectors_).all()
    assert (other.trained_items() == fitted.trained_items()).all()
    plain = DPCML(**{**SETTINGS, "dim": 8}, popularity=0.0).fit(parts.train)
    assert (plain.item_vectors_ == fitted.trained_items()).all()
    lifted = lift(plain.item_vectors_, parts.train.per_item, float(np.float32(0.3)))
    assert (lifted == fitted.item_vectors_).all()


class Scores:
    def __init__(self, scores):
        self.scores = scores

    def score(self, users):
        return self.scores[users]


@pytest.mark.parametrize("popular", [True, False])
def test_none_finds_the_weight_that_is_best_on_the_validation_part(parts, popular):
    """What is held out are the most, or the least popular of the items that a user might like."""
    train, likes = parts.train, parts.train.per_item
    held_out = np.zeros((120, 80), dtype=bool)
    for user in range(120):
        unseen = np.setdiff1d(np.arange(80), train.of(user))
        order = unseen[np.argsort(likes[unseen], kind="stable")]
        held_out[user, order[-5:] if popular else order[:5]] = True
    valid = Interactions.from_codes(*np.nonzero(held_out), train.user_ids, train.items)
    model = DPCML(**SETTINGS, popularity=None, metric="NDCG@5").fit(train, valid)
    figures = [
        validation(Scores(by_hand(model, train, weight).astype(np.float32)), train, valid, "NDCG@5")
        for weight in POPULARITY_WEIGHTS
    ]
    expected = POPULARITY_WEIGHTS[int(np.argmax(figures))]
    assert model.popularity_weight_.tolist() == [np.float32(expected)]
    assert (expected > 0) == popular
    assert model.popularity is None, "the parameter stays"
    np.testing.assert_allclose(model.score(np.arange(120)), by_hand(model, train, expected), atol=1e-5)


def test_none_without_a_validation_part(parts):
    model = DPCML(**SETTINGS, popularity=None).fit(parts.train)
    assert model.popularity_weight_.tolist() == [np.float32(POPULARITY_WEIGHT)]


def test_a_single_dimension_has_no_room_for_popularity(parts, tmp_path):
    model = DPCML(**{**SETTINGS, "dim": 1}, popularity=None).fit(parts.train)
    assert model.item_vectors_.shape == (80, 1)
    assert (model.trained_items() == model.item_vectors_).all()
    again = load(save(model, tmp_path / "model"))
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("kind", [CML, GFJA])
def test_other_models_have_it_too(parts, kind):
    settings = {name: value for name, value in SETTINGS.items() if kind is not CML or name != "n_vectors"}
    model = kind(**settings, popularity=0.3).fit(parts.train)
    scores = by_hand(model, parts.train, 0.3)
    np.testing.assert_allclose(model.score(np.arange(120)), scores if kind is CML else 1 + scores / 2, atol=1e-5)


def test_partial_fit_keeps_old_items_bit_for_bit(fitted, parts):
    model = copy.copy(fitted)
    users, items = np.array([0, 0, 0, 1, 2, 3]), np.array([80, 81, 4, 80, 80, 80])
    model.partial_fit(Interactions.from_codes(users, items, np.array([7, 8, 9, 900]), ItemTable(np.arange(82))))
    assert model.item_vectors_.shape == (82, 9)
    assert model.item_vectors_[:80].tobytes() == fitted.item_vectors_.tobytes()
    assert not model.user_vectors_[:, :, -1].any()
    np.testing.assert_allclose(model.item_vectors_[80:, -1] ** 2, penalty(model.train_, 0.3)[80:], atol=1e-5)
    assert np.isfinite(model.score(np.arange(121))).all()


def test_a_model_that_was_saved_before_there_was_popularity_is_loaded(parts, tmp_path):
    """Its folder has neither the array nor the parameters, whose defaults are others now."""
    plain = {"popularity": 0.0, "pull": 0.0, "average": 0.0}
    model = DPCML(**SETTINGS, **plain, init="spectral").fit(parts.train)
    folder = save(model, tmp_path / "model")
    card = json.loads((folder / CARD).read_text()) | {"format": 1}  # of that time, without a checksum
    for name in plain:
        del card["parameters"][name]
    (folder / CARD).write_text(json.dumps(card))
    again = load(folder)
    assert again.get_params() == model.get_params()
    assert again.score(np.arange(120)).tobytes() == model.score(np.arange(120)).tobytes()
    assert again.fold_in([1, 2, 3]).tobytes() == model.fold_in([1, 2, 3]).tobytes()
    save(again, tmp_path / "again")
    assert load(tmp_path / "again").get_params() == model.get_params()
