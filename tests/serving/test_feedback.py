"""Feedback over HTTP: it changes lists at once, and is still there after a kill."""

import errno
import os
import signal

import httpx
import numpy as np
import pytest

from dpcml import DPCML, Interactions, ItemKNN, load, save
from dpcml.feedback import Feedback, FeedbackJournal, read_journal
from dpcml.retrieval.request import UserBatch
from dpcml.serving.feedback import FeedbackStore
from dpcml.serving.model_store import LoadedModel
from dpcml.serving.settings import ServeSettings
from dpcml.utils.errors import DataError
from dpcml.workflow import update_saved

API = "/api/v1"
TOKEN = "a-token-for-the-tests"


@pytest.fixture
def taking(models, serve, tmp_path):
    return serve(models["dpcml"], ServeSettings(feedback=tmp_path / "journal", compare=models["itemknn"]))


def ids(client, user, **options):
    answer = client.post(f"{API}/recommend", json={"user": user, **options})
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["items"]]


def say(client, user, item, action):
    answer = client.post(f"{API}/feedback", json={"user": user, "item": item, "action": action})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_like_changes_the_list_through_fold_in(taking, models):
    model = load(models["dpcml"])
    first = ids(taking, 7)[0]
    assert say(taking, 7, first, "like") == {"user": 7, "likes": 1, "dislikes": 0, "hides": 0}
    history = [*model.train_.item_ids[model.train_.of(7)].tolist(), first]
    expected = model.recommend_new(history)[0].tolist()
    assert first not in expected
    assert ids(taking, 7) == expected
    assert ids(taking, "7") == expected, "the same person by the text of the id"
    lists = taking.post(f"{API}/recommend/batch", json={"users": [7, 8]}).json()["lists"]
    assert [one["id"] for one in lists[0]["items"]] == expected
    assert [one["id"] for one in lists[1]["items"]] == model.recommend(8)[0].tolist()
    found = taking.get(f"{API}/history?user=7").json()["items"]
    assert sorted(one["id"] for one in found) == sorted(history)
    groups = taking.get(f"{API}/interests?user=7").json()["interests"]
    assert sorted(one["id"] for group in groups for one in group["items"]) == sorted(history)


def test_a_hidden_item_goes_and_the_others_stay(taking):
    before = ids(taking, 9, n=20)
    say(taking, 9, before[1], "hide")
    assert ids(taking, 9, n=19) == [before[0], *before[2:]]
    say(taking, 9, before[1], "clear")
    assert ids(taking, 9, n=20) == before


def test_a_dislike_leaves_the_history(taking, models):
    model = load(models["dpcml"])
    history = model.train_.item_ids[model.train_.of(11)].tolist()
    say(taking, 11, history[0], "dislike")
    found = ids(taking, 11, n=100)
    assert history[0] not in found
    assert found == [one for one in model.recommend_new(history[1:], n=101)[0].tolist() if one != history[0]][:100]


def test_somebody_new_gets_lists_after_a_like(taking, models):
    body, nothing = {"user": 1000}, {"items": [], "unknown": {"users": [1000]}}
    assert taking.post(f"{API}/recommend", json=body).json() == nothing
    say(taking, 1000, 3, "hide")
    assert taking.post(f"{API}/recommend", json=body).json() == nothing
    say(taking, 1000, 5, "like")
    expected = load(models["dpcml"]).recommend_new([5], n=11)[0].tolist()
    assert ids(taking, 1000) == [one for one in expected if one != 3][:10]


@pytest.mark.parametrize("action", ["hide", "dislike"])
def test_somebody_new_without_a_like_is_never_shown_what_they_do_not_want(taking, action):
    popular = ids(taking, 1001, on_unknown="popular")
    say(taking, 1001, popular[0], action)
    assert ids(taking, 1001, on_unknown="popular", n=9) == popular[1:]
    assert ids(taking, 1002, on_unknown="popular") == popular


def test_somebody_new_without_a_like_is_one_of_the_unknown_users_of_a_batch(taking, models):
    model = load(models["dpcml"])
    popular = ids(taking, 1001, on_unknown="popular")
    say(taking, 1001, popular[0], "hide")
    say(taking, 8, int(model.recommend(8)[0][0]), "hide")
    body = {"users": [1001, 0, 1003, 8], "n": 9}
    answer = taking.post(f"{API}/recommend/batch", json=body).json()
    assert [one["user"] for one in answer["lists"]] == [0, 8]
    assert answer["unknown"] == {"users": [1001, 1003]}
    answer = taking.post(f"{API}/recommend/batch", json={**body, "on_unknown": "popular"}).json()
    lists = {one["user"]: [item["id"] for item in one["items"]] for one in answer["lists"]}
    assert lists == {
        1001: popular[1:],
        0: model.recommend(0, n=9)[0].tolist(),
        1003: popular[:9],
        8: model.recommend(8)[0][1:].tolist(),
    }
    assert [one.get("popular", False) for one in answer["lists"]] == [True, False, True, False]
    assert answer["unknown"] == {"users": [1001, 1003]}
    answer = taking.post(f"{API}/recommend/batch", json={"users": [0, 1001], "on_unknown": "error"})
    assert (answer.status_code, answer.json()["error"]) == (404, "unknown_id")


@pytest.fixture
def store(tmp_path):
    return FeedbackStore(FeedbackJournal(tmp_path / "journal"))


def test_what_a_request_has_read_does_not_change_under_it(store):
    before = store.add(Feedback(7, 5, "like"))
    after = store.add(Feedback(7, 6, "like"))
    assert (before.ids("like"), after.ids("like")) == ([5], [5, 6])
    assert store.person(7) is after


def test_vectors_belong_to_the_words_that_they_were_made_of(store, models, monkeypatch):
    """Somebody likes an item while a list of theirs is made; the next list knows it."""
    loaded = LoadedModel.load(models["dpcml"])
    person, of_items = store.add(Feedback("new", 5, "like")), UserBatch.of_items

    def meanwhile(*given):
        store.add(Feedback("new", 6, "like"))
        return of_items(*given)

    with monkeypatch.context() as patch:
        patch.setattr(UserBatch, "of_items", meanwhile)
        first = store.batch(loaded, "new", person)
    second = store.batch(loaded, "new", store.person("new"))
    for batch, history in ((first, [5]), (second, [5, 6])):
        assert loaded.model.train_.item_ids[batch.liked(0)].tolist() == history
        np.testing.assert_array_equal(batch.vectors[0], loaded.model.fold_in(history))


def test_what_the_disk_did_not_keep_counts_no_more(store, monkeypatch):
    store.add(Feedback("ann", 5, "like"))

    def refuse(number):
        assert store.person("ann").ids("like") == [5, 6], "it is in the file for a moment"
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        with pytest.raises(DataError, match="cannot be written"):
            store.add(Feedback("ann", 6, "like"))
    assert store.add(Feedback("bob", 7, "like")).ids("like") == [7]
    assert store.person("ann").ids("like") == [5]


@pytest.mark.parametrize("name", ["blend", "plain blend"])
def test_a_blend_follows_it_at_once(models, serve, tmp_path, name):
    client, model = serve(models[name], ServeSettings(feedback=tmp_path / "journal")), load(models[name])
    first, second = ids(client, 7)[:2]
    say(client, 7, first, "like")
    say(client, 7, second, "hide")
    history = [*model.train_.item_ids[model.train_.of(7)].tolist(), first]
    assert ids(client, 7) == model.recommend_new(history, exclude=[second])[0].tolist()


def test_a_model_without_vectors_follows_it_too(taking, models):
    model = load(models["itemknn"])
    say(taking, 13, 5, "like")
    history = np.union1d(model.train_.of(13), [5]).tolist()
    answer = taking.post(f"{API}/recommend?model=compare", json={"user": 13})
    assert [one["id"] for one in answer.json()["items"]] == model.recommend_new(history)[0].tolist()


def test_it_is_off_unless_asked_for(client):
    answer = client.post(f"{API}/feedback", json={"user": 7, "item": 5, "action": "like"})
    assert (answer.status_code, answer.json()["error"]) == (404, "feedback_off")
    assert client.get(f"{API}/model").json()["feedback"] is False


def test_it_is_behind_the_token(models, serve, tmp_path):
    client = serve(models["itemknn"], ServeSettings(token=TOKEN, feedback=tmp_path / "journal"))
    body = {"user": 7, "item": 5, "action": "like"}
    assert client.post(f"{API}/feedback", json=body).status_code == 401
    answer = client.post(f"{API}/feedback", json=body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert len(read_journal(tmp_path / "journal")[0]) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"user": 7, "item": "nothing", "action": "like"}, 404),
        ({"user": 7, "item": 5, "action": "love"}, 422),
        ({"user": 7, "action": "like"}, 422),
        ({"user": "", "item": 5, "action": "like"}, 422),
        ({"user": "zoe", "item": 5, "action": "like"}, 422),
        ({"user": "007", "item": 5, "action": "hide"}, 422),
        ({"user": 10**30, "item": 5, "action": "like"}, 422),
        ({"user": 7, "item": 5, "action": "like", "more": 1}, 422),
    ],
)
def test_bad_feedback_is_told_why_and_not_kept(taking, tmp_path, body, status):
    answer = taking.post(f"{API}/feedback", json=body)
    assert answer.status_code == status
    assert answer.json()["reason"]
    assert read_journal(tmp_path / "journal") == ([], 0)


@pytest.mark.parametrize("user", ["a\nb", "a\x7f"])
def test_ids_with_control_characters_are_refused(world, serve, tmp_path, user):
    named = Interactions.from_csr(world.csr, user_ids=[f"user {k}" for k in range(world.n_users)])
    client = serve(save(ItemKNN().fit(named), tmp_path / "named"), ServeSettings(feedback=tmp_path / "journal"))
    say(client, "zoë", 5, "like")
    answer = client.post(f"{API}/feedback", json={"user": user, "item": 5, "action": "like"})
    assert answer.status_code == 422
    assert "control characters" in answer.json()["reason"]
    assert len(read_journal(tmp_path / "journal")[0]) == 1


def test_what_is_accepted_can_be_learned(taking, models, tmp_path):
    new = 10**6
    answer = taking.post(f"{API}/feedback", json={"user": "zoe", "item": 5, "action": "like"})
    assert "user ids of this model are whole numbers" in answer.json()["reason"]
    for user in (new, str(new + 1), -1):
        say(taking, user, 5, "like")
    summary = update_saved(models["dpcml"], tmp_path / "journal", tmp_path / "newer", epochs=0)
    assert (summary["new_users"], summary["foreign"]) == (3, 0)


def test_a_full_journal_is_told_so(models, serve, tmp_path):
    client = serve(models["itemknn"], ServeSettings(feedback=tmp_path / "journal", feedback_bytes=200))
    answers = [client.post(f"{API}/feedback", json={"user": k, "item": 5, "action": "like"}) for k in range(5)]
    assert answers[0].status_code == 200
    assert (answers[-1].status_code, answers[-1].json()["error"]) == (507, "journal_full")


def test_a_full_disk_is_told_so_and_nothing_is_kept(taking, tmp_path, monkeypatch):
    def refuse(number):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = ids(taking, 7)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", refuse)
        answer = taking.post(f"{API}/feedback", json={"user": 7, "item": before[0], "action": "hide"})
    problem = answer.json()
    assert (answer.status_code, problem["error"]) == (507, "not_written")
    assert "No space left on device" in problem["reason"]
    assert "make room" in problem["hint"]
    assert read_journal(tmp_path / "journal") == ([], 0)
    assert ids(taking, 7) == before
    assert say(taking, 7, before[0], "hide")["hides"] == 1


def test_it_survives_a_kill_and_reaches_all_workers(models, start, tmp_path):
    options = ["--feedback", str(tmp_path / "journal"), "--workers", "2"]
    server = start(models["dpcml"], *options)
    server.until(lambda: server.client.get("/ready").json()["workers"] == 2)
    first = ids(server.client, 7)[0]
    say(server.client, 7, first, "hide")

    def found(base):
        with httpx.Client(base_url=base, timeout=120) as client:  # a new connection: any worker
            return ids(client, 7)

    expected = found(server.client.base_url)
    assert first not in expected
    assert all(found(server.client.base_url) == expected for _ in range(10))
    server.process.send_signal(signal.SIGKILL)
    server.end()
    again = start(models["dpcml"], *options)
    assert ids(again.client, 7) == expected


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model of ten items."""
    likes = np.random.default_rng(0).random((12, 10)) < 0.4
    settings = {"n_vectors": 2, "dim": 4, "epochs": 2, "n_candidates": 2}
    return save(DPCML(**settings).fit(Interactions.from_csr(likes)), tmp_path_factory.mktemp("tiny") / "model")


def test_somebody_who_likes_every_item_gets_an_empty_list_and_others_get_theirs(tiny, serve, tmp_path):
    client = serve(tiny, ServeSettings(feedback=tmp_path / "journal"))
    for user in (0, 99):
        for item in range(10):
            say(client, user, item, "like")
    lists = client.post(f"{API}/recommend/batch", json={"users": [0, 1, 99]}).json()["lists"]
    model = load(tiny)
    assert [[one["id"] for one in each["items"]] for each in lists] == [[], model.recommend(1)[0].tolist(), []]
    assert len(ids(client, 99, exclude_seen=False)) == 10
    answer = client.post(f"{API}/recommend", json={"user": 0})
    assert (answer.status_code, answer.json()["error"]) == (422, "nothing_left")


def test_an_update_leaves_out_users_who_like_every_item(tiny, tmp_path):
    journal = FeedbackJournal(tmp_path / "journal")
    for user in (0, 99):
        for item in range(10):
            journal.append(Feedback(user, item, "like"))
    with (
        pytest.warns(UserWarning, match=r"like all 10 items \(0, 99\)"),
        pytest.raises(DataError, match="holds no like that"),
    ):
        update_saved(tiny, tmp_path / "journal", tmp_path / "new", epochs=1)
    unknown = next(item for item in range(10) if item not in load(tiny).train_.of(3))
    journal.append(Feedback(3, unknown, "like"))
    with pytest.warns(UserWarning, match=r"like all 10 items \(0, 99\)"):
        found = update_saved(tiny, tmp_path / "journal", tmp_path / "new", epochs=1)
    assert (found["likes"], found["new_users"]) == (1, 0)
    updated = load(tmp_path / "new").train_
    assert unknown in updated.of(3)
    assert updated.of(0).tolist() == load(tiny).train_.of(0).tolist()


def test_an_update_keeps_what_people_do_not_want(tiny, tmp_path):
    model, journal = load(tiny), FeedbackJournal(tmp_path / "journal")
    unknown = {user: np.setdiff1d(np.arange(10), model.train_.of(user)).tolist() for user in (1, 3)}
    for user, item, action in (
        (3, unknown[3][0], "like"), (3, unknown[3][1], "hide"), (1, unknown[1][0], "dislike"),
        (99, 4, "like"), (99, 5, "dislike"), (98, 4, "hide"), (1, int(model.train_.of(1)[0]), "dislike"),
    ):  # fmt: skip
        journal.append(Feedback(user, item, action))
    found = update_saved(tiny, tmp_path / "journal", tmp_path / "new", epochs=1)
    assert (found["likes"], found["new_users"]) == (2, 1)
    new = load(tmp_path / "new")
    assert set(new.recommend(3, n=10)[0]) == set(unknown[3][2:])
    assert set(new.recommend(1, n=10)[0]) == set(unknown[1][1:])
    assert set(new.recommend(99, n=10)[0]) == set(range(10)) - {4, 5}
    assert new.train_.of(1).tolist() == model.train_.of(1).tolist()
    assert 98 not in new.train_.user_ids
