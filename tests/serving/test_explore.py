"""Interests, histories and finding people and items over HTTP."""

import numpy as np
import pytest

from dpcml import load

API = "/api/v1"


@pytest.fixture(scope="module")
def model(models):
    return load(models["dpcml"])


def test_interests_cover_the_history_and_lie_on_the_map(client, model):
    found = client.get(f"{API}/interests", params={"user": 7}).json()["interests"]
    liked = sorted(item["id"] for one in found for item in one["items"])
    assert liked == model.train_.item_ids[model.train_.of(7)].tolist()
    assert [one["number"] for one in found] == [one.number for one in model.interests(7)]
    assert sum(one["share"] for one in found) == pytest.approx(1, abs=1e-4)
    assert found[0]["categories"][0]["name"] in found[0]["name"]
    assert all(len(one["place"]) == 2 and max(map(abs, one["place"])) <= 1 for one in found)


def test_names_of_interests_have_no_category_in_common(client):
    categories = set(client.get(f"{API}/model").json()["models"][0]["categories"])
    named = 0
    for user in range(200):
        found = client.get(f"{API}/interests", params={"user": user}).json()["interests"]
        parts = [part for one in found for part in one["name"].split(", like ")[0].split(" / ")]
        own = [part for part in parts if part in categories]
        assert len(own) == len(set(own)), [one["name"] for one in found]
        named += len(own)
    assert named > 200


def test_interests_of_somebody_new(client, model):
    history = model.train_.of(9).tolist()
    found = client.post(f"{API}/interests/new", json={"history": history}).json()["interests"]
    assert sorted(item["id"] for one in found for item in one["items"]) == sorted(history)
    assert client.post(f"{API}/interests/new", json={"history": []}).status_code == 422
    more = client.post(f"{API}/interests/new", json={"history": [*history, "no"]}).json()
    assert more == {"interests": found, "unknown": {"items": ["no"]}}


def test_a_model_without_interests_says_so(client):
    answer = client.get(f"{API}/interests", params={"user": 7, "model": "compare"})
    assert answer.status_code == 422
    assert "ItemKNN has no interests" in answer.json()["reason"]


def test_a_history_is_what_the_model_was_trained_on(client, model):
    found = client.get(f"{API}/history", params={"user": 7}).json()["items"]
    assert [item["id"] for item in found] == model.train_.of(7).tolist()
    assert client.get(f"{API}/history", params={"user": "nobody"}).status_code == 404


def test_items_are_found_by_title_and_id(client, model):
    title = model.train_.items.title(42)
    found = client.get(f"{API}/items", params={"q": title.upper()}).json()["items"]
    assert found[0]["title"] == title
    assert client.get(f"{API}/items", params={"q": "42", "limit": 1}).json()["items"][0]["id"] == 42
    assert client.get(f"{API}/items", params={"q": "no such thing"}).json() == {"items": []}
    popular = client.get(f"{API}/items", params={"limit": 3}).json()["items"]
    assert popular[0]["id"] == int(np.argmax(model.train_.per_item))


def test_items_by_their_ids(client, model):
    answer = client.get(f"{API}/items", params={"id": ["42", "no", "7"], "q": "ignored"}).json()
    assert [item["id"] for item in answer["items"]] == [42, 7]
    assert answer["items"][0]["title"] == model.train_.items.title(42)
    assert answer["unknown"] == {"items": ["no"]}
    assert client.get(f"{API}/items", params={"id": ["1"] * 1001}).status_code == 422


def test_who_likes_an_item(client, model):
    train = model.train_
    answer = client.get(f"{API}/likes", params={"item": 5, "limit": 4}).json()
    fans = [row for row in range(train.n_users) if 5 in train.of(row)]
    assert answer["likes"] == len(fans)
    most = sorted(fans, key=lambda row: -len(train.of(row)))[:4]
    assert answer["users"] == [{"id": row, "likes": len(train.of(row))} for row in most]
    assert client.get(f"{API}/likes", params={"item": "no"}).status_code == 404
    assert client.get(f"{API}/likes", params={"item": 5, "limit": 0}).status_code == 422


def test_the_example_is_a_user_with_several_interests(client, model):
    main, second = client.get(f"{API}/model").json()["models"]
    assert len([one for one in model.interests(main["example"]) if one.share > 0]) > 1
    assert second["example"] in model.train_.user_ids


def test_users_are_found_by_id(client, model):
    found = client.get(f"{API}/users", params={"q": "17", "limit": 5}).json()["users"]
    assert found[0] == {"id": 17, "likes": len(model.train_.of(17))}
    assert all("17" in str(user["id"]) for user in found)


@pytest.mark.parametrize("params", [{"limit": 0}, {"limit": 101}, {"q": "x" * 201}, {"id": ""}, {"id": "x" * 513}])
def test_searches_are_limited(client, params):
    assert client.get(f"{API}/items", params=params).status_code == 422


def test_the_map_shows_every_item_of_a_small_catalogue(client, model):
    found = client.get(f"{API}/map").json()["items"]
    assert sorted(item["id"] for item in found) == list(range(120))
    places = np.array([[item["x"], item["y"]] for item in found])
    assert np.abs(places).max() <= 1
    assert places.std(axis=0).min() > 0.05
    assert found[0]["likes"] == model.train_.per_item.max()
    assert len(client.get(f"{API}/map", params={"model": "compare"}).json()["items"]) == 120


def test_the_models_say_what_they_are(client):
    main, compare = client.get(f"{API}/model").json()["models"]
    assert (main["name"], main["model_class"], main["capabilities"]["interests"]) == ("main", "DPCML", True)
    assert (compare["name"], compare["model_class"], compare["capabilities"]["interests"]) == (
        "compare",
        "ItemKNN",
        False,
    )
    assert main["parameters"]["n_vectors"] == 3
    assert "Comedy" in main["categories"]
