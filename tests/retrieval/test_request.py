import numpy as np
import pytest

from dpcml import Interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.retrieval.request import allowed_items, likes_of, with_title
from dpcml.utils.errors import ParameterError, UnknownIdError


@pytest.fixture
def films():
    titles = np.array(["Alien", "Aliens", "Heat", "Emma"], dtype=object)
    genres = Attributes.from_sets([{"Horror", "Sci-Fi"}, {"Sci-Fi"}, {"Crime"}, set()])
    return Interactions.from_csr(np.eye(4), items=ItemTable([1, 2, 3, 4], titles, genres))


@pytest.mark.parametrize(
    ("items", "where", "left"),
    [
        (None, None, [1, 2, 3, 4]),
        ([4, "1"], None, [1, 4]),
        (None, {"category": "sci-fi"}, [1, 2]),
        (None, {"genre": ["Crime", "Horror"]}, [1, 3]),
        (None, {"tag": "Sci-Fi", "title": "aliens"}, [2]),
        ([1, 3], {"category": ("Sci-Fi", "Crime")}, [1, 3]),
        (None, {}, [1, 2, 3, 4]),
        (None, {"title": 4}, []),
    ],
)
def test_what_is_left(films, items, where, left):
    if not left:
        with pytest.raises(ParameterError, match="no item is left to choose from; widen the choice"):
            allowed_items(films, items, where)
        return
    assert films.item_ids[allowed_items(films, items, where)].tolist() == left


@pytest.mark.parametrize(
    ("items", "where", "message"),
    [
        (None, {"category": "Horor"}, "no item has the category 'Horor': did you mean 'Horror'?"),
        (None, {"catgory": "Horror"}, "unknown item filter 'catgory': did you mean 'category'?"),
        (None, {"category": []}, "name at least one value"),
        (None, "Horror", "pass a mapping"),
        ([], None, "items: no item is left"),
    ],
)
def test_bad_filters_say_what_is_wrong(films, items, where, message):
    with pytest.raises(ParameterError, match=message):
        allowed_items(films, items, where)


@pytest.mark.parametrize("words", [["straße"], ["."], [""], ["a", "STRASSE"], ["\ud800"], ["?"], ["qqq", "é"]])
def test_titles_are_searched_for_plain_texts_without_case(words):
    titles = ["Die STRASSE", "Amélie", "What?", "a.b", "\ud800", "", "Ulysses"]
    data = Interactions.from_csr(np.eye(7), items=ItemTable(np.arange(7), np.array(titles, dtype=object)))
    expected = [any(word.casefold() in title.casefold() for word in words) for title in titles]
    assert with_title(data, words).tolist() == expected


def test_titles_are_prepared_once(films, monkeypatch):
    """A request with many words is one pass over titles that are kept without case."""
    calls = []
    title = ItemTable.title
    monkeypatch.setattr(ItemTable, "title", lambda table, item: calls.append(item) or title(table, item))
    for _ in range(3):
        assert with_title(films, [f"alien {k}" for k in range(100)] + ["heat"]).tolist() == [False, False, True, False]
    assert calls == [0, 1, 2, 3]


def test_unknown_ids_and_missing_categories(films):
    with pytest.raises(UnknownIdError, match="unknown item '9'"):
        allowed_items(films, [9], None)
    with pytest.raises(ParameterError, match="these items have no categories"):
        allowed_items(Interactions.from_csr(np.eye(2)), None, {"category": "War"})


@pytest.fixture(scope="module")
def books():
    return Interactions.from_csr(np.eye(4), item_ids=["dune", "emma", "it", "ulysses"])


@pytest.mark.parametrize(
    "history", [["it", "dune"], ("dune", "it", "dune"), np.array(["it", "dune"]), {"it", "dune"}, iter(["it", "dune"])]
)
def test_one_history_in_any_form(books, history):
    likes, single = likes_of(history, books)
    assert single
    assert likes.toarray().tolist() == [[1, 0, 1, 0]]
    assert likes.dtype == np.float32


@pytest.mark.parametrize(
    "histories",
    [[["emma"], ["it", "dune"]], (np.array(["emma"]), ("it", "dune")), np.array([["emma"] * 2, ["it", "dune"]])],
)
def test_several_histories_in_any_form(books, histories):
    likes, single = likes_of(histories, books)
    assert not single
    assert likes.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0]]


def test_a_sequence_of_one_history_is_several(books):
    likes, single = likes_of([["emma"]], books)
    assert not single
    assert likes.shape == (1, 4)


@pytest.mark.parametrize("histories", ["emma", b"emma", 3, None, {"emma": 1}, np.array("emma")])
def test_what_is_no_sequence_is_refused(books, histories):
    with pytest.raises(ParameterError, match="pass a sequence of item ids"):
        likes_of(histories, books)


def test_ids_and_sequences_do_not_mix(books):
    with pytest.raises(ParameterError, match="history 1 is 'it', others are sequences"):
        likes_of([["emma"], "it"], books)
