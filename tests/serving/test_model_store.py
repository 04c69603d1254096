"""A new model takes the place of the old one under traffic; a damaged one does not."""

import gc
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from dpcml import EASE, load, save, storage
from dpcml.serving import model_store
from dpcml.serving.model_store import LoadedModel

RECOMMEND = "/api/v1/recommend"


def test_no_request_fails_while_models_change(own_model, models, serve):
    client = serve(own_model)
    lists = {
        client.post(RECOMMEND, json={"user": 7}).headers["x-dpcml-model"]: load(models["dpcml"])
        .recommend(7)[0]
        .tolist()
    }
    stop, answers = threading.Event(), []

    def ask():
        while not stop.is_set():
            answers.append(client.post(RECOMMEND, json={"user": 7}))

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        for name in ("again", "dpcml", "again"):
            new = load(models[name])
            save(new, own_model)
            answer = client.post("/api/v1/reload")
            assert answer.status_code == 200
            lists[answer.json()["models"]["main"]] = new.recommend(7)[0].tolist()
        stop.set()
        for one in asking:
            one.result()
    assert {answer.status_code for answer in answers} == {200}
    for answer in answers:
        assert [item["id"] for item in answer.json()["items"]] == lists[answer.headers["x-dpcml-model"]]
    assert len({answer.headers["x-dpcml-model"] for answer in answers}) == 2
    assert 'dpcml_reloads_total{outcome="done"} 3.0' in client.get("/metrics").text


@pytest.mark.parametrize("name", ["dpcml", "itemknn", "blend"])
def test_a_replaced_model_is_freed_at_once(models, name):
    loaded = model_store.LoadedModel.load(models[name])
    gc.collect()
    gc.disable()  # a server collects garbage at times only, and never what it held at its start
    try:
        loaded.item_json(3), loaded.user_row(5), loaded.reference(7), loaded.example
        loaded.item_search.search("1", 3), loaded.user_search.search("1", 3)
        loaded.model.recommend(7, mix=0.5, explain=True)
        parts = [weakref.ref(one) for one in (loaded, loaded.model, loaded.model.train_, loaded.item_search)]
        del loaded
        assert [part() for part in parts] == [None] * 4
    finally:
        gc.enable()


def test_the_fingerprint_depends_on_the_titles(own_model):
    old, model = model_store.LoadedModel.load(own_model), load(own_model)
    save(model, own_model)
    assert model_store.LoadedModel.load(own_model).fingerprint == old.fingerprint
    items = replace(model.train_.items, titles=[f"new {k}" for k in range(model.train_.n_items)])
    model.train_ = replace(model.train_, items=items)
    save(model, own_model)
    assert model_store.LoadedModel.load(own_model).fingerprint != old.fingerprint


def cut(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def flip(folder):
    data = bytearray((folder / "data.safetensors").read_bytes())
    data[-3] ^= 255
    (folder / "data.safetensors").write_bytes(data)


def empty_card(folder):
    (folder / "model.json").write_text("{}")


@pytest.mark.parametrize("damage", [cut, flip, empty_card, shutil.rmtree])
def test_a_damaged_model_is_refused_and_the_old_one_stays(own_model, serve, damage):
    """The files are overwritten in place, which a mapped file would not survive."""
    client = serve(own_model)
    before = client.post(RECOMMEND, json={"user": 7}).json()
    damage(own_model)
    answer = client.post("/api/v1/reload")
    assert (answer.status_code, answer.json()["error"]) == (409, "reload_refused")
    assert client.post(RECOMMEND, json={"user": 7}).json() == before
    assert client.post("/api/v1/recommend/batch", json={"users": list(range(200)), "n": 100}).status_code == 200
    assert 'dpcml_reloads_total{outcome="refused"} 1.0' in client.get("/metrics").text
    assert client.get("/ready").status_code == 200


def test_interests_do_not_wait_for_a_map_that_takes_long(models, serve, monkeypatch):
    drawing, drawn = threading.Event(), model_store.project_items

    def slowly(*args):
        assert drawing.wait(120)
        return drawn(*args)

    monkeypatch.setattr(model_store, "project_items", slowly)
    monkeypatch.setattr(model_store, "takes_long", lambda n_items: True)
    client = serve(models["dpcml"])
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.get, "/api/v1/map", timeout=120) for _ in range(8)]  # more than threads for lists
        found = client.get("/api/v1/interests", params={"user": 7}).json()["interests"]
        assert client.post(RECOMMEND, json={"user": 7}).status_code == 200
        assert [one["place"] for one in found] == [None] * len(found)
        assert not any(one.done() for one in asked)
        drawing.set()
        assert {one.result().status_code for one in asked} == {200}
    found = client.get("/api/v1/interests", params={"user": 7}).json()["interests"]
    assert all(len(one["place"]) == 2 for one in found)


def test_a_model_that_is_replaced_while_it_is_read_has_its_own_card(own_model, models, monkeypatch):
    """Finding 1: the folder is replaced after the card was read; model, card and fingerprint are of one saving."""
    read, cards = storage._card_of, []

    def reads(*given, **options):
        cards.append(read(*given, **options))
        if len(cards) == 1:
            save(load(models["again"]), own_model)
        return cards[-1]

    old = load(own_model).recommend(7)[0].tolist()
    monkeypatch.setattr(storage, "_card_of", reads)
    found = model_store.LoadedModel.load(own_model)
    monkeypatch.undo()
    assert found.card == cards[0]
    assert found.card != storage.read_card(own_model)
    assert found.model.recommend(7)[0].tolist() == old


def test_an_example_is_found_among_two_users(tmp_path):
    folder = save(EASE().fit(np.array([[1, 0, 0, 0], [1, 1, 1, 0]])), tmp_path / "two")
    assert LoadedModel.load(folder).example in (0, 1)
