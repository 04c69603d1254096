from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcml.data.items import Attributes, ItemTable, id_array, positions
from dpcml.utils.errors import DataError


@pytest.fixture
def films() -> ItemTable:
    genres = Attributes.from_sets([{"Horror", "Comedy"}, set(), {"Drama"}])
    return ItemTable(np.array([30, 10, 20]), np.array(["Alien", "Brazil", "Heat"], dtype=object), genres)


def test_attributes_of_each_item(films):
    assert [films.attributes.of(i) for i in range(3)] == [["Comedy", "Horror"], [], ["Drama"]]
    assert films.attributes.names.tolist() == ["Comedy", "Drama", "Horror"]


def test_attribute_pairs_may_repeat():
    tags = Attributes.from_pairs(np.array([1, 1, 0]), ["b", "b", "a"], n_items=2)
    assert tags.matrix.toarray().tolist() == [[True, False], [False, True]]


def test_no_attributes_at_all():
    tags = Attributes.from_sets([set(), set()])
    assert tags.matrix.shape == (2, 0)
    assert tags.take(np.array([1, -1, 0])).matrix.shape == (3, 0)


def test_take_follows_ids_and_fills_unknown_ones(films):
    taken = films.take(np.array([20, 99, 30]))
    assert taken.titles.tolist() == ["Heat", "99", "Alien"]
    assert [taken.attributes.of(i) for i in range(3)] == [["Drama"], [], ["Comedy", "Horror"]]


def test_take_by_text_finds_integers(films):
    assert films.take(np.array(["10", "x"], dtype=object)).titles.tolist() == ["Brazil", "x"]


@pytest.mark.parametrize("keep", [np.array([True, False, True]), np.array([0, 2])])
def test_select_by_mask_or_position(films, keep):
    some = films.select(keep)
    assert some.ids.tolist() == [30, 20]
    assert some.titles.tolist() == ["Alien", "Heat"]
    assert some.attributes.of(1) == ["Drama"]


def test_select_nothing(films):
    assert len(films.select(np.zeros(3, dtype=bool))) == 0


def test_title_falls_back_to_the_id():
    assert ItemTable(np.array([7])).title(0) == "7"


def test_find(films):
    assert films.find(np.array([10, 11, 30])).tolist() == [1, -1, 0]


def test_ids_titles_and_order_are_read_only(films):
    for array in (films.ids, films.titles, films.order):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


@pytest.mark.parametrize(("ids", "shown"), [([3, 5, 3], "3"), (["a", "b", "b"], "'b'")])
def test_an_id_twice_is_named(ids, shown):
    with pytest.raises(DataError, match=rf"item id {shown} occurs twice"):
        ItemTable(np.array(ids))


def test_one_title_and_one_attribute_set_per_item():
    with pytest.raises(DataError, match="1 titles for 2 items"):
        ItemTable(np.array([1, 2]), np.array(["a"], dtype=object))
    with pytest.raises(DataError, match="3 attribute sets for 2 items"):
        ItemTable(np.array([1, 2]), attributes=Attributes.from_sets([set(), set(), set()]))


@pytest.mark.parametrize("kind", [object, str])
def test_text_ids_of_any_numpy_type_are_the_same(kind):
    table = ItemTable(np.array(["b", "a", "12"], dtype=kind))
    assert table.ids.dtype == object
    assert table.find(np.array(["a", "z"])).tolist() == [1, -1]
    assert table.find(np.array([12])).tolist() == [2]


@pytest.mark.parametrize("text", ["x", "007", " 7", "+7", "7.0", "1_0", "", "\u0667", "99999999999999999999"])
def test_only_plainly_written_numbers_find_integers(text):
    assert positions(np.array([-1, 0, 7, 10]), np.array([text], dtype=object)).tolist() == [-1]


def test_negative_ids_are_not_mistaken_for_missing_ones():
    assert positions(np.array([-1, 3]), np.array(["-1", "none"])).tolist() == [0, -1]


def test_large_unsigned_ids_do_not_wrap_around():
    assert id_array(np.array([2**63 + 1], dtype=np.uint64)).tolist() == [str(2**63 + 1)]
    assert positions(np.array([-(2**63) + 1]), np.array([2**63 + 1], dtype=np.uint64)).tolist() == [-1]
    assert id_array(np.array([5], dtype=np.uint64)).dtype == np.int64


def test_nothing_is_found_in_nothing():
    assert positions(np.array([], dtype=np.int64), np.array([1, 2])).tolist() == [-1, -1]
    assert positions(np.array([1, 2]), np.array([])).tolist() == []


@given(st.lists(st.integers(-50, 50), unique=True), st.lists(st.integers(-60, 60)), st.booleans(), st.booleans())
def test_positions_agree_with_a_dictionary(ids, wanted, text_ids, text_wanted):
    have = np.array([str(i) for i in ids], dtype=object) if text_ids else np.array(ids, dtype=np.int64)
    want = np.array([str(i) for i in wanted], dtype=object) if text_wanted else np.array(wanted, dtype=np.int64)
    place = {value: i for i, value in enumerate(ids)}
    assert positions(have, want).tolist() == [place.get(value, -1) for value in wanted]
