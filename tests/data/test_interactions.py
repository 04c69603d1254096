from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from dpcml import Interactions, Popularity
from dpcml.data.interactions import Preparation
from dpcml.data.items import ItemTable
from dpcml.utils.errors import DataError, ParameterError, UnknownIdError

DENSE = np.array([[0, 5, 3], [0, 0, 0], [4, 0, 0]])


@pytest.fixture
def data() -> Interactions:
    return Interactions.from_csr(DENSE, user_ids=["ann", "bob", "cy"], item_ids=[10, 20, 30])


@pytest.mark.parametrize(
    "form",
    [
        np.asarray, np.ndarray.tolist, sparse.csr_array, sparse.csr_matrix, sparse.coo_array,
        sparse.coo_matrix, sparse.csc_array, sparse.lil_array, lambda m: m > 0,
        lambda m: sparse.csr_array(m > 0), lambda m: m.astype(np.float32), lambda m: m.astype(np.uint8),
    ],
)  # fmt: skip
def test_any_kind_of_matrix(form):
    data = Interactions.from_csr(form(DENSE))
    assert data.csr.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]
    assert data.content_hash == Interactions.from_csr(DENSE).content_hash


def test_the_matrix_is_not_changed():
    matrix = sparse.coo_array(([1, 0, 2], ([1, 0, 1], [0, 0, 0])), shape=(2, 2))
    Interactions.from_csr(matrix)
    assert matrix.data.tolist() == [1, 0, 2]


def test_stored_zeros_are_no_positives():
    matrix = sparse.csr_array(([0.0, 2.0], [0, 1], [0, 2]), shape=(1, 2))
    assert Interactions.from_csr(matrix).indices.tolist() == [1]
    assert Interactions.from_csr(matrix, min_rating=-1).indices.tolist() == [1]


def test_an_entry_stored_twice_counts_once():
    data = Interactions.from_csr(sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2)))
    assert data.n_positives == 1
    assert data.preparation.duplicates == 1


def test_min_rating_turns_ratings_into_positives():
    data = Interactions.from_csr(DENSE, min_rating=4)
    assert data.csr.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert data.preparation == Preparation(rows=3, below_rating=1)
    assert data.preparation.lines() == ["rows below the rating threshold: 1"]


def test_min_rating_allows_negative_entries():
    assert Interactions.from_csr([[-1, 1]], min_rating=0).indices.tolist() == [1]
    assert Interactions.from_csr([[-1, -3]], min_rating=-2).indices.tolist() == [0]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, -2]], "negative value -2.*min_rating"),
        ([[1, np.nan]], "NaN or infinite"),
        ([[1, np.inf]], "NaN or infinite"),
        ([1, 2], "1 dimensions"),
        (np.ones((2, 2, 2)), "3 dimensions"),
        (np.array([[1j]]), "complex128"),
        (np.array([["a"]]), "numbers|matrix"),
        ("likes.csv", "matrix"),
    ],
)
def test_what_is_no_matrix_of_numbers(matrix, message):
    with pytest.raises(DataError, match=message):
        Interactions.from_csr(matrix)


def test_min_rating_must_be_a_number():
    with pytest.raises(ParameterError, match="min_rating=nan"):
        Interactions.from_csr(DENSE, min_rating=float("nan"))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a"], r"user_ids has shape \(1,\).*\(3,\)"),
        (["a", "b", "a"], "user_ids holds 'a' more"),
        ([1, 1, 2], "holds 1 more"),
    ],
)
def test_ids_must_fit_and_be_unique(ids, message):
    with pytest.raises(DataError, match=message):
        Interactions.from_csr(DENSE, user_ids=ids)


def test_items_give_ids_and_titles_to_columns():
    films = ItemTable(np.array(["x", "y", "z"]), np.array(["X", "Y", "Z"], dtype=object))
    assert Interactions.from_csr(DENSE, items=films).item_ids.tolist() == ["x", "y", "z"]
    some = Interactions.from_csr(DENSE, item_ids=["z", "q", "x"], items=films)
    assert some.items.titles.tolist() == ["Z", "q", "X"]
    with pytest.raises(DataError, match="item_ids has shape"):
        Interactions.from_csr(DENSE, items=films.select(np.array([0, 1])))


def test_later_changes_to_the_callers_ids_do_not_matter():
    ids = np.array([5, 6, 7])
    data = Interactions.from_csr(DENSE, user_ids=ids)
    ids[0] = 99
    assert data.user_ids.tolist() == [5, 6, 7]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 3)])
def test_nothing_at_all(shape):
    data = Interactions.from_csr(np.zeros(shape))
    assert (data.n_users, data.n_items, data.n_positives) == (*shape, 0)
    assert data.csr.shape == shape
    assert len(data.content_hash) == 64
    assert data.per_item.tolist() == [0] * shape[1]


def test_counts(data):
    assert data.per_user.tolist() == [2, 0, 1]
    assert data.per_item.tolist() == [1, 1, 1]
    assert data.rows.tolist() == [0, 0, 2]
    assert data.of(0).tolist() == [1, 2]
    assert data.item_id_space == 31
    assert repr(data) == "Interactions(3 users, 3 items, 3 positives)"


def test_item_id_space_of_text_ids_is_their_number():
    assert Interactions.from_csr(DENSE, item_ids=["a", "b", "c"]).item_id_space == 3


def test_the_latest_of_a_repeated_pair_counts():
    table = ItemTable(np.arange(2))
    users, items, times = np.array([0, 0, 1, 0]), np.array([1, 1, 0, 1]), np.array([5.0, 9.0, 1.0, 7.0])
    data = Interactions.from_codes(users, items, np.arange(2), table, timestamps=times)
    assert data.indices.tolist() == [1, 0]
    assert data.timestamps.tolist() == [9.0, 1.0]
    assert data.preparation.duplicates == 2


@pytest.mark.parametrize(("users", "items"), [([2], [0]), ([-1], [0]), ([0], [3]), ([0], [-1])])
def test_positions_must_exist(users, items):
    with pytest.raises(DataError, match="position"):
        Interactions.from_codes(np.array(users), np.array(items), np.arange(2), ItemTable(np.arange(3)))


def test_constructor_rejects_arrays_that_do_not_fit():
    table = ItemTable(np.arange(3))
    with pytest.raises(DataError, match="indptr"):
        Interactions(np.array([0, 1]), np.array([0, 1]), np.arange(1), table)
    with pytest.raises(DataError, match="1 timestamps for 2 positives"):
        Interactions(np.array([0, 2]), np.array([0, 1]), np.arange(1), table, timestamps=np.ones(1))


def test_pandas_and_polars_frames_give_the_same():
    columns = {
        "user_id": ["bob", "ann", "bob", "ann"],
        "item_id": [3, 5, 3, 1],
        "rating": [4.0, 5.0, 4.0, 1.0],
    }
    one = Interactions.from_frame(pd.DataFrame(columns))
    two = Interactions.from_frame(pl.DataFrame(columns))
    assert one.content_hash == two.content_hash
    assert one.user_ids.tolist() == ["ann", "bob"]
    assert one.item_ids.tolist() == [1, 3, 5]
    assert one.csr.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert one.preparation == two.preparation


def test_frame_and_matrix_give_the_same():
    rows = pl.DataFrame({"user_id": [0, 1, 1], "item_id": [1, 0, 1]})
    assert Interactions.from_frame(rows).content_hash == Interactions.from_csr([[0, 1], [1, 1]]).content_hash


def test_frozen(data):
    with pytest.raises(FrozenInstanceError):
        data.indices = np.zeros(3)
    for array in (data.indptr, data.indices, data.user_ids, data.item_ids, data.csr.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]


def test_timestamps_are_read_only():
    table = ItemTable(np.arange(1))
    data = Interactions(np.array([0, 1]), np.array([0]), np.arange(1), table, timestamps=np.ones(1))
    with pytest.raises(ValueError, match="read-only"):
        data.timestamps[0] = 2


def test_csr_can_be_computed_with(data):
    assert (data.csr.T @ data.csr).toarray().diagonal().tolist() == [1, 1, 1]
    assert data.csr.sum() == 3


def test_content_hash_is_the_same_on_every_machine(data):
    users, items = np.array(["ann", "bob", "cy"]), np.array([10, 20, 30], dtype=np.uint8)
    same = Interactions.from_csr(sparse.csr_matrix(DENSE), user_ids=users, item_ids=items)
    assert data.content_hash == same.content_hash
    assert data.content_hash == "b8572783b8c1615116c0df9d2c2220740ac6914dbd72bef4d76494d8e7f66f96"


@pytest.mark.parametrize(
    "other",
    [
        Interactions.from_csr(DENSE.T, user_ids=["ann", "bob", "cy"], item_ids=[10, 20, 30]),
        Interactions.from_csr(DENSE, user_ids=["ann", "bob", "di"], item_ids=[10, 20, 30]),
        Interactions.from_csr(DENSE, user_ids=["ann", "bob", "cy"], item_ids=[10, 20, 31]),
        Interactions.from_csr(DENSE, user_ids=["ann", "bob", "cy"], item_ids=["10", "20", "30"]),
        Interactions.from_csr(np.eye(3), user_ids=["ann", "bob", "cy"], item_ids=[10, 20, 30]),
    ],
)
def test_content_hash_notices_changes(data, other):
    assert data.content_hash != other.content_hash


def test_rows_and_columns_of_ids(data):
    assert data.user_rows(["cy", "ann", "cy"]).tolist() == [2, 0, 2]
    assert data.user_rows("bob").tolist() == [1]
    assert data.user_rows(np.array(["bob"])).tolist() == [1]
    assert data.item_columns([30, 10]).tolist() == [2, 0]
    assert data.item_columns(["20"]).tolist() == [1]
    assert data.item_columns(20).tolist() == [1]
    assert data.item_columns([]).tolist() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.user_rows(["ann", "anne"]), "unknown user 'anne': .* 3 users .* did you mean 'ann'"),
        (lambda d: d.user_rows([7]), "unknown user '7': .*ids look like ann, bob, cy"),
        (lambda d: d.item_columns([10, 11]), "unknown item '11': .*ids look like 10, 20, 30"),
        (lambda d: d.item_columns(["x"]), "unknown item 'x'"),
        (lambda d: d.item_columns([-1]), "unknown item '-1'"),
        (lambda d: d.item_columns([10.5]), "unknown item '10.5'"),
    ],
)
def test_unknown_ids_are_named(data, call, message):
    with pytest.raises(UnknownIdError, match=message):
        call(data)


def test_ids_of_empty_data_are_unknown():
    with pytest.raises(UnknownIdError, match="unknown user 'ann'"):
        Interactions.from_csr(np.zeros((0, 2))).user_rows(["ann"])


@given(hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=7)), st.data())
def test_select_keeps_users_without_positives(matrix, draw):
    data = Interactions.from_csr(matrix)
    keep = draw.draw(hnp.arrays(bool, data.n_positives))
    expected = matrix.copy()
    expected[data.rows[~keep], data.indices[~keep]] = False
    assert (data.select(keep).csr.toarray() > 0).tolist() == expected.tolist()


@pytest.mark.parametrize("empty", [[0], [5], [2, 3], [0, 1, 4, 5], [0, 1, 2, 3, 4, 5]])
def test_select_all_with_empty_rows(empty):
    matrix = np.ones((6, 3), dtype=bool)
    matrix[empty] = False
    data = Interactions.from_csr(matrix)
    assert data.select(np.ones(data.n_positives, dtype=bool)).content_hash == data.content_hash
    assert data.select(np.zeros(data.n_positives, dtype=bool)).indptr.tolist() == [0] * 7


def test_select_wants_one_truth_value_per_positive(data):
    for keep in (np.array([0, 1, 1]), np.array([True])):
        with pytest.raises(ParameterError, match="pass 3 truth values"):
            data.select(keep)


def test_with_items_finds_titles_by_id(data):
    films = ItemTable(np.array([30, 40, 10]), np.array(["Heat", "Ran", "Alien"], dtype=object))
    named = data.with_items(films)
    assert [named.items.title(i) for i in range(3)] == ["Alien", "20", "Heat"]
    assert named.catalogue_size == 3
    assert named.content_hash == data.content_hash


def test_who_likes_what_is_turned_once_and_shared():
    data = Interactions.from_csr(DENSE)
    assert data.by_item.toarray().tolist() == data.csr.toarray().T.tolist()
    assert data.by_item is data.by_item
    assert np.shares_memory(data.by_item.data, data.csr.data)
    assert not data.by_item.indices.flags.writeable


@pytest.mark.parametrize(
    ("indptr", "indices", "message"),
    [
        ([0, 1, 2], [0, 7], "position 7 in a row of 3"),
        ([0, 1, 2], [-1, 0], "position -1"),
        ([0, 5, 2], [0, 1], "rows do not cover"),
        ([1, 1, 2], [0, 1], "rows do not cover"),
        (np.array([0, 5, 2], np.uint64), [0, 1], "rows do not cover"),
        ([0, 2, 2], [1, 0], "must ascend"),
        ([0, 2, 2], [1, 1], "must ascend"),
        ([0, 1, 2], [0.0, 1.0], "indices of type float64"),
        ([0, 1, 2], [[0, 1]], "indices of type int64 and shape"),
    ],
)
def test_positions_are_checked_when_it_is_made(indptr, indices, message):
    """Finding 17: compiled kernels read and wrote where such positions point."""
    with pytest.raises(DataError, match=message):
        Interactions(np.array(indptr), np.array(indices), np.arange(2), ItemTable(np.arange(3)))


RAGGED, SQUARE = [[1, 2], [3]], [[1, 2], [3, 4]]


@pytest.mark.parametrize("ids", [RAGGED, SQUARE, [[[1]]]])
def test_ragged_and_nested_ids_are_refused_in_our_words(ids):
    """Finding 18: NumPy's error came through, or a strange answer."""
    data = Interactions.from_csr(np.eye(5))
    for ask in (
        data.user_rows,
        data.item_columns,
        ItemTable,
        lambda ids: Interactions.from_csr(np.eye(2), user_ids=ids),
        lambda ids: Interactions.from_csr(np.eye(2), item_ids=ids),
        lambda ids: Interactions(data.indptr, data.indices, ids, data.items),
        Popularity().fit(data).recommend,
        lambda ids: Popularity().fit(data).recommend(1, items=ids),
        Popularity().fit(data).similar_users,
        Popularity().fit(data).score,
    ):
        with pytest.raises((DataError, ParameterError)):
            ask(ids)


@pytest.mark.parametrize("least", ["x", "4", None.__class__, [4], float("nan"), True])
def test_a_threshold_that_is_no_number_is_refused_in_our_words(least):
    with pytest.raises(ParameterError, match=r"min_rating=.*must be a finite number"):
        Interactions.from_csr(np.eye(2), min_rating=least)
    with pytest.raises(ParameterError, match=r"min_rating=.*must be a finite number"):
        Interactions.from_frame(pl.DataFrame({"user": [1], "item": [2], "rating": [3]}), min_rating=least)
