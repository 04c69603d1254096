import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from dpcml import CML, DPCML, EASE, Interactions, Report, evaluate
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.synthetic import planted
from dpcml.evaluation.interests import adjusted_mutual_information, first_category, interest_agreement
from dpcml.utils.errors import DataError, ParameterError

BOTH = ["interest_agreement", "interest_agreement_held_out"]
SMALL = {"dim": 8, "epochs": 10, "n_candidates": 6}


@pytest.fixture(scope="module")
def parts():
    return planted(300, 160, seed=2).data.split((0.6, 0.2, 0.2), 0)


@pytest.fixture(scope="module")
def model(parts):
    return DPCML(n_vectors=3, **SMALL).fit(parts.train)


@pytest.mark.parametrize("n_labels", [1, 2, 4, 30])
@pytest.mark.parametrize("size", [1, 3, 20, 400])
def test_ami_is_that_of_scikit_learn(n_labels, size):
    rng = np.random.default_rng(n_labels * size)
    n = 40
    owner = rng.integers(0, n, n * size)
    first = rng.integers(0, n_labels, len(owner))
    second = np.where(rng.random(len(owner)) < rng.random(n)[owner], first, rng.integers(0, 5, len(owner)))
    found = adjusted_mutual_information(owner, first, second, n)
    for k in range(n):
        a, b = first[owner == k], second[owner == k]
        expected = adjusted_mutual_info_score(a, b)
        if len(set(a)) == len(set(b)) == len(a):  # 0 / 0, where scikit-learn gives 1 with the sign of rounding
            expected = 1.0
        assert found[k] == pytest.approx(expected, abs=1e-11)


def test_ami_does_not_depend_on_threads_or_order(monkeypatch):
    rng = np.random.default_rng(0)
    owner, first, second = rng.integers(0, 90, 2000), rng.integers(0, 6, 2000), rng.integers(0, 3, 2000)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("DPCML_THREADS", threads)
        found.append(adjusted_mutual_information(owner, first, second, 90))
    order = np.argsort(owner, kind="stable")
    found.append(adjusted_mutual_information(owner[order], first[order], second[order], 90))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_first_category_is_the_first_by_name():
    films = Attributes.from_sets([set(), {"War", "Crime", "Drama"}, {"War"}, set(), {"Drama", "War"}, set()])
    names = [str(films.names[k]) if k >= 0 else None for k in first_category(films)]
    assert names == [None, "Crime", "War", None, "Drama", None]
    assert first_category(Attributes.from_sets([set(), set()])).tolist() == [-1, -1]


def test_who_counts():
    sets = [{"War"}, {"War"}, {"Crime"}, {"Crime"}, set(), {"Western"}]
    likes = Interactions.from_csr(
        np.array(
            [
                [1, 1, 1, 1, 1, 0],  # two categories of two items: counts, without the item of none
                [1, 1, 0, 0, 1, 0],  # one category
                [1, 0, 1, 0, 0, 1],  # every item has a category of its own
                [1, 1, 1, 0, 0, 0],
                [0, 0, 0, 0, 1, 0],  # no category
                [0, 0, 0, 0, 0, 0],
            ]
        ),
        items=ItemTable(np.arange(6), attributes=Attributes.from_sets(sets)),
    )
    asked = []

    def one_vector(users, items):
        asked.extend(zip(users.tolist(), items.tolist(), strict=True))
        return np.zeros(len(users), dtype=np.int32)

    found = interest_agreement(one_vector, likes, np.arange(6), likes.rows, likes.indices)
    np.testing.assert_equal(found, [0, np.nan, np.nan, 0, np.nan, np.nan])
    assert asked == [(0, 0), (0, 1), (0, 2), (0, 3), (3, 0), (3, 1), (3, 2)]
    for wrong in (lambda u, _: np.zeros(len(u)), lambda u, _: np.zeros(2, int), lambda u, _: np.full(len(u), -1)):
        with pytest.raises(DataError, match="nearest_interest gave shape"):
            interest_agreement(wrong, likes, np.arange(6), likes.rows, likes.indices)


def test_reports_have_it_for_training_and_held_out_items(model, parts):
    train, valid, test = parts
    report = evaluate(model, train, test, valid=valid, k=10)
    category = train.items.attributes.matrix.indices  # one per item
    for name, part in zip(BOTH, (train, test), strict=True):
        expected = []
        for row in range(train.n_users):
            items = part.of(row)
            if test.per_user[row] and 1 < len(set(category[items])) < len(items):
                near = ((model.user_vectors_[row][:, None] - model.item_vectors_[items]) ** 2).sum(axis=2)
                expected.append(adjusted_mutual_info_score(category[items], near.argmin(axis=0)))
        assert report.counted[name] == len(expected) > 50
        assert report.metrics[name] == pytest.approx(np.mean(expected), abs=1e-6)
    assert set(BOTH) <= set(Report.from_json(report.to_json()).metrics)
    few = evaluate(model, train, test, users=np.arange(50, 90), metrics=BOTH)
    assert list(few.metrics) == BOTH
    rows = np.searchsorted(report.users, few.users)
    for name in BOTH:
        np.testing.assert_array_equal(few.per_user[name], report.per_user[name][rows])
    assert set(evaluate(model, train, test, metrics="categories").metrics) == set(BOTH)


def test_one_vector_per_user_has_no_agreement(parts):
    train, _, test = parts
    for other in (EASE().fit(train), CML(**SMALL).fit(train)):
        assert not set(BOTH) & set(evaluate(other, train, test, k=3).metrics)
        for name in BOTH:
            with pytest.raises(DataError, match="has not several vectors per user: leave it out"):
                evaluate(other, train, test, metrics=name)


def test_no_categories_no_agreement(parts):
    bare = [Interactions.from_csr(part.csr) for part in (parts.train, parts.test)]
    model = DPCML(n_vectors=2, **SMALL).fit(bare[0])
    assert not set(BOTH) & set(evaluate(model, *bare, k=3).metrics)
    with pytest.raises(DataError, match="no attributes"):
        evaluate(model, *bare, metrics="interest_agreement")
    with pytest.raises(ParameterError, match="interest_agreement has no cut-off"):
        evaluate(model, *bare, metrics="interest_agreement@10")


def test_shares_of_another_report_need_the_same_split(parts):
    train, valid, test = parts
    ease = evaluate(EASE().fit(train), train, test, k=10)
    assert set(ease.share_of(ease).values()) <= {1.0}
    with pytest.raises(DataError, match="masked"):
        ease.share_of(evaluate(EASE().fit(train), train, test, valid=valid, k=10))
