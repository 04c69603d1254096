"""``dpcml compare``: models on repeated splits."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml import EASE, Interactions, ItemKNN, compare, evaluate
from dpcml.cli import app
from dpcml.cli.compare import _models
from dpcml.data.shards import Shards
from dpcml.scale.ingestion import ingest


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["compare", "--data", "likes.csv", *arguments])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_folds_are_splits_with_seeds_of_their_own(folder):
    asked = ["--models", "ease,itemknn", "--folds", "3", "--split-seed", "4", "--metrics", "NDCG@10", "--set", "k=7"]
    found = json.loads(run(*asked, "--out", "table.csv", "--json"))
    assert (found["split"], found["folds"]) == ("ratio", 3)
    data, reports = Interactions.from_file("likes.csv"), []
    for seed in (4, 5, 6):
        train, valid, test = data.split((0.6, 0.2, 0.2), seed)
        for model in (EASE(), ItemKNN(k=7)):
            reports.append(evaluate(model.fit(train), train, test, valid=valid, metrics=["NDCG@10"]))
    expected = compare(reports).to_frame()
    rows = pl.DataFrame(found["rows"])
    assert rows["mean"].to_list() == pytest.approx(expected["mean"].to_list())
    assert rows["p_value"].to_list() == pytest.approx(expected["p_value"].to_list())
    assert pl.read_csv("table.csv")["label"].to_list() == ["ease", "itemknn"]
    assert "3 run(s) each" in run(*asked)


@pytest.mark.parametrize("models", ["ease,blend", "dpcml,blend"])
def test_settings_go_to_every_model_that_takes_them(models):
    found = _models(models, {"dim": 8, "ials__dim": 4})
    assert found["blend"].models[0].dim == 8
    assert found["blend"].models[3].dim == 4
    assert {model.dim for name, model in found.items() if name == "dpcml"} <= {8}


def test_shards_are_compared_on_their_own_split(folder):
    ingest(["likes.csv"], "shards", split_seed=5)
    found = json.loads(run("--data", "shards", "--models", "ease", "--metrics", "MAP", "--json"))
    train, valid, test = Shards.open("shards").split()
    report = evaluate(EASE().fit(train), train, test, valid=valid, metrics=["MAP"])
    assert (found["split"], found["folds"]) == ("shards", 1)
    assert found["rows"][0]["mean"] == report.metrics["MAP"]
    assert "--split last: shards has a split of its own" in run(
        "--data", "shards", "--models", "ease", "--split", "last", code=2
    )


def test_splits_that_are_always_the_same_are_made_once(folder):
    rows = [f"{line},{k % 97}" for k, line in enumerate(Path("likes.csv").read_text().splitlines())]
    Path("timed.csv").write_text("\n".join(["user,item,title,category,time", *rows[1:]]))
    asked = ["--data", "timed.csv", "--models", "popularity", "--split", "last", "--user", "user", "--item", "item"]
    assert "1 run(s) each" in run(*asked)
    assert "folds=2: the split 'last' is the same each time; pass folds=1 (--folds 1)" in run(
        *asked, "--folds", "2", code=2
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--models", "eaze"], "did you mean 'ease'"),
        (["--models", ","], "name at least one"),
        (["--models", "ease,popularity,ease"], "ease is named twice"),
        (["--models", "ease", "--set", "kk=3"], "--set kk: none of ease has it"),
        (["--models", "ease", "--metrics", "NDGC@10"], "NDGC@10"),
        (["--models", "ease", "--protocol", "loose"], "loose"),
    ],
)
def test_mistakes_are_one_line(folder, arguments, said):
    text = run(*arguments, code=2)
    assert said in text
    assert len(text.strip().splitlines()) == 1
