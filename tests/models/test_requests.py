"""What a request for lists may say: unknown users and items, items to leave out, lists as a frame."""

from __future__ import annotations

import numpy as np
import pytest

from dpcml import EASE, Popularity
from dpcml.utils.errors import DataError, NothingLeftError, ParameterError, UnknownIdError


@pytest.fixture(scope="module")
def model(blocks):
    return EASE().fit(blocks)


def popular(model, n=3):
    train = model.train_
    return train.item_ids[np.argsort(-train.per_item, kind="stable")[:n]].tolist()


def test_unknown_users(model):
    with pytest.raises(UnknownIdError, match="unknown user 'nobody'"):
        model.recommend(["user-1", "nobody"])
    with pytest.raises(ParameterError, match="on_unknown='ignore'"):
        model.recommend("user-1", on_unknown="ignore")
    plain = model.recommend(["user-1", "user-40"], n=3)[0].tolist()
    users = ["user-1", "nobody", "user-40"]
    assert model.recommend(users, n=3, on_unknown="skip")[0].tolist() == plain
    ids, scores, reasons = model.recommend(users, n=3, on_unknown="popular", explain=True)
    assert ids.tolist() == [plain[0], popular(model), plain[1]]
    assert scores[1].tolist() == sorted(model.train_.per_item, reverse=True)[:3]
    assert reasons[1][0].text == f"popular: {model.train_.per_item.max()} users like it"
    assert "because" in reasons[2][0].text


def test_one_unknown_user(model):
    assert model.recommend("nobody", n=3, on_unknown="popular")[0].tolist() == popular(model)
    assert [len(part) for part in model.recommend("nobody", on_unknown="skip", explain=True)] == [0, 0, 0]


def test_an_empty_history_gets_popular_items_and_says_so(model):
    with pytest.warns(UserWarning, match="popular items"):
        ids, _, reasons = model.recommend_new([], n=3, explain=True)
    assert ids.tolist() == popular(model)
    assert reasons[0].text.startswith("popular")
    with pytest.warns(UserWarning, match="1 of 2 histories"):
        both = model.recommend_new([[], [101, 102]], n=3)[0]
    assert both.tolist() == [popular(model), model.recommend_new([101, 102], n=3)[0].tolist()]


def test_unknown_items_of_a_history(model):
    plain = model.recommend_new([101, 102], n=3)[0].tolist()
    for way in ("skip", "popular"):
        assert model.recommend_new([101, 9, 102], n=3, on_unknown=way)[0].tolist() == plain
    with pytest.raises(UnknownIdError, match=r"unknown item '9'.*on_unknown='popular' .* gives popular items"):
        model.recommend_new([9], on_unknown="skip")
    with pytest.warns(UserWarning, match="popular items"):
        assert model.recommend_new([9], n=3, on_unknown="popular")[0].tolist() == popular(model)


def test_excluded_items_are_left_out_for_everybody(model):
    first = model.recommend("user-1", n=1)[0].tolist()
    out = [*first, *popular(model)]
    users = ["user-1", "nobody"]
    ids, _ = model.recommend(users, n=40, exclude=out, on_unknown="popular", exclude_seen=False)
    assert not set(ids.ravel()) & set(out)
    with pytest.raises(UnknownIdError, match="unknown item '9'"):
        model.recommend("user-1", exclude=[9])
    assert len(model.recommend("user-1", exclude=[9], items=[130, 9], on_unknown="skip")[0]) == 1
    with pytest.raises(NothingLeftError, match="exclude"):
        model.recommend("user-1", exclude=model.train_.item_ids)


@pytest.mark.parametrize("way", ["error", "skip"])
def test_items_may_be_one_id_or_a_set_and_what_has_no_order_or_end_is_refused(model, way):
    first, second = model.recommend("user-1", n=2)[0].tolist()
    for out in (first, {first}, {first: 1}.keys()):
        assert model.recommend("user-1", n=1, exclude=out, on_unknown=way)[0].tolist() == [second]
    assert model.recommend("user-1", n=5, items={second}, on_unknown=way)[0].tolist() == [second]
    for wrong in ({first: 1}, iter([first])):
        with pytest.raises(DataError, match="pass one id, or a list of ids"):
            model.recommend("user-1", exclude=wrong, on_unknown=way)
    with pytest.raises(DataError, match="a set of user ids"):
        model.recommend({"user-1"}, on_unknown=way)


def test_lists_as_a_frame(model):
    frame = model.recommend(["user-1", "nobody", "user-2"], n=2, on_unknown="skip", as_frame=True, explain=True)
    assert frame.columns == ["user_id", "rank", "item_id", "score", "interest", "share", "reason"]
    assert frame["user_id"].to_list() == ["user-1"] * 2 + ["user-2"] * 2
    assert frame["item_id"].to_list() == model.recommend(["user-1", "user-2"], n=2)[0].ravel().tolist()
    assert model.recommend("user-1", n=2, as_frame=True)["rank"].to_list() == [1, 2]
    assert model.recommend("nobody", on_unknown="skip", as_frame=True).height == 0
    assert model.recommend_new([[101], [130]], n=1, as_frame=True)["history"].to_list() == [0, 1]


def test_ids_of_another_kind_are_those_of_the_data():
    model = Popularity().fit(np.eye(3))
    assert model.recommend(["2", "7"], n=1, on_unknown="popular", as_frame=True)["user_id"].to_list() == [2, 7]
    assert model.recommend(["2", "x"], n=1, on_unknown="popular", as_frame=True)["user_id"].to_list() == ["2", "x"]
