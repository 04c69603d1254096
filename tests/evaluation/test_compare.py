from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcml import EASE, Popularity, Report, compare, compare_models, evaluate
from dpcml.utils.errors import DataError, ParameterError


def made(label, values, split="s", protocol="strict", name="P@3"):
    values = np.asarray(values, dtype=float)
    means = {name: float(np.nanmean(values))}
    return Report(
        label, label, {}, protocol, split, (), len(values), means, users=np.arange(len(values)), per_user={name: values}
    )


def test_mean_and_deviation_over_seeds():
    found = compare([made("a", [0.1, 0.3]), made("a", [0.3, 0.5], "t"), made("b", [0.0, 0.1])]).cells
    assert found["a"]["P@3"].mean == pytest.approx(0.3)
    assert found["a"]["P@3"].deviation == pytest.approx(np.std([0.2, 0.4], ddof=1))
    assert found["a"]["P@3"].best
    assert not found["b"]["P@3"].best
    assert np.isnan(found["b"]["P@3"].deviation)


def test_paired_test_is_over_users_of_the_same_split_with_holm():
    rng = np.random.default_rng(0)
    a, b, c = rng.random(50) + 0.2, rng.random(50), rng.random(50) + 0.15
    a[3] = np.nan  # a user who does not count
    found = compare([made("a", a), made("b", b), made("c", c)]).cells
    raw = {name: stats.ttest_rel(a, other, nan_policy="omit").pvalue for name, other in (("b", b), ("c", c))}
    assert found["b"]["P@3"].p_value == pytest.approx(min(1, 2 * raw["b"]))
    assert found["c"]["P@3"].p_value == pytest.approx(max(2 * raw["b"], raw["c"]))
    assert np.isnan(found["a"]["P@3"].p_value)


def test_a_user_on_several_splits_is_one_sample():
    """The same users on five splits: differences that repeat are no more certain than one of them."""
    rng = np.random.default_rng(1)
    a, b = rng.random(40) + 0.1, rng.random(40)
    single = compare([made("a", a), made("b", b)]).cells["b"]["P@3"].p_value
    five = [made(label, values, split) for split in "stuvw" for label, values in (("a", a), ("b", b))]
    assert compare(five).cells["b"]["P@3"].p_value == pytest.approx(single)
    other, third = rng.random((2, 40))
    third[7] = np.nan  # a user with nothing held out on this split
    found = compare([made("a", a, "s"), made("b", other, "s"), made("a", a, "t"), made("b", third, "t")]).cells
    mean = np.nanmean([a - other, a - third], axis=0)
    assert found["b"]["P@3"].p_value == pytest.approx(stats.ttest_1samp(mean, 0).pvalue)


def test_users_are_paired_by_their_ids():
    rng = np.random.default_rng(2)
    a, b = rng.random(30) + 0.3, rng.random(30)
    order = rng.permutation(30)[:25]  # of b, and of fewer users
    shuffled = replace(made("b", b[order]), users=order)
    expected = stats.ttest_rel(a[np.sort(order)], b[np.sort(order)]).pvalue
    assert compare([made("a", a), shuffled]).cells["b"]["P@3"].p_value == pytest.approx(expected)


def test_a_ready_split_is_used_as_it_is(blocks):
    ready = blocks.split((0.6, 0.2, 0.2), 9)
    found = compare_models({"ease": EASE()}, blocks, split=ready, folds=1, metrics=["MAP"])
    expected = evaluate(EASE().fit(ready.train), ready.train, ready.test, valid=ready.valid, metrics=["MAP"])
    assert found.cells["ease"]["MAP"].mean == expected.metrics["MAP"]
    with pytest.raises(ParameterError, match=r"folds=5: the split 'per-user ratio .*' is the same each time"):
        compare_models({"ease": EASE()}, blocks, split=ready)


def test_other_splits_are_not_paired():
    found = compare([made("a", [1.0, 0.9, 0.8], "s"), made("b", [0.1, 0.2, 0.2], "t")]).cells
    assert np.isnan(found["b"]["P@3"].p_value)


def test_equal_models_are_told_apart_by_nothing():
    table = str(compare([made("a", [0.1, 0.3]), made("b", [0.1, 0.3])]))
    assert "0.2000*" in table
    assert "0.2000=" in table


def test_lower_gini_is_better():
    found = compare([made("a", [0.9, 0.9], name="gini@3"), made("b", [0.2, 0.2], name="gini@3")]).cells
    assert found["b"]["gini@3"].best


def test_real_reports(blocks, tmp_path):
    reports = []
    for seed in range(2):
        train, valid, test = blocks.split((0.6, 0.2, 0.2), seed)
        reports += [evaluate(model.fit(train), train, test, valid=valid) for model in (Popularity(), EASE())]
    comparison = compare(reports, metrics=["P@3", "MRR", "coverage@10"])
    assert comparison.cells["ease"]["P@3"].best
    assert comparison.cells["popularity"]["P@3"].p_value < 0.01
    assert comparison.seeds == {"popularity": 2, "ease": 2}
    comparison.to_csv(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text().startswith("label,metric,mean")


def test_bad_calls():
    with pytest.raises(DataError, match="nothing to compare"):
        compare([])
    with pytest.raises(DataError, match="strict, text cannot be compared"):
        compare([made("a", [1]), made("b", [1], protocol="text")])
    with pytest.raises(ParameterError, match=r"did you mean 'P@3'"):
        compare([made("a", [1])], metrics=["P@33"])
