"""An unfitted copy of a model with what the validation part has found."""

from __future__ import annotations

import pytest

from dpcml import CML, DPCML, EASE, Blend
from dpcml.data.synthetic import planted
from dpcml.utils.errors import NotFittedError, ParameterError

SMALL = {"dim": 8, "epochs": 8, "n_candidates": 3, "validate_every": 2}


@pytest.fixture(scope="module")
def parts():
    data = planted(120, 90, positives=15, n_categories=4, seed=3).data
    return data, *data.split((0.7, 0.3))


def test_before_fit_there_is_nothing_to_settle():
    with pytest.raises(NotFittedError):
        DPCML().settled()


def test_what_was_found_is_a_parameter(parts):
    _, train, valid = parts
    model = DPCML(**SMALL).fit(train, valid)
    copy = model.settled()
    assert not hasattr(copy, "train_")
    assert copy.stop_after == model.history_.best.number
    assert copy.vector_rate == model.vector_rate_[0]
    assert copy.popularity == pytest.approx(model.popularity_weight_[0])
    found = {"stop_after", "vector_rate", "popularity"}
    before, after = model.get_params(), copy.get_params()
    assert {name for name in after if after[name] != before[name]} <= found


def test_the_schedule_stays_that_of_all_epochs(parts):
    data = parts[0]
    whole, stopped = CML(**SMALL).fit(data), CML(**SMALL, stop_after=3).fit(data)
    rates = [epoch.rate for epoch in whole.history_.epochs]
    assert [epoch.rate for epoch in stopped.history_.epochs] == rates[:3]


def test_a_copy_on_the_same_data_has_the_same_bits(parts):
    _, train, valid = parts
    model = CML(**SMALL).fit(train, valid)
    assert (model.settled().fit(train).user_vectors_ == model.user_vectors_).all()


def test_a_blend_settles_its_members_and_its_weights(parts):
    _, train, valid = parts
    model = Blend([CML(**SMALL), EASE()]).fit(train, valid)
    again = model.settled().fit(train)
    assert again.weights_.tolist() == pytest.approx(model.weights_.tolist())
    assert again.members_[0].stop_after == model.members_[0].history_.best.number
    assert (again.members_[0].item_vectors_ == model.members_[0].item_vectors_).all()


def test_epochs_to_stop_after_are_whole_numbers():
    with pytest.raises(ParameterError, match="stop_after"):
        CML(stop_after=0)
