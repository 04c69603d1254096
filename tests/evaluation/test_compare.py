import numpy as np
import pytest
from scipy import stats

from dpcml import EASE, Popularity, Report, compare, evaluate
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
