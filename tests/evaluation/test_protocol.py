"""The protocols against the table in which they are defined, on a case worked out by hand."""

import numpy as np
import pytest

from dpcml.evaluation.protocol import METRICS, PROTOCOLS, MetricInput, cutoffs, metric_cutoff, select
from dpcml.evaluation.ranks import Ranks
from dpcml.utils.errors import ParameterError

# Held-out items at places (from 0) of three users with 4, 2 and 1 of them.
RANKS = Ranks.from_places([[0, 2, 5, 9], [1, 3], [0]], n_candidates=20)
GAIN = [1 / np.log2(place + 2) for place in range(5)]


def mean(values):
    return np.nanmean(values)


def accuracy(protocol, k=3):
    return select("accuracy", k).compute(MetricInput(RANKS, PROTOCOLS[protocol]))[0]


@pytest.mark.parametrize("name", ["text", "strict"])
def test_text_and_strict_count_every_user(name):
    found = accuracy(name)
    assert mean(found["P@3"]) == pytest.approx((2 / 3 + 1 / 3 + 1 / 3) / 3)
    assert mean(found["R@3"]) == pytest.approx((2 / 4 + 1 / 2 + 1) / 3)
    ideal = [sum(GAIN[:3]), sum(GAIN[:2]), GAIN[0]]
    expected = [(GAIN[0] + GAIN[2]) / ideal[0], GAIN[1] / ideal[1], 1]
    np.testing.assert_allclose(found["NDCG@3"], expected)
    assert mean(found["MAP"]) == pytest.approx(np.mean([(1 + 2 / 3 + 3 / 6 + 4 / 10) / 4, (1 / 2 + 2 / 4) / 2, 1]))


def test_text_sums_reciprocal_ranks_and_strict_takes_the_first():
    assert accuracy("text")["MRR"] == pytest.approx([1 + 1 / 3 + 1 / 6 + 1 / 10, 3 / 4, 1])
    assert accuracy("strict")["MRR"] == pytest.approx([1, 1 / 2, 1])


def test_released_counts_users_with_enough_held_out_items_and_a_full_ideal():
    found = accuracy("released", k=[2, 3, 5])
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


@pytest.mark.parametrize("k", [(), (0,), (3, -1), (2.5,), (True,), 0])
def test_bad_cutoffs(k):
    with pytest.raises(ParameterError, match="cut-off"):
        cutoffs(k)


def test_unknown_protocol_suggests():
    with pytest.raises(ParameterError, match="did you mean 'strict'"):
        PROTOCOLS["strickt"]


def test_names_without_a_cutoff_stand_for_all_of_them():
    assert list(select(["MRR", "NDCG", "P@7"], k=(5, 3)).names) == ["MRR", "NDCG@3", "NDCG@5", "P@7"]


def test_families_hold_every_metric():
    both = select(["accuracy", "beyond_accuracy"], k=3)
    assert {name for name, _ in both.names.values()} == set(METRICS)
    assert both.categories
    assert not both.required
    assert list(select("diversity", k=3).names) == ["cooccurrence_ILD@3", "attribute_ILD@3", "MaxDiv@3"]


def test_lists_are_as_long_as_the_metrics_of_lists_need():
    assert select(["NDCG@50", "minority_R@20"]).list_length == 0
    assert select(["NDCG@50", "novelty@7", "coverage@3"]).list_length == 7


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("NDGC@10", "unknown metric 'NDGC@10': did you mean 'NDCG@10'"),
        (["MAP", "covrage@10"], "did you mean 'coverage@10'"),
        ("acuracy", "did you mean 'accuracy'"),
        ("MAP@10", "MAP has no cut-off, write 'MAP'"),
        ("P@0", "at least 1, as in 'P@10'"),
        ("P@", "at least 1, as in 'P@10'"),
        ([], "name at least one metric"),
    ],
)
def test_bad_names(names, message):
    with pytest.raises(ParameterError, match=message):
        select(names)


def test_models_are_selected_by_accuracy():
    assert metric_cutoff("NDCG@12") == 12
    for metric in ("minority_R@10", "P", "MAP@3", "NDCG@x"):
        with pytest.raises(ParameterError, match="metric="):
            metric_cutoff(metric)
