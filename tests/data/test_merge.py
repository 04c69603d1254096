import numpy as np
import pytest

from dpcml import Interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.merge import merge
from dpcml.utils.errors import DataError


def test_old_rows_and_columns_keep_their_places():
    rng = np.random.default_rng(0)
    whole = rng.random((30, 20)) < 0.3
    users, items = rng.permutation(30), rng.permutation(20)
    old = Interactions.from_csr(
        whole[:20, :12] & (rng.random((20, 12)) < 0.7), user_ids=users[:20], item_ids=items[:12]
    )
    new = Interactions.from_csr(whole[::-1, ::-1], user_ids=users[::-1], item_ids=items[::-1])
    both = merge(old, new)
    assert both.user_ids[:20].tolist() == old.user_ids.tolist()
    assert both.item_ids[:12].tolist() == old.item_ids.tolist()
    found = both.csr.toarray()[both.user_rows(users)][:, both.item_columns(items)]
    assert (found == whole).all()


def test_titles_and_attributes_of_both():
    titles = np.array(["Alien", "Heat"], dtype=object)
    films = ItemTable(["a", "h"], titles, Attributes.from_sets([{"Horror"}, {"Crime"}]))
    later = ItemTable(["h", "e"], np.array(["HEAT", "Emma"], dtype=object), Attributes.from_sets([{"x"}, {"Drama"}]))
    both = merge(Interactions.from_csr(np.eye(2), items=films), Interactions.from_csr(np.eye(2), items=later))
    assert [both.items.title(k) for k in range(3)] == ["Alien", "Heat", "Emma"]
    assert [both.items.attributes.of(k) for k in range(3)] == [["Horror"], ["Crime"], ["Drama"]]
    plain = merge(Interactions.from_csr(np.eye(2), items=films), Interactions.from_csr(np.eye(2), item_ids=["h", "z"]))
    assert [plain.items.title(k) for k in range(3)] == ["Alien", "Heat", "z"]
    assert plain.items.attributes.of(2) == []


def test_ids_are_of_one_kind():
    numbers, texts = Interactions.from_csr(np.eye(2)), Interactions.from_csr(np.eye(2), user_ids=["0", "7"])
    assert merge(numbers, texts).user_ids.tolist() == [0, 1, 7]
    assert merge(texts, numbers).user_ids.tolist() == ["0", "7", "1"]


@pytest.mark.parametrize("text", ["ann", "\u00b2", "007", "9" * 20])
def test_texts_among_numbers_are_refused(text):
    later = Interactions.from_csr(np.eye(2), user_ids=["0", text])
    with pytest.raises(DataError, match=f"user '{text}' is a text, but the known user ids are numbers"):
        merge(Interactions.from_csr(np.eye(2)), later)
