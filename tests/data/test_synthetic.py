from __future__ import annotations

import filecmp
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from dpcml import Interactions
from dpcml.data.synthetic import PlantedWorld, generator, planted, planted_blocks
from dpcml.data.synthetic.generator import PlantedCatalogue
from dpcml.data.synthetic.titles import category_names, titles
from dpcml.utils.errors import DpcmlError, ParameterError


@pytest.fixture(scope="module")
def world() -> PlantedWorld:
    return planted()


@pytest.fixture(scope="module")
def category_counts(world) -> np.ndarray:
    counts = np.zeros((world.data.n_users, len(world.truth.categories)), dtype=int)
    np.add.at(counts, (world.data.rows, world.truth.item_category[world.data.indices]), 1)
    return counts


def test_same_seed_same_world(world):
    again = planted()
    assert again.data.content_hash == world.data.content_hash
    assert again.parameters == world.parameters
    assert again.data.items.titles.tolist() == world.data.items.titles.tolist()
    for name in ("item_category", "item_series", "user_interests", "user_series", "user_shares"):
        assert (getattr(again.truth, name) == getattr(world.truth, name)).all()


def test_another_seed_is_another_world(world):
    other = planted(seed=1)
    assert other.data.content_hash != world.data.content_hash
    assert (other.truth.item_category != world.truth.item_category).any()
    assert other.data.items.titles.tolist() != world.data.items.titles.tolist()


def test_data_is_a_proper_csr(world):
    data = world.data
    assert (data.n_users, data.n_items) == (1000, 1000)
    assert data.indices.dtype == np.int32
    keys = data.rows * data.n_items + data.indices
    assert (np.diff(keys) > 0).all()  # ascending, nothing twice
    assert data.csr.has_canonical_format


def test_lists_vary_around_the_wish(world):
    per_user = world.data.per_user
    assert 0.93 * 40 < per_user.mean() < 1.05 * 40
    assert per_user.min() >= generator.SHORTEST
    assert 0.3 < per_user.std() / per_user.mean() < 0.8


@pytest.mark.parametrize("positives", [5, 12.5, 60])
def test_other_wishes_are_met_too(positives):
    assert planted(positives=positives).data.per_user.mean() == pytest.approx(positives, rel=0.08)


def test_positives_lie_in_the_interests_of_their_user(world):
    truth, data = world.truth, world.data
    own = (truth.item_category[data.indices, None] == truth.user_interests[data.rows]).any(axis=1)
    sizes = np.bincount(truth.item_category)
    reach = sizes[truth.user_interests].sum(axis=1)[data.rows] / data.n_items  # noise may hit an own category
    expected = 1 - world.parameters.noise * (1 - reach.mean())
    assert abs(own.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / len(own))


def test_majority_is_the_most_frequent_category(world, category_counts):
    assert (category_counts.argmax(axis=1) == world.truth.user_interests[:, 0]).mean() > 0.98


def test_shares_are_what_the_truth_says(world, category_counts):
    took = np.take_along_axis(category_counts, world.truth.user_interests, axis=1).sum(axis=0)
    assert took / took.sum() == pytest.approx(world.truth.user_shares.mean(axis=0), abs=0.02)
    assert world.truth.user_shares[0] == pytest.approx([0.65, 0.175, 0.175])


def test_interests_prefer_their_series(world):
    truth, data = world.truth, world.data
    mine = truth.item_category[data.indices] == truth.user_interests[data.rows, 0]
    liked = truth.item_series[data.indices[mine]] == truth.user_series[data.rows[mine], 0]
    assert 0.6 < liked.mean() < 0.85  # 0.8 before popular items run out, 1/3 without a preference


def test_interests_of_a_user_differ(world):
    ordered = np.sort(world.truth.user_interests, axis=1)
    assert (ordered[:, 1:] > ordered[:, :-1]).all()


def test_catalogue_is_imbalanced_and_small_categories_are_minorities(world):
    sizes = np.bincount(world.truth.item_category)
    assert (np.diff(sizes) <= 0).all()
    assert sizes[0] > 5 * sizes[-1] > 0
    majority = np.bincount(world.truth.user_interests[:, 0], minlength=12)
    minority = np.bincount(world.truth.user_interests[:, 1:].ravel(), minlength=12)
    assert majority[0] > minority[0]
    assert minority[-1] > 2 * majority[-1]
    assert (planted(category_exponent=0, n_items=1200).parameters.category_sizes == 100).all()


def test_item_ids_give_nothing_away(world):
    assert abs(np.corrcoef(np.arange(1000), world.truth.item_category)[0, 1]) < 0.1


def test_popularity_falls_within_a_category_but_not_too_steeply(world):
    top = np.sort(world.data.per_item)[::-1]
    assert top[0] > 4 * np.median(top)
    assert top[:10].sum() < 0.1 * top.sum()


def test_co_occurrence_tells_more_than_popularity(world):
    """Recall@10 of plain item-item cosine is several times that of the most popular items."""
    train, _, test = world.data.split((0.6, 0.2, 0.2), 0)
    together = (train.csr.T @ train.csr).toarray()
    norm = np.sqrt(np.maximum(together.diagonal(), 1))
    cosine = together / np.outer(norm, norm)
    np.fill_diagonal(cosine, 0)
    recalls = []
    for scores in (train.csr @ cosine, np.tile(train.per_item.astype(float), (train.n_users, 1))):
        scores[train.rows, train.indices] = -np.inf
        top = np.argpartition(-scores, 10, axis=1)[:, :10]
        hit = (top[test.rows] == test.indices[:, None]).any(axis=1)
        recalls.append(hit.mean())
    assert recalls[0] > 3 * recalls[1]


def test_most_users_have_minority_positives_to_test_on(world):
    test = world.data.split((0.6, 0.2, 0.2), 0).test
    minority = world.truth.item_category[test.indices] != world.truth.user_interests[test.rows, 0]
    assert len(np.unique(test.rows[minority])) > 0.9 * test.n_users


@pytest.mark.parametrize("settings", [{}, {"interests": (1, 4), "seed": 3}, {"noise": 0.0, "positives": 9}])
def test_blocks_are_the_world(settings, monkeypatch):
    monkeypatch.setattr(generator, "BLOCK_DRAWS", 2**11)  # some four to fourteen blocks
    blocks = list(planted_blocks(700, 800, **settings))
    data = planted(700, 800, **settings).data
    assert len(blocks) > 3
    assert (np.concatenate([users for users, _ in blocks]) == data.rows).all()
    assert (np.concatenate([items for _, items in blocks]) == data.indices).all()
    for (early, _), (late, _) in pairwise(blocks):
        assert early[-1] < late[0]


def test_blocks_come_one_at_a_time():
    stream = planted_blocks(10**9, 10**4, positives=20)  # far more than memory holds
    users, items = next(stream)
    assert users[0] == 0
    assert len(users) == len(items) < 10**6


def test_the_first_users_do_not_depend_on_how_many_follow():
    few, many = planted(2**14, 500, positives=6), planted(2**14 + 50, 500, positives=6)
    assert few.parameters.block_users == 2**14
    assert (many.data.indices[: few.data.n_positives] == few.data.indices).all()


def test_growing_the_arrays_loses_nothing():
    totals = []
    for seed in range(10):
        settings = {"n_users": 40, "n_items": 500, "positives": 20, "seed": seed}
        data = planted(**settings).data
        assert (data.indices == np.concatenate([items for _, items in planted_blocks(**settings)])).all()
        totals.append(data.n_positives)
    assert max(totals) > 1.03 * 40 * 20  # more than was first set aside


def test_users_may_differ_in_their_number_of_interests():
    truth = planted(interests=(1, 4)).truth
    numbers = (truth.user_interests >= 0).sum(axis=1)
    assert np.bincount(numbers)[1:].min() > 200
    assert ((truth.user_shares > 0) == (truth.user_interests >= 0)).all()
    assert truth.user_shares.sum(axis=1) == pytest.approx(np.ones(1000))
    assert (truth.user_shares[numbers == 1, 0] == 1).all()


def test_small_catalogues_have_shorter_lists_by_default():
    assert planted(500, 120).parameters.positives == 12
    assert 10 < planted(500, 120).data.per_user.mean() < 13
    assert planted(50, 30).parameters.positives == 5


def test_one_interest_one_category():
    world = planted(50, 100, n_categories=1, interests=1, positives=10)
    assert (world.truth.user_interests == 0).all()
    assert world.data.n_positives > 400


@pytest.mark.parametrize("settings", [{"n_categories": 3}, {"n_categories": 12}, {"n_categories": 1, "interests": 1}])
def test_small_worlds(settings):
    data = planted(10, 12, positives=5, **settings).data
    assert (data.n_users, data.n_items) == (10, 12)
    assert data.per_user.min() >= 1
    assert (data.csr.data == 1).all()


@pytest.mark.parametrize("n_items", [1000, 100_000])
@pytest.mark.parametrize("n_categories", [1, 12, 40])
def test_titles_are_unique_and_readable(n_items, n_categories):
    parameters = generator.PlantedParameters(1, n_items, n_categories=n_categories, interests=1)
    names = titles(PlantedCatalogue.build(parameters).slot_category, np.random.default_rng(0))
    assert len(set(names.tolist())) == n_items
    # words only, with a part number where a category has used up its words
    assert all(re.fullmatch(r"[A-Z][\w' -]*[a-zI](, Part \d+)?", name) for name in names)


def test_items_have_their_category_as_one_attribute(world):
    table, truth = world.data.items, world.truth
    for item in (0, 1, 500, 999):
        assert table.attributes.of(item) == [truth.categories[truth.item_category[item]]]
    assert (table.attributes.matrix.sum(axis=1) == 1).all()
    assert table.attributes.names.tolist() == list(truth.categories)


def test_category_names_are_unique():
    assert len(set(category_names(100))) == 100


def test_truth_is_read_only(world):
    with pytest.raises(ValueError, match="read-only"):
        world.truth.user_interests[0, 0] = 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_items": 10, "positives": 5}, "n_categories=12: 10 items cannot fill"),
        ({"n_items": 40, "positives": 40}, "positives=40: a user cannot like that many of n_items=40"),
        ({"positives": 300}, "positives=300: 65% of them must fit into a category"),
        ({"positives": 4}, "positives=4: must be a number of at least 5"),
        ({"positives": float("nan")}, "positives=nan"),
        ({"majority_share": 0}, "majority_share=0: must be a number above 0 and at most 1"),
        ({"majority_share": 1.1}, "majority_share=1.1"),
        ({"majority_share": 0.3}, "of 3 interests the majority must have more than 0.33"),
        ({"noise": 1}, "noise=1: must be a number of at least 0 and below 1"),
        ({"noise": "much"}, "noise='much'"),
        ({"focus": -0.1}, "focus=-0.1"),
        ({"popularity_exponent": 9}, "popularity_exponent=9"),
        ({"category_exponent": -1}, "category_exponent=-1"),
        ({"interests": 0}, "interests=0"),
        ({"interests": 13}, "interests=13: there are only n_categories=12"),
        ({"interests": (3, 2)}, r"interests=\(3, 2\): pass a number, or the lowest and the highest"),
        ({"interests": (1, 2, 3)}, "interests="),
        ({"interests": 2.5}, "interests=2.5"),
        ({"n_users": 0}, "n_users=0: must be a whole number of at least 1"),
        ({"n_users": 10.0}, "n_users=10.0"),
        ({"n_items": -5}, "n_items=-5"),
        ({"n_categories": True}, "n_categories=True"),
        ({"series": 0}, "series=0"),
        ({"seed": -1}, "seed=-1"),
        ({"majority_shar": 0.5}, "unknown parameter 'majority_shar' .* did you mean 'majority_share'"),
    ],
)
def test_bad_parameters(settings, message):
    for make in (planted, planted_blocks):
        with pytest.raises(ParameterError, match=message):
            make(**settings)


def test_csv_round_trip(world, tmp_path):
    path = tmp_path / "world.csv"
    world.write_csv(path)
    rows = pl.read_csv(path)
    assert rows.columns == ["user_id", "item_id", "title", "category"]
    assert Interactions.from_frame(rows).content_hash == world.data.content_hash
    items = rows.unique("item_id").sort("item_id")
    assert items["title"].to_list() == world.data.items.titles.tolist()
    assert items["category"].to_list() == [world.truth.categories[c] for c in world.truth.item_category]
    assert [file.name for file in tmp_path.iterdir()] == ["world.csv"]


def test_csv_in_pieces_is_the_same_file(world, tmp_path, monkeypatch):
    world.write_csv(tmp_path / "one.csv")
    monkeypatch.setattr("dpcml.data.synthetic.CSV_ROWS", 1000)
    world.write_csv(tmp_path / "two.csv")
    assert filecmp.cmp(tmp_path / "one.csv", tmp_path / "two.csv", shallow=False)


def test_csv_into_a_folder_is_an_error(world, tmp_path):
    with pytest.raises(DpcmlError, match="is a folder"):
        world.write_csv(tmp_path)
