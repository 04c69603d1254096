"""From rows to interactions: frames of many kinds, bad values, the rules and the k-core filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcml import Interactions
from dpcml.data.interactions import as_interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.prepare import Rules, from_frame, k_core, prepare
from dpcml.utils.errors import DataError, ParameterError


def pairs(data: Interactions) -> set[tuple[Any, Any]]:
    return {(data.user_ids[u], data.item_ids[i]) for u, i in zip(data.rows, data.indices, strict=True)}


FRAMES: dict[str, Any] = {
    "polars": pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"]}),
    "pandas": pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"]}),
    "objects": pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"]}, dtype=object),
    "nullable": pd.DataFrame(
        {"user": pd.array([1, 1, 2], dtype="Int64"), "item": pd.array(["a", "b", "a"], dtype="string")}
    ),
    "categories": pd.DataFrame({"user": [1, 1, 2], "item": pd.Categorical(["a", "b", "a"])}),
    "whole floats": pd.DataFrame({"user": [1.0, 1.0, 2.0], "item": ["a", "b", "a"]}),
    "an odd index": pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"]}, index=[9, 9, 7]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind: str) -> None:
    data = from_frame(FRAMES[kind])
    assert pairs(data) == {(1, "a"), (1, "b"), (2, "a")}
    assert data.user_ids.dtype == np.int64


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_has_the_same_content(kind: str) -> None:
    assert from_frame(FRAMES[kind]).content_hash == from_frame(FRAMES["polars"]).content_hash


def test_columns_named_by_numbers() -> None:
    assert pairs(from_frame(pd.DataFrame({0: [1], 1: [2]}), user="0", item="1")) == {(1, 2)}


def test_large_nullable_integers_stay_exact() -> None:
    frame = pd.DataFrame({"user": pd.array([2**62 + 1], dtype="Int64"), "item": [1]})
    assert pairs(from_frame(frame)) == {(2**62 + 1, 1)}


@pytest.mark.parametrize(
    "users",
    [
        pd.array([1, None], dtype="Int64"),
        [1.0, float("nan")],
        ["a", None],
        ["a", float("nan")],
        pd.array(["a", None], dtype="string"),
        pd.Categorical(["a", None]),
    ],
)
def test_missing_ids_in_frames(users: Any) -> None:
    with pytest.raises(DataError, match="row 1: the user id is missing"):
        from_frame(pd.DataFrame({"user": users, "item": [1, 2]}))


@pytest.mark.parametrize("ratings", [[5.0, float("nan")], [5.0, float("inf")], pd.array([5, None], dtype="Int64")])
def test_bad_ratings_in_frames(ratings: Any) -> None:
    with pytest.raises(DataError, match=r"row 1: rating .*must be a finite number"):
        from_frame(pd.DataFrame({"user": [1, 2], "item": [1, 2], "rating": ratings}))


def test_times_of_pandas() -> None:
    times = pd.to_datetime(["1970-01-01 00:00:02", "1970-01-01 00:00:01"])
    for kind in (times, times.tz_localize("UTC"), times.tz_localize("UTC").tz_convert("Asia/Tokyo")):
        data = from_frame(pd.DataFrame({"user": [1, 1], "item": [1, 2], "time": kind}))
        assert data.timestamps is not None
        assert data.timestamps.tolist() == [2.0, 1.0]


def test_missing_times_of_pandas() -> None:
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2], "time": pd.to_datetime(["1970-01-01", None])})
    with pytest.raises(DataError, match="row 1: time None"):
        from_frame(frame)


def test_negative_ids() -> None:
    with pytest.raises(DataError, match="row 0: item id '-2'"):
        from_frame(pl.DataFrame({"user": [1], "item": [-2]}))


@pytest.mark.parametrize("values", [[object()], [b"\xff"], ["\ud800"], [[1]], [2**70]])
def test_values_that_cannot_be_ids(values: list[object]) -> None:
    with pytest.raises(DataError, match=r"user ids? .*must|column 'user' of the frame cannot be used"):
        from_frame(pd.DataFrame({"user": pd.Series(values, dtype=object), "item": [1]}))


def test_what_is_no_frame() -> None:
    with pytest.raises(DataError, match="a list is no frame: pass a pandas or polars DataFrame"):
        from_frame([1, 2])
    with pytest.raises(DataError, match="the frame cannot be used"):
        from_frame(pd.DataFrame([[1, 2]], columns=["user", "user"]))


def test_no_rows() -> None:
    with pytest.raises(DataError, match="the frame: no rows"):
        from_frame(pl.DataFrame({"user": [], "item": []}))


def rows(*triples: tuple[int, int, float]) -> pl.DataFrame:
    return pl.DataFrame(triples, schema=["user", "item", "rating"], orient="row")


def test_threshold() -> None:
    data = from_frame(rows((1, 1, 4), (1, 2, 3.9), (2, 2, 1)), min_rating=4)
    assert pairs(data) == {(1, 1)}
    done = data.preparation
    assert (done.rows, done.below_rating, done.users_dropped, done.items_dropped) == (3, 2, 1, 1)


def test_without_threshold_every_row_counts_and_a_note_says_so() -> None:
    data = from_frame(rows((1, 1, 4), (1, 2, -1)))
    assert data.n_positives == 2
    assert "ratings from -1 to 4: every row counts" in data.preparation.notes[-1]
    assert len(from_frame(rows((1, 1, 1), (1, 2, 1))).preparation.notes) == 1


def test_duplicates_collapse_after_the_threshold() -> None:
    data = from_frame(rows((1, 1, 5), (1, 1, 5), (1, 1, 2)), min_rating=4)
    assert (data.n_positives, data.preparation.duplicates, data.preparation.below_rating) == (1, 1, 1)


def test_of_duplicates_the_latest_time_counts() -> None:
    data = from_frame(pl.DataFrame({"user": [1, 1], "item": [1, 1], "time": [9, 5]}))
    assert data.timestamps is not None
    assert data.timestamps.tolist() == [9.0]


def test_min_user_counts_distinct_items() -> None:
    data = from_frame(rows((1, 1, 1), (1, 1, 1), (2, 1, 1), (2, 2, 1)), min_user_interactions=2)
    assert pairs(data) == {(2, 1), (2, 2)}
    assert data.preparation.users_dropped == 1


def test_all_users_filtered_out() -> None:
    with pytest.raises(
        DataError, match="all 2 users are filtered out by min_user_interactions=3: the most active user has 2"
    ):
        from_frame(rows((1, 1, 1), (2, 1, 1), (2, 2, 1)), min_user_interactions=3)
    with pytest.raises(DataError, match=r"all 2 users are filtered out by core=2: .* lower it"):
        from_frame(rows((1, 1, 1), (2, 2, 1)), core=2)
    with pytest.raises(DataError, match="no rating reaches min_rating=2; lower it"):
        from_frame(rows((1, 1, 1)), min_rating=2)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_core_is_what_peeling_by_hand_leaves(links: list[tuple[int, int]], core: int, user: int, item: int) -> None:
    left = set(links)
    while True:
        users = [user for user, _ in left]
        items = [item for _, item in left]
        kept = {(u, i) for u, i in left if users.count(u) >= max(core, user) and items.count(i) >= max(core, item)}
        if kept == left:
            break
        left = kept
    frame = pl.DataFrame(links, schema=["user", "item"], orient="row")
    rules = {"core": core, "min_user_interactions": user, "min_item_interactions": item}
    if left:
        assert pairs(from_frame(frame, **rules)) == left
    else:
        with pytest.raises(DataError, match="filtered out"):
            from_frame(frame, **rules)


def test_titles_follow_the_items() -> None:
    table = ItemTable(
        np.array([7, 8, 9]),
        np.array(["Tea", "Rum", "Gin"], dtype=object),
        Attributes.from_sets([{"hot"}, {"cold"}, set()]),
    )
    data = from_frame(pl.DataFrame({"user": [1, 1], "item": [9, 8]}), items=table)
    assert [data.items.title(k) for k in range(2)] == ["Rum", "Gin"]
    assert data.catalogue_size == 3


def test_titles_of_other_items() -> None:
    with pytest.raises(
        DataError, match="the frame: no item is in the catalogue given: ids here look like a; there like 7"
    ):
        from_frame(pl.DataFrame({"user": [1], "item": ["a"]}), items=ItemTable(np.array([7])))


def test_source_and_place_are_named() -> None:
    table = pl.DataFrame({"user": ["1", "x"], "item": ["1", ""]})
    with pytest.raises(DataError, match=r"^likes\.csv, line 3: the item id is missing"):
        prepare(table, lambda row: f"likes.csv, line {row + 2}", Rules())
    with pytest.raises(DataError, match=r"^likes\.csv: min_rating=4, but there is no rating column"):
        prepare(table.head(1), str, Rules(min_rating=4), source="likes.csv")


@pytest.mark.parametrize(
    "options",
    [
        {"min_user_interactions": 0},
        {"min_user_interactions": 2.5},
        {"core": True},
        {"core": "3"},
        {"min_rating": float("nan")},
        {"min_rating": "4"},
    ],
)
def test_bad_rules(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        Rules(**options)


def test_rules_take_numbers_of_numpy() -> None:
    assert Rules(min_user_interactions=np.int64(5), min_rating=np.float32(4)).min_user_interactions == 5


def test_unknown_rule() -> None:
    with pytest.raises(ParameterError, match="unknown option 'kcore': did you mean 'core'"):
        Rules.of({"kcore": 5})


def test_nothing_to_begin_with() -> None:
    with pytest.raises(DataError, match="there are no positives"):
        k_core(Interactions.from_csr(np.zeros((2, 2))), Rules())


def test_an_item_nobody_has_goes() -> None:
    data = k_core(Interactions.from_csr(np.array([[1, 0], [1, 0]])), Rules())
    assert data.item_ids.tolist() == [0]
    assert data.preparation.items_dropped == 1


def test_items_with_too_few_interactions_go_too() -> None:
    data = Interactions.from_csr(np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]]))

    with pytest.raises(DataError, match="filtered out by min_user_interactions=3 and min_item_interactions=2"):
        k_core(data, Rules(min_user_interactions=3, min_item_interactions=2))
    assert k_core(data, Rules(min_item_interactions=2)).item_ids.tolist() == [1, 2]


def test_old_names_of_rules_work_with_a_warning() -> None:
    frame = rows((1, 1, 1), (2, 1, 1), (2, 2, 1))
    with pytest.warns(FutureWarning, match="min_user is deprecated, use min_user_interactions"):
        assert from_frame(frame, min_user=2).n_users == 1
    with (
        pytest.warns(FutureWarning, match="min_item is deprecated"),
        pytest.raises(ParameterError, match="unknown option 'x'"),
    ):
        Rules.of({"min_item": 2, "x": 1})


def test_a_catalogue_of_all_ids_has_items_without_a_positive():
    rows = pl.DataFrame({"user": [1, 1, 2], "item": [7, 2, 2]})
    data = from_frame(rows, item_space="ids")
    assert (data.n_items, data.n_positives) == (8, 3)
    assert data.item_ids.tolist() == list(range(8))
    assert pairs(data) == pairs(from_frame(rows))


def test_ids_that_are_no_numbers_or_too_large_make_no_catalogue():
    with pytest.raises(DataError, match="whole numbers"):
        from_frame(pl.DataFrame({"user": ["a"], "item": ["b"]}), item_space="ids")
    with pytest.raises(DataError, match="the limit is"):
        from_frame(pl.DataFrame({"user": [1], "item": [10**12]}), item_space="ids")
    with pytest.raises(ParameterError, match="item_space"):
        Rules(item_space="all")


@pytest.mark.parametrize("library", ["polars", "lazy", "pandas"])
def test_titles_and_genres_come_from_a_frame_too(library):
    likes = pl.DataFrame({"who": ["ann", "bob"], "what": [7, 8], "unread": ["x", "y"]})
    films = pl.DataFrame(
        {"what": [8, 7, 9], "title": ["Emma", "Heat", "Alien"], "genres": ["Romance", "Action|Crime", ""]}
    )
    turn = {"polars": lambda frame: frame, "lazy": pl.DataFrame.lazy, "pandas": pl.DataFrame.to_pandas}[library]
    data = Interactions.from_frame(turn(likes), user="who", item="what", items=turn(films))
    assert [data.items.title(k) for k in range(2)] == ["Heat", "Emma"]
    assert data.items.attributes.of(0) == ["Action", "Crime"]
    assert data.catalogue_size == 3
    nested = films.with_columns(genres=pl.Series([["Romance"], ["Action", "Crime"], []]))
    assert Interactions.from_frame(likes, user="who", item="what", items=nested).items.attributes.of(0) == [
        "Action",
        "Crime",
    ]


def test_of_a_lazy_frame_only_what_is_needed_is_read():
    def fail(column):
        raise AssertionError("nobody asked for this column")

    lazy = pl.LazyFrame({"user": [1, 2], "item": [5, 5], "text": ["a", "b"]})
    lazy = lazy.with_columns(text=pl.col("text").map_batches(fail, return_dtype=pl.String))
    assert Interactions.from_frame(lazy).n_positives == 2
    assert as_interactions(lazy).n_positives == 2


def test_frames_of_items_that_cannot_be_used_are_named():
    likes = pl.DataFrame({"user": [1], "item": [5]})
    with pytest.raises(DataError, match="the frame of items: which column holds the item id"):
        Interactions.from_frame(likes, items=pl.DataFrame({"a": [5]}))
    with pytest.raises(DataError, match="row 1: item id 5 occurs twice"):
        Interactions.from_frame(likes, items=pl.DataFrame({"id": [5, 5]}))
    with pytest.raises(DataError, match="a dict is no frame"):
        Interactions.from_frame(likes, items={"id": [5]})


def test_text_ids_is_a_switch() -> None:
    with pytest.raises(ParameterError, match=r"text_ids=array.*: must be True or False"):
        Rules.of({"text_ids": np.zeros(3)})
