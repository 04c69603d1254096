"""Items that nobody likes yet on the command line: ``train --cold-items`` and ``update --items``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dpcml import load
from dpcml.cli import app

QUICK = ["--set", "dim=6", "--set", "epochs=2", "--set", "n_candidates=3", "--set", "n_vectors=2"]


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def catalogue(folder) -> str:
    """Write a file with the items of the data, and three that nobody likes; one says nothing."""
    ids = sorted({line.split(",")[1] for line in (folder / "likes.csv").read_text().splitlines()[1:]}, key=int)
    rows = [f"{one},Old {one},{'War' if int(one) % 2 else 'Romance'}" for one in ids]
    new = ["9001,Fresh one,War", "9002,Fresh two,Romance", "9003,Zebra,"]
    (folder / "items.csv").write_text("\n".join(["id,title,genres", *rows, *new]) + "\n")
    return "items.csv"


def test_train_with_cold_items(folder, catalogue):
    data = ["--data", "likes.csv", "--items", catalogue]
    with pytest.warns(UserWarning, match="1 of 3 new items"):
        found = json.loads(run("train", *data, "--cold-items", "--out", "m", *QUICK, "--json"))
    assert found["cold_items"] == 2
    model = load("m")
    assert model.train_.n_items == load("m/evaluation").train_.n_items + 2, "held-out figures are of known items"
    run("evaluate", "m")
    user = str(model.train_.user_ids[0])
    listed = json.loads(run("recommend", "m", "--user", user, "--where", "new=yes", "--json", "--explain"))
    assert {one["id"] for one in listed["items"]} == {9001, 9002}
    for one in listed["items"]:
        assert one["reason"]["text"]


def test_items_that_cannot_be_placed_are_told_before_the_training(folder, monkeypatch):
    ids = sorted({line.split(",")[1] for line in (folder / "likes.csv").read_text().splitlines()[1:]}, key=int)
    (folder / "items.csv").write_text("\n".join(["id,title", *(f"{one},Old" for one in ids), "9003,Zebra"]) + "\n")
    monkeypatch.setattr("dpcml.workflow.train._fit", lambda *given, **options: pytest.fail("it was trained"))
    said = run("train", "--data", "likes.csv", "--items", "items.csv", "--cold-items", "--out", "m", *QUICK, code=2)
    assert "1 of 1 new items share no attribute or word" in said


def test_update_with_items(folder, catalogue):
    run("train", "--data", "likes.csv", "--items", catalogue, "--model", "ease", "--out", "m")
    with pytest.warns(UserWarning, match="1 of 3 new items"):
        found = json.loads(run("update", "m", "--items", catalogue, "--out", "n", "--json"))
    assert found == {"out": "n", "new_items": 2, "items": load("m").train_.n_items + 2}
    assert load("n").train_.items.title(found["items"] - 1) == "Fresh two"


def test_ids_of_the_catalogue_are_called_as_in_the_data(folder, catalogue):
    for file, name in (("likes.csv", "item_id"), (catalogue, "id")):
        text = (folder / file).read_text()
        assert name in text
        (folder / file).write_text(text.replace(name, "film", 1))
    data = ["--data", "likes.csv", "--item", "film", "--items", catalogue]
    with pytest.warns(UserWarning, match="1 of 3 new items"):
        run("train", *data, "--cold-items", "--model", "ease", "--out", "m")
    run("train", *data, "--model", "ease", "--out", "e")
    with pytest.warns(UserWarning, match="1 of 3 new items"):
        found = json.loads(run("update", "e", "--items", catalogue, "--out", "n", "--json"))
    assert found["new_items"] == 2
    text = (folder / catalogue).read_text()
    (folder / "more.csv").write_text(text.replace("film", "work").replace("9001", "9101"))
    assert "pass item='...' to read_items (update: --item)" in run(
        "update", "n", "--items", "more.csv", "--out", "o", code=2
    )
    with pytest.warns(UserWarning, match="1 of 2 new items"):
        found = json.loads(run("update", "n", "--items", "more.csv", "--item", "work", "--out", "o", "--json"))
    assert found["new_items"] == 1
    assert "add --items FILE" in run("update", "n", "--feedback", "j", "--item", "work", "--out", "o", code=2)


def test_bad_input(folder, catalogue):
    data = ["--data", "likes.csv", "--out", "m"]
    assert "add --items FILE" in run("train", *data, "--cold-items", code=2)
    data += ["--items", catalogue, "--cold-items"]
    assert "leave out --no-refit" in run("train", *data, "--no-refit", *QUICK, code=2)
    assert "cannot take in items" in run("train", *data, "--model", "gmf", code=2)
    assert not (folder / "m").exists()
    run("train", "--data", "likes.csv", "--model", "ease", "--out", "m")
    for more in ([], ["--items", catalogue, "--feedback", "j"]):
        assert "name either --feedback JOURNAL or --items FILE" in run("update", "m", "--out", "n", *more, code=2)
    assert "give titles or attributes" in run("update", "m", "--items", catalogue, "--out", "n", code=2)
    assert not (folder / "n").exists()
