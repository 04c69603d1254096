"""Exported ONNX graphs score as the models do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpcml import CML, DPCML, EASE, GFJA, IALS, Blend, MissingExtraError, ParameterError, Popularity, RP3Beta, create
from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.synthetic import planted
from dpcml.export import export

onnxruntime = pytest.importorskip("onnxruntime")
SMALL = {"dim": 6, "epochs": 3, "n_candidates": 3}


@pytest.fixture(scope="module")
def data():
    return planted(60, 50, positives=10, n_categories=3, seed=1).data


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


MODELS = {
    "dpcml": lambda: DPCML(n_vectors=3, popularity=0.3, **SMALL),
    "cml": lambda: CML(**SMALL),
    "gfja": lambda: GFJA(n_vectors=2, **SMALL),
    "ease": lambda: EASE(),
    "ease-sparse": lambda: EASE(form="sparse", k=5),
    "rp3beta": lambda: RP3Beta(k=5),
    "ials": lambda: IALS(dim=7, confidence=6.0),
    "blend": lambda: Blend(
        [DPCML(n_vectors=3, **SMALL), EASE(), RP3Beta(), IALS(dim=5)], weights=[0.3, 0.4, 0.1, 0.2], minority_bonus=0.3
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_known_users(name, data, tmp_path):
    model = MODELS[name]().fit(data)
    graph = session(export(model, "onnx", tmp_path / "graph") / "scores.onnx")
    rows = np.array([5, 0, 31])
    given = {"users": rows, "history": data.csr[rows].toarray()}
    names = [one.name for one in graph.get_inputs()]
    (scores,) = graph.run(["scores"], {key: given[key] for key in names})
    np.testing.assert_allclose(scores, model.score(rows), rtol=1e-4, atol=1e-5)
    if name == "dpcml":
        assert names == ["users"]
        assert model.item_vectors_[:, -1].max() > 0.1, "the coordinate of popularity is part of the scores"


@pytest.mark.parametrize("name", ["dpcml", "blend"])
def test_scores_of_new_users(name, data, tmp_path):
    model = MODELS[name]().fit(data)
    folder = export(model, "onnx", tmp_path / "graph")
    history = data.item_ids[[2, 7, 11]]
    given = {"vectors": model.fold_in(history)[None], "history": np.zeros((1, data.n_items), np.float32)}
    given["history"][0, [2, 7, 11]] = 1
    graph = session(folder / "scores_new.onnx")
    (scores,) = graph.run(None, {one.name: given[one.name] for one in graph.get_inputs()})
    np.testing.assert_allclose(scores[0], model.score_new(history), rtol=1e-4, atol=1e-5)
    about = json.loads((folder / "export.json").read_text())
    assert about["inputs"]["scores_new.onnx"]["vectors"]["shape"] == ["batch", 3, 6]


def test_a_blend_with_a_member_for_known_users_alone_has_their_graph_alone(data, tmp_path):
    pytest.importorskip("implicit")
    model = Blend([DPCML(n_vectors=3, **SMALL), create("bpr", dim=5, epochs=2)]).fit(data)
    folder = export(model, "onnx", tmp_path / "graph")
    assert not (folder / "scores_new.onnx").exists()
    graph = session(folder / "scores.onnx")
    given = {"users": np.array([5, 0]), "history": data.csr[[5, 0]].toarray()}
    (scores,) = graph.run(["scores"], {one.name: given[one.name] for one in graph.get_inputs()})
    np.testing.assert_allclose(scores, model.score([5, 0]), atol=1e-4)


def test_scores_that_are_all_alike_add_nothing(data, tmp_path):
    model = Blend([EASE(), DPCML(n_vectors=2, **SMALL)], weights=[0.5, 0.5]).fit(data)
    graph = session(export(model, "onnx", tmp_path / "graph") / "scores.onnx")
    nothing = np.zeros((1, data.n_items), np.float32)  # EASE has the score 0 for all
    (scores,) = graph.run(None, {"users": np.array([3]), "history": nothing})
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0


def test_the_bonus_of_items_with_many_categories_or_none(data, tmp_path):
    sets = [{"a", "b", "c"}, set(), {"b"}, *({"c"} if item % 3 else {"a", "d"} for item in range(data.n_items - 3))]
    items = ItemTable(data.item_ids, attributes=Attributes.from_sets(sets))
    likes = Interactions.from_csr(data.csr, items=items)
    model = Blend([DPCML(n_vectors=2, **SMALL)], minority_bonus=1.0).fit(likes)
    graph = session(export(model, "onnx", tmp_path / "graph") / "scores.onnx")
    rows = np.arange(9)
    (scores,) = graph.run(None, {"users": rows, "history": data.csr[rows].toarray().astype(np.float32)})
    np.testing.assert_allclose(scores, model.score(rows), rtol=1e-4, atol=1e-5)
    plain = Blend([DPCML(n_vectors=2, **SMALL)], minority_bonus=0.0).fit(likes)
    assert np.abs(scores - plain.score(rows)).max() > 0.1, "the bonus counts"


def test_models_without_a_graph_say_so(data, tmp_path, monkeypatch):
    for model in (Popularity(), EASE(form="dual")):
        with pytest.raises(ParameterError, match="has no ONNX graph: export to npy"):
            export(model.fit(data), "onnx", tmp_path / "x")
    assert not (tmp_path / "x").exists(), "nothing is left half-written"
    monkeypatch.setattr("dpcml.retrieval.onnx_graph.LARGEST", 1000)
    with pytest.raises(ParameterError, match="a file holds 2; export to npy"):
        export(EASE().fit(data), "onnx", tmp_path / "x")
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"\[onnx\]"):
        export(EASE().fit(data), "onnx", tmp_path / "x")
