"""Similar items and users: of one, of several, as arrays and as frames; interests as frames."""

import numpy as np
import pytest

from dpcml import DPCML, EASE, Blend, Interactions, ItemKNN, UnknownIdError


@pytest.fixture(scope="module")
def model():
    liked = np.random.default_rng(0).random((15, 12)) < 0.4
    data = Interactions.from_csr(liked, user_ids=[f"u{k}" for k in range(15)], item_ids=[f"i{k}" for k in range(12)])
    return ItemKNN(k=11, shrink=0.0).fit(data)


@pytest.mark.parametrize("kind", ["items", "users"])
def test_several_are_the_rows_of_each(model, kind):
    ask, prefix = getattr(model, f"similar_{kind}"), kind[0]
    ids, values = ask([f"{prefix}3", f"{prefix}5"], n=4)
    assert ids.shape == values.shape == (2, 4)
    for row, one in enumerate((f"{prefix}3", f"{prefix}5")):
        alone, similarity = ask(one, n=4)
        assert alone.tolist() == ids[row].tolist()
        assert (similarity == values[row]).all()
        assert one not in alone
    assert ask([], n=4)[0].size == 0
    with pytest.raises(UnknownIdError):
        ask([f"{prefix}3", "nobody"])


@pytest.mark.parametrize("kind", ["item", "user"])
def test_frames_hold_the_same(model, kind):
    ask, wanted = getattr(model, f"similar_{kind}s"), [f"{kind[0]}3", f"{kind[0]}5"]
    frame = ask(wanted, n=3, as_frame=True)
    assert frame.columns == [f"{kind}_id", "rank", "similar_id", "similarity"]
    assert frame["rank"].to_list() == [1, 2, 3] * 2
    assert frame["similar_id"].to_list() == ask(wanted, n=3)[0].ravel().tolist()
    assert ask(wanted[0], n=3, as_frame=True).equals(frame.head(3))


def test_old_keywords_work_with_a_warning(model):
    with pytest.warns(FutureWarning, match="item is deprecated, use items"):
        model.similar_items(item="i3", n=1)


def test_interests_as_a_frame():
    likes = np.kron(np.eye(2), np.ones((6, 5)))
    likes[0, 4] = 0
    small = DPCML(n_vectors=2, dim=8, epochs=3, n_candidates=3, n_threads=1)
    for model in (small.fit(likes), Blend([small, EASE()]).fit(likes)):
        listed, frame = model.interests(0), model.interests(0, as_frame=True)
        assert frame.columns == ["number", "share", "name", "items", "categories"]
        assert frame["items"].to_list() == [one.items.tolist() for one in listed]
        assert frame["share"].to_list() == [one.share for one in listed]
        assert model.interests_new([0, 1], as_frame=True)["share"].sum() == pytest.approx(1)
