"""Feedback over HTTP: it changes lists at once, and is still there after a kill."""

import signal

import httpx
import numpy as np
import pytest

from dpcml import load
from dpcml.feedback import read_journal
from dpcml.serving.settings import ServeSettings

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
    body, nothing = {"user": "somebody new"}, {"items": [], "unknown": {"users": ["somebody new"]}}
    assert taking.post(f"{API}/recommend", json=body).json() == nothing
    say(taking, "somebody new", 3, "hide")
    assert taking.post(f"{API}/recommend", json=body).json() == nothing
    say(taking, "somebody new", 5, "like")
    expected = load(models["dpcml"]).recommend_new([5], n=11)[0].tolist()
    assert ids(taking, "somebody new") == [one for one in expected if one != 3][:10]


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
        ({"user": 7, "item": 5, "action": "like", "more": 1}, 422),
    ],
)
def test_bad_feedback_is_told_why_and_not_kept(taking, tmp_path, body, status):
    answer = taking.post(f"{API}/feedback", json=body)
    assert answer.status_code == status
    assert answer.json()["reason"]
    assert read_journal(tmp_path / "journal") == ([], 0)


def test_a_full_journal_is_told_so(models, serve, tmp_path):
    client = serve(models["itemknn"], ServeSettings(feedback=tmp_path / "journal", feedback_bytes=200))
    answers = [client.post(f"{API}/feedback", json={"user": k, "item": 5, "action": "like"}) for k in range(5)]
    assert answers[0].status_code == 200
    assert (answers[-1].status_code, answers[-1].json()["error"]) == (507, "journal_full")


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
