import numpy as np
import pytest

from dpcml import Interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.evaluation import groups, metrics
from dpcml.evaluation.ranks import Ranks, rank_held_out
from dpcml.utils.errors import DataError

SETS = [{"War"}, {"War", "Crime"}, {"Crime"}, {"Western"}, set(), {"War"}]
FILMS = ItemTable(np.arange(6), attributes=Attributes.from_sets(SETS))


def test_majority_counts_an_item_with_two_categories_by_halves():
    likes = Interactions.from_csr(np.array([[1, 1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]), items=FILMS)
    names = FILMS.attributes.names
    found = groups.majority_category(likes)
    assert [names[k] if k >= 0 else None for k in found] == ["War", "Western", None]


@pytest.fixture
def world():
    rng = np.random.default_rng(4)
    sets = [set(rng.choice(["a", "b", "c"], size=rng.integers(0, 3), replace=False).tolist()) for _ in range(25)]
    table = ItemTable(np.arange(25), attributes=Attributes.from_sets(sets))
    data = Interactions.from_csr(rng.random((40, 25)) < 0.5, items=table)
    train, _, test = data.split((0.6, 0.2, 0.2), rng)
    model = type("Model", (), {"score": lambda self, users: rng.random((len(users), 25))})()
    return sets, train, test, rank_held_out(model, train, test)


def test_minority_recall_matches_a_loop(world):
    sets, train, _, ranks = world
    names = train.items.attributes.names
    majority = groups.majority_category(train)
    found = metrics.recall(ranks.only(groups.outside_majority(ranks, train)), 5)
    for k, user in enumerate(ranks.users):
        mine = slice(ranks.indptr[k], ranks.indptr[k + 1])
        outside = [
            place
            for item, place in zip(ranks.items[mine], ranks.rank[mine], strict=True)
            if sets[item] and names[majority[user]] not in sets[item]
        ]
        expected = np.mean([place <= 5 for place in outside]) if outside else np.nan
        assert found[k] == pytest.approx(expected, nan_ok=True)


def test_category_map_counts_only_that_category(world):
    sets, train, _, ranks = world
    found = groups.category_map(ranks, train)
    assert list(found) == ["a", "b", "c"]
    for name, value in found.items():
        relevant = np.array([name in sets[item] for item in ranks.items])
        assert value == pytest.approx(np.nanmean(metrics.average_precision(ranks.only(relevant))))
    assert list(groups.category_map(ranks, train, most=1)) == [
        max(found, key=lambda n: sum(n in sets[i] for i in ranks.items))
    ]


def test_no_attributes_is_a_clear_error():
    likes = Interactions.from_csr(np.eye(3))
    with pytest.raises(DataError, match="no attributes"):
        groups.outside_majority(Ranks.from_places([[1]]), likes)
