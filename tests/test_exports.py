import json

import numpy as np
import polars as pl
import pytest

from dpcml import CML, Interactions, Popularity
from dpcml.errors import ParameterError, UnknownIdError
from dpcml.exports import export, write_lists
from dpcml.models.dpcml import DPCML


@pytest.fixture(scope="module")
def model():
    likes = np.kron(np.eye(2), np.ones((5, 6)))
    likes[0, 5] = 0
    data = Interactions.from_csr(likes, user_ids=[f"user-{k}" for k in range(10)], item_ids=np.arange(12) + 100)
    return DPCML(n_vectors=2, dim=8, epochs=10, n_candidates=3).fit(data)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_lists_are_those_of_recommend(model, tmp_path, monkeypatch, kind):
    monkeypatch.setattr("dpcml.exports.PEOPLE_AT_ONCE", 3)
    path, steps = tmp_path / f"lists.{kind}", []
    assert write_lists(model, path, n=2, progress=lambda done, total: steps.append((done, total))) == 20
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[kind]
    frame = read(path)
    assert frame.columns == ["user", "rank", "item", "score"]
    ids, scores = model.recommend("user-7", n=2)
    of = frame.filter(pl.col("user") == "user-7")
    assert of["item"].to_list() == ids.tolist()
    assert of["rank"].to_list() == [1, 2]
    np.testing.assert_allclose(of["score"].to_numpy(), scores, rtol=1e-5)
    assert steps == [(3, 10), (6, 10), (9, 10), (10, 10)]
    assert [file.name for file in tmp_path.iterdir()] == [path.name], "nothing half-written stays"


def test_lists_of_some_users_leave_out_places_that_nothing_fills():
    model = Popularity().fit(np.array([[1, 1, 0], [1, 0, 0]]))
    ids, _ = model.recommend([0, 1], n=3)
    assert ids.shape == (2, 2)


def test_lists_that_cannot_be_written(model, tmp_path):
    with pytest.raises(ParameterError, match=r"lists.txt: a list file ends in .parquet, .csv, .jsonl"):
        write_lists(model, tmp_path / "lists.txt")
    with pytest.raises(UnknownIdError, match="unknown user 'nobody'"):
        write_lists(model, tmp_path / "lists.csv", ["user-1", "nobody"])
    with pytest.raises(ParameterError, match="at least 1"):
        write_lists(model, tmp_path / "lists.csv", n=0)
    assert not list(tmp_path.iterdir())


def test_exported_vectors_are_those_of_the_model(model, tmp_path):
    export(model, tmp_path / "npy")
    assert (np.load(tmp_path / "npy" / "user_vectors_.npy") == model.user_vectors_).all()
    assert json.loads((tmp_path / "npy" / "item_ids.json").read_text())[:2] == [100, 101]
    assert json.loads((tmp_path / "npy" / "about.json").read_text())["shapes"]["item_vectors_"] == [12, 8]
    export(model, tmp_path / "parquet", "parquet")
    users = pl.read_parquet(tmp_path / "parquet" / "users.parquet")
    assert users["user"].to_list()[:3] == ["user-0", "user-0", "user-1"]
    assert (np.stack(users["values"].to_list()) == model.user_vectors_.reshape(20, 8)).all()
    items = pl.read_parquet(tmp_path / "parquet" / "items.parquet")
    assert items["item"].to_list() == model.train_.item_ids.tolist()


def test_faiss_ready_queries_find_what_the_model_recommends(model, tmp_path):
    export(model, tmp_path / "out", "faiss-ready")
    items, queries = np.load(tmp_path / "out" / "items.npy"), np.load(tmp_path / "out" / "queries.npy")
    assert items.flags.c_contiguous
    assert queries.dtype == np.float32
    distance = ((queries[3][:, None] - items) ** 2).sum(axis=2).min(axis=0)
    ids, scores = model.recommend("user-3", n=3, exclude_seen=False)
    assert model.train_.item_ids[np.argsort(distance, kind="stable")[:3]].tolist() == ids.tolist()
    np.testing.assert_allclose(-np.sort(distance)[:3], scores, atol=1e-5)


def test_exports_that_cannot_be(model, tmp_path):
    with pytest.raises(ParameterError, match="did you mean 'parquet'"):
        export(model, tmp_path / "out", "parket")
    (tmp_path / "there").mkdir()
    with pytest.raises(ParameterError, match="is there already"):
        export(model, tmp_path / "there")
    with pytest.raises(ParameterError, match="has no vectors"):
        export(Popularity().fit(np.eye(3)), tmp_path / "out", "parquet")
    assert not (tmp_path / "out").exists()
    assert export(CML(dim=4, epochs=1, n_candidates=1).fit(np.eye(3)), tmp_path / "cml", "faiss-ready").is_dir()
