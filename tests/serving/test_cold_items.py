"""A server recommends items that nobody likes yet."""

import numpy as np

from dpcml import EASE, load
from dpcml.data.items import Attributes, ItemTable

API = "/api/v1"


def test_cold_items_are_served(world, serve, tmp_path):
    kinds = [str(world.items.attributes.names[0]), str(world.items.attributes.names[1])]
    new = ItemTable(
        np.array([5001, 5002]),
        np.array(["Fresh one", "Fresh two"], dtype=object),
        Attributes.from_sets([{kinds[0]}, {kinds[1]}]),
    )
    model = load(EASE().fit(world).add_items(new).save(tmp_path / "model"))
    client = serve(tmp_path / "model")
    for path, who in (("recommend", {"user": 7}), ("recommend/new", {"history": [3, 5]})):
        answer = client.post(f"{API}/{path}", json={**who, "where": {"new": "yes"}, "explain": True})
        assert answer.status_code == 200, answer.text
        items = answer.json()["items"]
        assert {one["id"] for one in items} == {5001, 5002}
        assert all(one["reason"]["text"] and one["title"].startswith("Fresh") for one in items)
    assert [one["id"] for one in items] == model.recommend_new([3, 5], where={"new": "yes"})[0].tolist()
    assert client.post(f"{API}/recommend", json={"user": 7, "where": {"new": "perhaps"}}).status_code == 422
