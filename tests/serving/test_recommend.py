"""Recommendations over HTTP are those of the library, and bad requests are told why."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpcml import ItemKNN, load, save
from dpcml.retrieval.ann import AnnIndex
from dpcml.serving.settings import ServeSettings

API = "/api/v1"


@pytest.fixture(scope="module")
def model(models):
    return load(models["dpcml"])


def ids(answer):
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_one_user_gets_what_the_library_gives(client, model, mix):
    answer = client.post(f"{API}/recommend", json={"user": 7, "n": 8, "mix": mix, "explain": True})
    expected, scores, reasons = model.recommend(7, n=8, mix=mix, explain=True)
    assert ids(answer) == expected.tolist()
    items = answer.json()["items"]
    np.testing.assert_allclose([item["score"] for item in items], scores, atol=1e-5)
    assert [item["reason"]["text"] for item in items] == [reason.text for reason in reasons]
    assert items[0]["title"] == model.train_.items.title(items[0]["id"])
    assert items[0]["categories"] == model.train_.items.attributes.of(items[0]["id"])
    assert [one["id"] for one in items[0]["reason"]["liked"]] == list(reasons[0].liked)


def test_lists_are_mixed_by_what_is_asked_for(client, model):
    users, history = list(range(40)), model.train_.of(9).tolist()
    wanted = {by: model.recommend(users, mix=1.0, mix_by=by)[0].tolist() for by in ("categories", "interests")}
    assert wanted["categories"] != wanted["interests"]
    for by, lists in wanted.items():
        options = {"mix": 1, "mix_by": by}
        assert [ids(client.post(f"{API}/recommend", json={"user": user, **options})) for user in users] == lists
        batch = client.post(f"{API}/recommend/batch", json={"users": users, **options}).json()["lists"]
        assert [[item["id"] for item in one["items"]] for one in batch] == lists
        new = client.post(f"{API}/recommend/new", json={"history": history, **options})
        assert ids(new) == model.recommend_new(history, mix=1.0, mix_by=by)[0].tolist()
    assert ids(client.post(f"{API}/recommend", json={"user": 3, "mix": 1})) == wanted["categories"][3]


def test_ids_may_be_texts(client):
    body = {"n": 3}
    assert ids(client.post(f"{API}/recommend", json={**body, "user": "7"})) == ids(
        client.post(f"{API}/recommend", json={**body, "user": 7})
    )


def test_many_users_get_their_lists_in_order(client, model):
    users = [5, 3, 5, 11]
    answer = client.post(f"{API}/recommend/batch", json={"users": users, "n": 4, "explain": True})
    lists = answer.json()["lists"]
    assert [one["user"] for one in lists] == users
    for one in lists:
        assert [item["id"] for item in one["items"]] == model.recommend(one["user"], n=4)[0].tolist()
        assert all(item["reason"]["text"].startswith("because") for item in one["items"])


def test_lists_of_different_length_are_not_padded(client, model):
    seen = model.train_.item_ids[model.train_.of(0)][:3].tolist()
    unseen = [item for item in range(120) if item not in model.train_.of(0).tolist()][:1]
    body = {"users": [0, 1], "items": seen + unseen, "n": 4}
    first, second = client.post(f"{API}/recommend/batch", json=body).json()["lists"]
    assert [item["id"] for item in first["items"]] == unseen
    assert all(item["id"] in seen + unseen for item in second["items"])


def test_somebody_new_gets_what_the_library_gives(client, model):
    history = model.train_.of(9).tolist()
    answer = client.post(f"{API}/recommend/new", json={"history": history, "n": 6, "mix": 0.5})
    assert ids(answer) == model.recommend_new(history, n=6, mix=0.5)[0].tolist()
    assert not set(ids(answer)) & set(history)


def test_only_what_fits_is_recommended(client):
    answer = client.post(f"{API}/recommend", json={"user": 7, "where": {"category": "Comedy"}})
    assert all("Comedy" in item["categories"] for item in answer.json()["items"])
    answer = client.post(f"{API}/recommend", json={"user": 7, "items": [1, 2, 3], "exclude_seen": False})
    assert sorted(ids(answer)) == [1, 2, 3]


def test_lists_come_from_an_index_where_one_is_asked_for(models, model, serve, monkeypatch, tmp_path):
    pytest.importorskip("usearch")
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path))
    exact, asked, search = model.recommend(7)[0].tolist(), [], AnnIndex.best
    monkeypatch.setattr(AnnIndex, "best", lambda self, *given: asked.append(1) or search(self, *given))
    monkeypatch.setattr(type(model), "ann_from", 50)
    client = serve(models["dpcml"], ServeSettings(index=True))
    assert len(list((tmp_path / "indexes").iterdir())) == 1
    asked.clear()
    assert ids(client.post(f"{API}/recommend", json={"user": 7})) == exact
    assert asked


def test_a_second_model_answers_by_name(client, models):
    answer = client.post(f"{API}/recommend?model=compare", json={"user": 7, "explain": True})
    assert ids(answer) == load(models["itemknn"]).recommend(7)[0].tolist()
    assert answer.json()["items"][0]["reason"]["interest"] is None
    assert answer.headers["x-dpcml-model"] != client.post(f"{API}/recommend", json={"user": 7}).headers["x-dpcml-model"]


def test_similar_items_and_users(client, model):
    answer = client.get(f"{API}/similar/items", params={"item": 5, "n": 4})
    assert ids(answer) == model.similar_items(5, n=4)[0].tolist()
    answer = client.get(f"{API}/similar/users", params={"user": "5", "n": 4})
    assert [user["id"] for user in answer.json()["users"]] == model.similar_users(5, n=4)[0].tolist()


def test_similar_items_of_several(client, model):
    answer = client.post(f"{API}/similar/items", json={"items": [5, "no", 9], "n": 4}).json()
    assert [one["item"] for one in answer["lists"]] == [5, 9]
    for one in answer["lists"]:
        best, similarities = model.similar_items(one["item"], n=4)
        assert [item["id"] for item in one["items"]] == best.tolist()
        assert [item["similarity"] for item in one["items"]] == pytest.approx(similarities.tolist())
    assert answer["unknown"] == {"items": ["no"]}
    assert "unknown" not in client.post(f"{API}/similar/items", json={"items": [5]}).json()


def test_popular_items_say_so(client, model):
    body = {"users": [7, "nobody"], "on_unknown": "popular", "explain": True, "n": 3}
    known, nobody = client.post(f"{API}/recommend/batch", json=body).json()["lists"]
    assert ("popular" in known, nobody["popular"]) == (False, True)
    assert nobody["items"][0]["reason"]["text"] == f"popular: {model.train_.per_item.max()} users like it"
    answer = client.post(f"{API}/recommend/new", json={"history": [], "n": 3, "explain": True}).json()
    assert answer["items"] == nobody["items"]
    assert answer["popular"] is True


@pytest.mark.parametrize(
    "options",
    [{}, {"explain": True}, {"mix": 0.7}, {"mix": 0.7, "explain": True, "n": 5}, {"mix": 0.7, "mix_by": "categories"}],
)
@pytest.mark.parametrize("name", ["dpcml", "blend"])
def test_lists_that_are_made_together_are_those_of_each(models, serve, name, options):
    client, model = serve(models[name]), load(models[name])
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda user: client.post(f"{API}/recommend", json={"user": user, **options}), range(24))
        )
    for user, answer in enumerate(answers):
        best, _, *reasons = model.recommend(user, **options)
        assert ids(answer) == best.tolist()
        if reasons:
            assert [one["reason"]["text"] for one in answer.json()["items"]] == [one.text for one in reasons[0]]


BAD = {
    "unknown similar": ("similar/items", {"items": ["no", "none"]}, 404, "unknown item 'no'"),
    "one unknown similar": ("similar/items", {"items": [1, "no"], "on_unknown": "error"}, 404, "unknown item 'no'"),
    "no similar": ("similar/items", {"items": []}, 422, "items: "),
    "too many similar": ("similar/items", {"items": [1] * 200, "n": 1000}, 422, "at most 100,000"),
    "bad similar": ("similar/items", {"items": [1], "on_unknown": "popular"}, 422, "on_unknown: "),
    "unknown interests": ("interests/new", {"history": ["no"]}, 404, "unknown item 'no'"),
    "one unknown interest": ("interests/new", {"history": [1, "no"], "on_unknown": "error"}, 404, "unknown item 'no'"),
    "unknown user": ("recommend", {"user": 10**6, "on_unknown": "error"}, 404, "unknown user '1000000'"),
    "one unknown user": ("recommend/batch", {"users": [1, "x"], "on_unknown": "error"}, 404, "unknown user 'x'"),
    "unknown item": ("recommend", {"user": 1, "items": [1, -7], "on_unknown": "error"}, 404, "unknown item '-7'"),
    "unknown items": ("recommend", {"user": 1, "items": [-7]}, 404, "unknown item '-7'"),
    "unknown excluded": ("recommend", {"user": 1, "exclude": [-7], "on_unknown": "error"}, 404, "unknown item '-7'"),
    "bad on_unknown": ("recommend", {"user": 1, "on_unknown": "ignore"}, 422, "on_unknown: "),
    "unknown liked": ("recommend/new", {"history": ["no"]}, 404, "unknown item 'no'"),
    "huge id": ("recommend", {"user": 10**30, "on_unknown": "error"}, 404, "unknown user"),
    "n = 0": ("recommend", {"user": 1, "n": 0}, 422, "n: "),
    "n = 10^9": ("recommend", {"user": 1, "n": 10**9}, 422, "n: "),
    "n is text": ("recommend", {"user": 1, "n": "5"}, 422, "n: "),
    "no user": ("recommend", {}, 422, "user: Field required"),
    "user is no id": ("recommend", {"user": True}, 422, "user: should be an id: a whole number, or a text of 1 to 512"),
    "user is null": ("recommend", {"user": None}, 422, "user: should be an id: "),
    "user is a list": ("recommend", {"user": [1]}, 422, "user: should be an id: "),
    "user is empty": ("recommend", {"user": ""}, 422, "user: should be an id: "),
    "two are no ids": ("recommend/new", {"history": [1, None, []]}, 422, "history.1, history.2: should be an id: "),
    "unknown parameter": ("recommend?n=3", {"user": 1}, 422, "n: no such parameter in the address; known: model"),
    "unknown parameters": ("reload?now=1&b=2", {}, 422, "b, now: no such parameter in the address; this path has none"),
    "unknown field": ("recommend", {"user": 1, "N": 5}, 422, "N: Extra inputs"),
    "too many": ("recommend/batch", {"users": [1] * 1001}, 422, "users: "),
    "too many items": ("recommend/batch", {"users": [1] * 200, "n": 1000}, 422, "at most 100,000"),
    "no users": ("recommend/batch", {"users": []}, 422, "users: "),
    "long history": ("recommend/new", {"history": [1] * 5001}, 422, "history: "),
    "no items": ("recommend", {"user": 1, "items": []}, 422, "items: "),
    "unknown category": ("recommend", {"user": 1, "where": {"category": "Nix"}}, 422, "no item has the category 'Nix'"),
    "no such title": ("recommend", {"user": 1, "where": {"title": "qqq"}}, 422, "no item is left"),
    "unknown filter": ("recommend", {"user": 1, "where": {"colour": "red"}}, 422, "colour"),
    "many words": ("recommend", {"user": 1, "where": {"title": ["a"] * 101}}, 422, "or a list of at most 100 of them"),
    "many filters": ("recommend", {"user": 1, "where": {f"k{k}": "a" for k in range(21)}}, 422, "at most 20 items"),
    "long word": (
        "recommend",
        {"user": 1, "where": {"title": "a" * 513}},
        422,
        "where.title: should be a text of at most 512 characters",
    ),
    "dial": ("recommend", {"user": 1, "mix": 1.5}, 422, "mix: "),
    "dial is true": ("recommend", {"user": 1, "mix": True}, 422, "mix: Input should be a valid number"),
    "dial is text": ("recommend", {"user": 1, "mix": "0.5"}, 422, "mix: Input should be a valid number"),
    "mixed by what": ("recommend", {"user": 1, "mix_by": "genres"}, 422, "mix_by: Input should be 'categories' or"),
    "mixed by nothing": (
        "recommend?model=compare",
        {"user": 1, "mix": 1, "mix_by": "interests"},
        422,
        "knows no interests to mix",
    ),
    "unknown model": ("recommend?model=third", {"user": 1}, 404, "there is no model 'third'"),
    "a list": ("recommend", [1], 422, "body: "),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests_are_told_why(client, case):
    path, body, status, reason = BAD[case]
    answer = client.post(f"{API}/{path}", json=body)
    assert answer.status_code == status, answer.text
    problem = answer.json()
    assert set(problem) == {"error", "reason", "hint"}
    assert reason in problem["reason"]
    assert not re.search("function-|constrained-str|Value error", problem["reason"])
    assert problem["hint"]


@pytest.mark.parametrize("path", ["items", "users", "map", "model", "interests?user=1", "similar/items?item=1"])
def test_unknown_parameters_in_the_address_are_refused(client, path):
    assert client.get(f"{API}/{path}").status_code == 200
    answer = client.get(f"{API}/{path}{'&' if '?' in path else '?'}size=2")
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid")
    assert answer.json()["reason"].startswith("size: no such parameter in the address; ")
    assert client.get(f"{API}/items?q=a&n=2").json()["reason"].endswith("known: id, limit, model, q")


def test_what_is_not_known_is_listed_and_the_rest_answered(client, model):
    answer = client.post(f"{API}/recommend/batch", json={"users": [5, "nobody", 3], "n": 4}).json()
    assert [one["user"] for one in answer["lists"]] == [5, 3]
    assert answer["unknown"] == {"users": ["nobody"]}
    answer = client.post(f"{API}/recommend", json={"user": 7, "items": [1, 2, -7], "exclude_seen": False})
    assert sorted(ids(answer)) == [1, 2]
    assert answer.json()["unknown"] == {"items": [-7]}
    answer = client.post(f"{API}/recommend/new", json={"history": [5, "no"]})
    assert ids(answer) == model.recommend_new([5])[0].tolist()
    assert answer.json()["unknown"] == {"items": ["no"]}


@pytest.mark.parametrize("user", ["nobody", 10**6, 10**30])
@pytest.mark.parametrize("options", [{}, {"exclude": [1]}, {"explain": True, "n": 200}])
def test_unknown_users_get_an_empty_list_as_in_python(client, model, user, options):
    answer = client.post(f"{API}/recommend", json={"user": user, **options})
    assert (answer.status_code, ids(answer)) == (200, model.recommend(user, on_unknown="skip")[0].tolist())
    assert answer.json()["unknown"] == {"users": [user if user != 10**30 else str(user)]}
    answer = client.post(f"{API}/recommend/batch", json={"users": [user, "none"], **options})
    assert answer.json()["lists"] == model.recommend([user, "none"], on_unknown="skip")[0].tolist() == []
    assert len(answer.json()["unknown"]["users"]) == 2


def test_popular_items_are_said_to_be_that(client, model):
    expected = np.argsort(-model.train_.per_item, kind="stable")[:10].tolist()
    for path, body in (
        ("recommend/new", {"history": []}),
        ("recommend/new", {"history": ["no"], "on_unknown": "popular"}),
        ("recommend", {"user": "nobody", "on_unknown": "popular"}),
    ):
        answer = client.post(f"{API}/{path}", json=body)
        assert ids(answer) == expected
        assert answer.json()["popular"] is True
    body = {"users": ["nobody", 3], "on_unknown": "popular"}
    lists = client.post(f"{API}/recommend/batch", json=body).json()["lists"]
    assert [one["id"] for one in lists[0]["items"]] == expected
    assert [one["id"] for one in lists[1]["items"]] == model.recommend(3)[0].tolist()


def test_users_of_the_training_data_without_likes_get_popular_items_that_say_so(world, serve, tmp_path):
    model = ItemKNN().fit(world.select(world.rows != 5))
    own = serve(save(model, tmp_path / "model"))
    expected = np.argsort(-model.train_.per_item, kind="stable")[:10].tolist()
    for options in ({}, {"exclude": [expected[0]]}):  # answered with and without the web framework
        answer = own.post(f"{API}/recommend", json={"user": 5, **options})
        assert ids(answer)[:8] == [one for one in expected if one not in options.get("exclude", [])][:8]
        assert answer.json()["popular"] is True
    none, some = own.post(f"{API}/recommend/batch", json={"users": [5, 6]}).json()["lists"]
    assert (none["popular"], [one["id"] for one in none["items"]]) == (True, expected)
    assert "popular" not in some
    assert "popular" not in own.post(f"{API}/recommend", json={"user": 6}).json()


@pytest.mark.parametrize("exclude_seen", [True, False])
def test_excluded_items_are_left_out_and_nothing_else(client, model, exclude_seen):
    best = model.recommend(7, n=20, exclude_seen=exclude_seen)[0].tolist()
    body = {"user": 7, "n": 18, "exclude": [best[0], str(best[3])], "exclude_seen": exclude_seen}
    assert ids(client.post(f"{API}/recommend", json=body)) == [*best[1:3], *best[4:]]
    history = model.train_.of(9).tolist()
    best = model.recommend_new(history, n=12)[0].tolist()
    body = {"history": history, "n": 11, "exclude": [best[2]]}
    assert ids(client.post(f"{API}/recommend/new", json=body)) == [*best[:2], *best[3:]]


def test_lists_that_are_asked_for_together_are_those_of_each(client, model):
    """Lists that arrive while others are made are made in one step."""
    with ThreadPoolExecutor(16) as pool:
        asked = [{"user": k % 40, "n": 3 + k % 3} for k in range(120)]
        answers = list(pool.map(lambda body: client.post(f"{API}/recommend", json=body), asked))
    for body, answer in zip(asked, answers, strict=True):
        assert ids(answer) == model.recommend(body["user"], n=body["n"])[0].tolist()


def test_filters_that_leave_nothing_are_told_so(client, model):
    seen = model.train_.item_ids[model.train_.of(0)].tolist()
    for path, body in [("recommend", {"user": 0}), ("recommend/batch", {"users": [0]})]:
        answer = client.post(f"{API}/{path}", json={**body, "items": seen})
        assert (answer.status_code, answer.json()["error"]) == (422, "nothing_left")
        answer = client.post(f"{API}/{path}", json={**body, "where": {"title": "qqq"}})
        assert (answer.status_code, answer.json()["error"]) == (422, "nothing_left")


@pytest.mark.parametrize(
    "content", [b"{", b"", b"\xff\xfe", b'{"user": NaN', b"[" * 100_000, b'{"user":' + b"9" * 5000]
)
def test_malformed_json_is_told_so(client, content):
    answer = client.post(f"{API}/recommend", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 415, 422), answer.text
    assert answer.json()["reason"]


def test_a_body_that_is_not_declared_as_json_is_told_so(client):
    answer = client.post(f"{API}/recommend", content=b'{"user": 7}', headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert "Content-Type" in answer.json()["hint"]


def test_a_lone_surrogate_is_no_fault_of_the_server(client):
    content = rb'{"user": "\ud800"}'
    answer = client.post(f"{API}/recommend", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (404, 422)


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_refused(client, announced):
    content = b" " * (2**20 + 1)
    body = content if announced else (content[k : k + 2**16] for k in range(0, len(content), 2**16))
    answer = client.post(f"{API}/recommend", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (413, "too_large")
