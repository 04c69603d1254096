"""The protocols against the table in which they are defined, on a case worked out by hand."""

import numpy as np
import pytest

from dpcml.evaluation.protocol import PROTOCOLS, accuracy, cutoffs
from dpcml.evaluation.ranks import Ranks
from dpcml.utils.errors import ParameterError

# Held-out items at places (from 0) of three users with 4, 2 and 1 of them.
RANKS = Ranks.from_places([[0, 2, 5, 9], [1, 3], [0]], n_candidates=20)
GAIN = [1 / np.log2(place + 2) for place in range(5)]


def mean(values):
    return np.nanmean(values)


@pytest.mark.parametrize("name", ["text", "strict"])
def test_text_and_strict_count_every_user(name):
    found = accuracy(RANKS, PROTOCOLS[name], at=[3])
    assert mean(found["P@3"]) == pytest.approx((2 / 3 + 1 / 3 + 1 / 3) / 3)
    assert mean(found["R@3"]) == pytest.approx((2 / 4 + 1 / 2 + 1) / 3)
    ideal = [sum(GAIN[:3]), sum(GAIN[:2]), GAIN[0]]
    expected = [(GAIN[0] + GAIN[2]) / ideal[0], GAIN[1] / ideal[1], 1]
    np.testing.assert_allclose(found["NDCG@3"], expected)
    assert mean(found["MAP"]) == pytest.approx(np.mean([(1 + 2 / 3 + 3 / 6 + 4 / 10) / 4, (1 / 2 + 2 / 4) / 2, 1]))


def test_text_sums_reciprocal_ranks_and_strict_takes_the_first():
    assert accuracy(RANKS, PROTOCOLS["text"], [3])["MRR"] == pytest.approx([1 + 1 / 3 + 1 / 6 + 1 / 10, 3 / 4, 1])
    assert accuracy(RANKS, PROTOCOLS["strict"], [3])["MRR"] == pytest.approx([1, 1 / 2, 1])


def test_released_counts_users_with_enough_held_out_items_and_a_full_ideal():
    found = accuracy(RANKS, PROTOCOLS["released"], at=[2, 3, 5])
    assert np.isnan(found["P@2"]).tolist() == [False, False, True]
    assert np.isnan(found["R@3"]).tolist() == [False, True, True]
    assert np.isnan(found["NDCG@5"]).all()
    assert found["NDCG@3"][0] == pytest.approx((GAIN[0] + GAIN[2]) / sum(GAIN[:3]))
    assert found["NDCG@2"][1] == pytest.approx(GAIN[1] / sum(GAIN[:2]))
    for name in ("MAP", "MRR", "AUC"):
        assert np.isnan(found[name]).tolist() == [False, True, True], name
    assert found["MRR"][0] == 1


def test_only_strict_masks_validation():
    assert [PROTOCOLS[name].masks_validation for name in ("text", "released", "strict")] == [False, False, True]


@pytest.mark.parametrize("at", [(), (0,), (3, -1), (2.5,), (True,)])
def test_bad_cutoffs(at):
    with pytest.raises(ParameterError, match="cut-off"):
        cutoffs(at)


def test_unknown_protocol_suggests():
    with pytest.raises(ParameterError, match="did you mean 'strict'"):
        PROTOCOLS["strickt"]
