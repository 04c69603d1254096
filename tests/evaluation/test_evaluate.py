import numpy as np
import pytest

from dpcml import EASE, Interactions, ItemKNN, Popularity, evaluate
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def split(blocks):
    return blocks.split((0.6, 0.2, 0.2), np.random.default_rng(1))


def test_report_says_what_it_is(split):
    train, valid, test = split
    report = evaluate(EASE(l2=3.0).fit(train), train, test, valid=valid, at=(5, 3))
    assert (report.protocol, report.split, report.masked) == ("strict", split.hash, ("train", "valid"))
    assert (report.model, report.parameters, report.n_users) == ("ease", {"l2": 3.0}, 60)
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

    report = evaluate(Mine(), train.csr, test.csr, at=(3,), beyond=False)
    assert report.model == "Mine"
    assert set(report.metrics) == {"P@3", "R@3", "NDCG@3", "HR@3", "MAP", "MRR", "AUC"}


def test_cut_offs_beyond_the_catalogue(split):
    train, _, test = split
    metrics = evaluate(Popularity().fit(train), train, test, at=(1000,)).metrics
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
    with pytest.raises(ParameterError, match="at="):
        evaluate(model, train, test, at=(0,))
    with pytest.raises(DataError, match="nothing to evaluate"):
        evaluate(model, train, Interactions.from_csr(np.zeros((60, 40))))


def test_vectors_bring_max_div(split):
    train, _, test = split
    model = Popularity().fit(train)
    model.item_vectors_ = np.eye(40, dtype=np.float32)
    found = evaluate(model, train, test, at=(3,)).metrics
    assert found["MaxDiv@3"] == pytest.approx(6 * 2)  # six ordered pairs at squared distance 2
