"""The verbs with ``--engine ray``, and shards as data."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml import load
from dpcml.cli import app

SMALL = ("--set", "n_vectors=2", "--set", "dim=8", "--set", "epochs=4", "--set", "n_candidates=5", "--threads", "1")


def run(*arguments, code=0):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory, likes):
    place = tmp_path_factory.mktemp("commands")
    rows = pl.DataFrame({"user": likes.rows, "item": likes.indices})
    for k in range(2):
        rows[k::2].write_parquet(place / f"likes-{k}.parquet")
    return place


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_shards_from_files_to_held_out_figures():
    said = json.loads(run("data", "ingest", "likes-0.parquet", "likes-1.parquet", "--out", "shards", "--json"))
    assert (said["users"], said["items"]) == (160, 100)
    assert "next: dpcml train --data less" in run("data", "ingest", "likes-0.parquet", "--out", "less", "--core", "2")
    found = json.loads(run("train", "--data", "shards", "--model", "ease", "--out", "ease", "--quiet", "--json"))
    assert found["split"]["rule"] == said["split"]["rule"] == "hash of user and item 0.6/0.2/0.2, seed 0"
    report = json.loads(run("evaluate", "ease", "--metrics", "NDCG@10", "--json"))
    assert report["metrics"]["NDCG@10"] == found["test"]["metrics"]["NDCG@10"]


def test_train_evaluate_and_recommend_on_ray_as_without(ray_cluster):
    run("data", "ingest", "likes-0.parquet", "likes-1.parquet", "--out", "shards")
    train = ("train", "--data", "shards", "--model", "dpcml", *SMALL, "--quiet", "--json")
    here = json.loads(run(*train, "--out", "local"))
    there = json.loads(run(*train, "--out", "ray", "--engine", "ray", "--no-refit"))
    assert there["test"] == here["test"]
    assert np.array_equal(load("ray").item_vectors_, load("local/evaluation").item_vectors_)
    two = json.loads(
        run(*train, "--out", "two", "--engine", "ray", "--workers", "2", "--sync-every", "3", "--no-refit")
    )
    assert two["test"]["metrics"]["NDCG@10"] > 0.8 * here["test"]["metrics"]["NDCG@10"]
    options = ("--metrics", "NDCG@10", "--json")
    assert json.loads(run("evaluate", "ray", *options, "--engine", "ray"))["metrics"] == {
        "NDCG@10": here["test"]["metrics"]["NDCG@10"]
    }
    run("recommend", "local", "--users", "all", "--out", "lists.parquet", "-n", "4")
    run("recommend", "local", "--users", "all", "--out", "lists", "-n", "4", "--engine", "ray", "--workers", "2")
    assert pl.read_parquet("lists/*.parquet").equals(pl.read_parquet("lists.parquet"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "--data", "planted", "--out", "x", "--workers", "2"), "--workers 2 needs --engine ray"),
        (("train", "--data", "planted", "--out", "x", "--engine", "rya"), "--engine='rya'"),
        (
            ("train", "--data", "planted", "--out", "x", "--model", "ease", "--engine", "ray"),
            "not trained by the engine",
        ),
        (("evaluate", "x", "--address", "a:1"), "--address a:1 needs --engine ray"),
        (
            ("train", "--data", "none.csv", "--out", "x", "--engine", "ray", "--address", "127.0.0.1:1"),
            "no Ray cluster at '127.0.0.1:1'",  # before the data are read
        ),
        (("recommend", "x", "--user", "1", "--engine", "ray"), "name --users FILE and --out DIR"),
        (("tune", "--data", "planted", "--out", "x", "--address", "a:1"), "only engine='ray' has one"),
        (("data", "ingest", "likes-0.parquet", "--time", "t", "--out", "x"), "--time t: does not apply"),
        (("data", "ingest", "likes-0.parquet", "--parts", "1;2", "--out", "x"), "--parts '1;2'"),
        (("data", "ingest", "none.csv", "--out", "x"), "none.csv: there is no such file"),
    ],
)
def test_mistakes_are_one_line(folder, arguments, said):
    text = run(*arguments, code=2)
    assert said in text
    assert len(text.strip().splitlines()) == 1
    assert not (folder / "x").exists()
