"""Weights of positives: read, kept through every step, and turned into confidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from dpcml import DataError, Interactions, ItemKNN, ParameterError, load, load_dataset
from dpcml.data.merge import merge
from dpcml.data.readers import read

ROWS = {"user": ["ann", "ann", "bob", "ann"], "item": ["tea", "rum", "tea", "tea"], "hours": [1.5, 0, 7, 2]}


def weights(data: Interactions) -> dict[tuple[str, str], float]:
    pairs = zip(data.user_ids[data.rows], data.item_ids[data.indices], strict=True)
    return dict(zip(pairs, data.weights.tolist(), strict=True))


HOURS = {("ann", "rum"): 0.0, ("ann", "tea"): 3.5, ("bob", "tea"): 7.0}


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "no header"])
def test_a_column_is_read_and_repeated_pairs_add_up(tmp_path, kind):
    frame = pl.DataFrame(ROWS)
    if kind == "frame":
        data = Interactions.from_frame(frame, weight="hours")
    elif kind == "parquet":
        frame.write_parquet(tmp_path / "a.parquet")
        data = read(tmp_path / "a.parquet", weight="hours")
    else:
        frame.write_csv(tmp_path / "a.csv", include_header=kind == "csv")
        data = read(tmp_path / "a.csv", weight="hours" if kind == "csv" else "3", rating="")
    assert weights(data) == HOURS
    assert data.preparation.duplicates == 1


def test_entries_of_a_matrix_may_be_weights():
    plays = np.array([[0, 3, 1], [40, 0, 2]])
    data = Interactions.from_csr(plays, weights=True, min_rating=2)
    assert data.weights.tolist() == [3, 40, 2]
    assert data.low_rated.nnz == 1
    assert Interactions.from_csr(plays).weights is None


def test_ratings_may_be_weights_too(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("user,item,rating\n1,7,5\n1,8,2\n2,7,4\n2,8,5\n")
    pl.read_csv(file).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("1,7,5,10\n1,8,2,10\n2,7,4,10\n2,8,5,10\n")
    for name, column in (("a.csv", "rating"), ("a.parquet", "rating"), ("b.csv", "3")):
        data = read(tmp_path / name, weight=column, min_rating=4)
        assert data.weights.tolist() == [5, 4, 5]
        assert data.low_rated.nnz == 1
    assert data.timestamps.tolist() == [10, 10, 10], "the other columns are still found by position"


def test_no_column_is_taken_for_weights_unasked(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("user,item,rating,time,weight\n1,7,5,0,3\n")
    assert read(file).weights is None
    file.write_text("1,7,5,0,3\n2,7,5,0,3\n")
    assert read(file).weights is None


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ("user,item,hours\n1,7,1\n1,8,-2\n", {"weight": "hours"}, "a.csv, line 3: weight '-2': must be at least 0"),
        ("user,item,hours\n1,7,1\n1,8,much\n", {"weight": "hours"}, "a.csv, line 3: weight 'much'"),
        ("user,item,hours\n1,7,1\n", {"weight": "plays"}, "no column 'plays' for the weight"),
        ("1::7::5::9\n", {"weight": "hours"}, "weight='hours': files of this format have 'rating' only"),
        ("3 7 8 9\n2 7 8\n", {"weight": "hours", "format": "count-then-ids"}, "take no such option"),
    ],
)
def test_bad_weights_are_named(tmp_path, rows, options, said):
    file = tmp_path / "a.csv"
    file.write_text(rows)
    with pytest.raises((DataError, ParameterError), match=said):
        read(file, **options)


def test_steam_has_the_hours_of_each_purchase(tmp_path):
    file = tmp_path / "steam.csv"
    lines = ["1,Dota 2,purchase,1.0,0", "1,Dota 2,play,9.5,0", "1,Portal,purchase,1.0,0", "2,Portal,purchase,1.0,0"]
    lines += ["1,Dota 2,purchase,1.0,0", "2,Portal,play,0.5,0", "2,Portal,play,0.25,0"]
    file.write_text("\n".join(lines) + "\n")
    data = read(file, weight="hours")
    assert weights(data) == {(1, "Dota 2"): 9.5, (1, "Portal"): 0.0, (2, "Portal"): 0.75}
    played = read(file, weight="hours", format="steam-play")
    assert weights(played) == {(1, "Dota 2"): 9.5, (2, "Portal"): 0.75}


def test_movielens_has_its_ratings(tmp_path):
    (tmp_path / "ratings.dat").write_text("1::31::5::9\n1::32::2::9\n2::31::4::9\n")
    assert read(tmp_path / "ratings.dat", weight="rating").weights.tolist() == [5, 2, 4]


@pytest.fixture(scope="module")
def plays() -> Interactions:
    rng = np.random.default_rng(0)
    likes = Interactions.from_csr(rng.random((20, 15)) < 0.5)
    return replace(likes, weights=1000.0 * likes.rows + likes.indices)  # the weight names its pair


def test_weights_stay_with_their_pairs(plays, tmp_path):
    split = plays.split((0.6, 0.2, 0.2), 1)
    core = Interactions.from_codes(
        plays.rows, plays.indices, plays.user_ids, plays.items, weights=plays.weights
    ).select(plays.indices != 3)
    joined = merge(plays.select(plays.rows < 9), plays.select(plays.rows >= 9))
    saved = load(ItemKNN().fit(plays).save(tmp_path / "m")).train_
    for data in (*split, core, joined, saved):
        assert (data.weights == 1000.0 * data.rows + data.indices).all()
    assert sum(part.n_positives for part in split) == plays.n_positives
    assert merge(plays, replace(plays, weights=None)).weights is None


def test_confidence_grows_with_the_logarithm_and_has_mean_1(plays):
    found = plays.confidence
    expected = 1 + np.log1p(plays.weights)
    np.testing.assert_allclose(found.data, expected / expected.mean(), rtol=1e-6)
    assert (found.indices == plays.indices).all()
    assert (plays.confidence.toarray() > 0).sum() == plays.n_positives
    plain = replace(plays, weights=None)
    assert plain.confidence is plain.csr


def test_hashes_know_weights(plays):
    plain, other = replace(plays, weights=None), replace(plays, weights=plays.weights + 1)
    assert len({data.content_hash for data in (plays, plain, other)}) == 3


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_are_checked(plays, bad):
    with pytest.raises(DataError, match="weights must be finite and at least 0"):
        replace(plays, weights=np.full(plays.n_positives, bad))
    with pytest.raises(DataError, match="pass one each"):
        replace(plays, weights=np.ones(3))


def test_named_sets_take_weights(tmp_path, monkeypatch):
    folder = tmp_path / "steam-200k"
    folder.mkdir()
    rows = [f'{user},"game {item}",{what},{hours},0' for user in (1, 2) for item in range(5)
            for what, hours in (("purchase", 1.0), ("play", user + item))]  # fmt: skip
    (folder / "steam-200k.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("DPCML_DATA", str(tmp_path))
    assert load_dataset("steam-200k", weight="hours").weights.tolist() == [1, 2, 3, 4, 5, 2, 3, 4, 5, 6]
