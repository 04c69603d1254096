import numpy as np
import pytest

from dpcml import EASE, Interactions, ItemKNN, Popularity, evaluate
from dpcml.evaluation import metrics
from dpcml.evaluation.evaluate import validation
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def split(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


def test_report_says_what_it_is(split):
    train, valid, test = split
    report = evaluate(EASE(l2=3.0).fit(train), train, test, valid=valid, k=(5, 3))
    assert (report.protocol, report.split, report.masked) == ("strict", split.hash, ("train", "valid"))
    assert (report.model, report.parameters["l2"], report.n_users) == ("ease", 3.0, 60)
    assert report.version
    for name in (
        "P",
        "R",
        "NDCG",
        "HR",
        "novelty",
        "cooccurrence_ILD",
        "attribute_ILD",
        "minority_R",
        "coverage",
        "gini",
    ):
        assert {f"{name}@3", f"{name}@5"} <= set(report.metrics), name
    assert {"MAP", "MRR", "AUC"} <= set(report.metrics)
    assert set(report.categories) == {"left", "right"}
    assert report.users.tolist() == [f"user-{k}" for k in range(60)]
    assert report.metrics["P@3"] == pytest.approx(np.nanmean(report.per_user["P@3"]))


@pytest.mark.parametrize(
    ("protocol", "masked"), [("text", ("train",)), ("released", ("train",)), ("strict", ("train", "valid"))]
)
def test_protocol_decides_what_is_masked(split, protocol, masked):
    train, valid, test = split
    model = Popularity().fit(train)
    report = evaluate(model, train, test, valid=valid, protocol=protocol)
    assert report.masked == masked
    without = evaluate(model, train, test, protocol=protocol)
    assert (report.metrics["MAP"] == without.metrics["MAP"]) == (protocol != "strict")


def test_matrices_and_plain_scorers_are_welcome(split):
    train, _, test = split

    class Mine:
        def score(self, users):
            return np.tile(np.arange(40.0), (len(users), 1))

    report = evaluate(Mine(), train.csr, test.csr, k=3, beyond_accuracy=False)
    assert report.model == "Mine"
    assert set(report.metrics) == {"P@3", "R@3", "NDCG@3", "HR@3", "MAP", "MRR", "AUC"}


def test_cut_offs_beyond_the_catalogue(split):
    train, _, test = split
    metrics = evaluate(Popularity().fit(train), train, test, k=1000).metrics
    assert metrics["R@1000"] == 1
    assert metrics["coverage@1000"] == 1


def test_blocks_are_learned(split):
    train, valid, test = split
    chance = evaluate(Popularity().fit(train), train, test, valid=valid).metrics["P@3"]
    for model in (ItemKNN(), EASE()):
        assert evaluate(model.fit(train), train, test, valid=valid).metrics["P@3"] > 1.3 * chance


def test_bad_calls(split):
    train, _, test = split
    model = Popularity().fit(train)
    with pytest.raises(ParameterError, match="unknown protocol 'paper'"):
        evaluate(model, train, test, protocol="paper")
    with pytest.raises(ParameterError, match="k="):
        evaluate(model, train, test, k=0)
    with pytest.raises(DataError, match="nothing to evaluate"):
        evaluate(model, train, Interactions.from_csr(np.zeros((60, 40))))


def test_vectors_bring_max_div(split):
    train, _, test = split
    model = Popularity().fit(train)
    model.item_vectors_ = np.eye(40, dtype=np.float32)
    found = evaluate(model, train, test, k=3).metrics
    assert found["MaxDiv@3"] == pytest.approx(6 * 2)  # six ordered pairs at squared distance 2


def test_metrics_asked_for_are_those_of_the_whole_report(split):
    train, valid, test = split
    model = EASE().fit(train)
    whole = evaluate(model, train, test, valid=valid, k=(3, 10))
    names = ["minority_R@10", "NDCG@10", "coverage@3", "gini@10", "cooccurrence_ILD@3", "MAP"]
    few = evaluate(model, train, test, valid=valid, metrics=names)
    assert set(few.metrics) == set(names)
    np.testing.assert_equal(few.metrics, {name: whole.metrics[name] for name in few.metrics})  # NaN equals NaN
    assert few.categories == {}
    for name in few.per_user:
        np.testing.assert_array_equal(few.per_user[name], whole.per_user[name])
    np.testing.assert_equal(
        evaluate(model, train, test, valid=valid, metrics="categories").categories, whole.categories
    )


def test_metrics_that_cannot_be_computed(split):
    train, _, test = split
    bare = Interactions.from_csr(train.csr), Interactions.from_csr(test.csr)
    model = Popularity().fit(bare[0])
    found = evaluate(model, *bare, metrics=["beyond_accuracy"], k=3)
    assert set(found.metrics) == {"cooccurrence_ILD@3", "novelty@3", "coverage@3", "gini@3"}
    for name, message in (
        ("minority_R@3", "no attributes"),
        ("attribute_ILD", "no attributes"),
        ("categories", "no attributes"),
        ("MaxDiv@3", "item vectors"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate(model, *bare, metrics=name)


def test_early_stopping_computes_one_metric(split, monkeypatch):
    train, valid, _ = split
    model = Popularity().fit(train)
    expected = evaluate(model, train, valid, protocol="released").metrics["NDCG@3"]
    for name in ("precision", "recall", "hit_rate", "average_precision", "reciprocal_rank", "auc"):
        monkeypatch.setattr(metrics, name, None)  # calling it would fail
    assert validation(model, train, valid, "NDCG@3") == expected
    assert list(evaluate(model, train, valid, metrics="NDCG@3").metrics) == ["NDCG@3"]


def test_old_names_of_arguments_work_with_a_warning(split):
    train, _, test = split
    model = Popularity().fit(train)
    with pytest.warns(FutureWarning, match="evaluate: at .* k;"):
        old = evaluate(model, train, test, at=(3,))
    np.testing.assert_equal(old.metrics, evaluate(model, train, test, k=3).metrics)
    with pytest.warns(FutureWarning, match="evaluate: beyond .* beyond_accuracy;"):
        assert "coverage@3" not in evaluate(model, train, test, beyond=False).metrics
