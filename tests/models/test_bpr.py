import numpy as np
import pytest

from dpcml import BPR, Interactions
from dpcml.utils.errors import DataError, ParameterError

pytest.importorskip("implicit")


@pytest.fixture(scope="module")
def parts(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


def test_bpr_draws_anew_in_every_epoch(parts):
    short, longer = (BPR(dim=4, epochs=epochs, validate_every=1).fit(parts.train) for epochs in (20, 200))
    losses = [epoch.loss for epoch in longer.history_.epochs]
    assert losses[:20] == [epoch.loss for epoch in short.history_.epochs]
    assert len(set(losses[-50:])) > 10
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) < 0.7


def test_a_bias_is_learned_and_is_no_part_of_similarity(parts):
    model = BPR(dim=4, epochs=50).fit(parts.train)
    assert (model.user_factors_[:, 4] == 1).all()
    assert np.ptp(model.item_factors_[:, 4]) > 0.1
    before = model.similar_items(105)
    model.item_factors_[:, 4] += 100
    assert (model.similar_items(105)[1] == before[1]).all()


def test_steps_that_leap_too_far_are_an_error_with_a_way_out():
    data = Interactions.from_csr(np.random.default_rng(0).random((20, 15)) < 0.3)
    with pytest.raises(DataError, match="lower the learning rate"):
        BPR(learning_rate=1e30, l2=1e30).fit(data)


@pytest.mark.parametrize(("name", "value"), [("l2", -1), ("learning_rate", 0), ("learning_rate", "fast")])
def test_bad_parameters(name, value):
    with pytest.raises(ParameterError, match=f"{name}="):
        BPR(**{name: value})
