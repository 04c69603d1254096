"""Pairs that the source holds but that are no positives: kept by every step, hidden in lists, unknown to metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from dpcml import EASE, Interactions, ItemKNN, evaluate, load
from dpcml.data.merge import merge

RATINGS = np.random.default_rng(0).integers(0, 6, (30, 20))  # 0: not rated


@pytest.fixture
def rated() -> Interactions:
    return Interactions.from_csr(RATINGS, min_rating=4)


def low(data: Interactions) -> set[tuple[Any, Any]]:
    assert data.low_rated is not None
    rows, columns = data.low_rated.tocoo().coords
    return {(data.user_ids[u], data.item_ids[i]) for u, i in zip(rows, columns, strict=True)}


def test_a_matrix_keeps_what_is_below_the_threshold(rated: Interactions) -> None:
    assert low(rated) == set(zip(*np.nonzero((RATINGS > 0) & (RATINGS < 4)), strict=True))
    assert Interactions.from_csr(RATINGS).low_rated is None


def test_a_catalogue_of_all_ids_keeps_them() -> None:
    rows = pl.DataFrame({"user": [1, 1, 2], "item": [7, 2, 2], "rating": [5, 1, 5]})
    assert low(Interactions.from_frame(rows, min_rating=4, item_space="ids")) == {(1, 2)}


def test_a_frame_keeps_what_is_below_the_threshold_of_users_and_items_that_stay() -> None:
    rows = pl.DataFrame(
        {"user": [1, 1, 1, 2, 2, 3], "item": list("abcaba"), "rating": [5, 1, 1, 5, 5, 1]},
    )
    data = Interactions.from_frame(rows, min_rating=4)
    assert data.item_ids.tolist() == ["a", "b"]  # nobody likes c
    assert data.user_ids.tolist() == [1, 2]
    assert low(data) == {(1, "b")}


def test_a_pair_with_a_high_and_a_low_rating_is_a_positive() -> None:
    rows = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "a", "b"], "rating": [5, 1, 5]})
    assert Interactions.from_frame(rows, min_rating=4).low_rated is None


def test_every_part_of_a_split_knows_them_and_hashes_do_not(rated: Interactions) -> None:
    split, plain = rated.split(), Interactions.from_csr(RATINGS * (RATINGS >= 4)).split()
    assert split.hash == plain.hash
    assert [low(part) for part in split] == [low(rated)] * 3


def test_merged_data_knows_both(rated: Interactions) -> None:
    more = Interactions.from_csr(np.array([[5, 1]]), min_rating=4, user_ids=[0], item_ids=[19, 99])
    both = merge(rated, more)
    assert low(both) == (low(rated) | {(0, 99)}) - {(0, 19)}


def test_a_shape_that_does_not_fit_is_refused(rated: Interactions) -> None:
    from dataclasses import replace

    from dpcml.utils.errors import DataError

    assert rated.low_rated is not None
    with pytest.raises(DataError, match=r"low_rated of shape \(30, 10\)"):
        replace(rated, low_rated=rated.low_rated[:, :10])


def test_lists_hide_every_known_pair_unless_they_are_asked_to_show_it(rated: Interactions, tmp_path: Any) -> None:
    fitted = ItemKNN().fit(rated)
    for model in (fitted, load(fitted.save(tmp_path / "knn"))):
        together, _ = model.recommend(rated.user_ids, n=20)
        for user in range(30):
            unknown = set(np.flatnonzero(RATINGS[user] == 0))
            assert set(model.recommend(user, n=20)[0]) == unknown  # one user and many take different ways
            assert set(together[user][together[user] >= 0]) == unknown
            assert len(model.recommend(user, n=20, exclude_seen=False)[0]) == 20


def test_metrics_do_not_know_them(rated: Interactions) -> None:
    plain = Interactions.from_csr(RATINGS * (RATINGS >= 4))
    reports = []
    for data in (rated, plain):
        train, valid, test = data.split()
        assert valid is not None
        model = EASE().fit(train)
        reports.append(evaluate(model, train, test, valid=valid).to_dict(per_user=True))
    for report in reports:
        report.pop("seconds")
    assert reports[0] == reports[1]
