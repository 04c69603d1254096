"""``dpcml bound`` as a user meets it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dpcml import EASE, load, save
from dpcml.cli import app
from dpcml.data.synthetic import planted
from dpcml.theory import bound_of, gap
from dpcml.workflow import DataSource

SMALL = ["--set", "dim=8", "--set", "n_vectors=2", "--set", "n_candidates=3", "--set", "epochs=2", "--quiet"]


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    planted(80, 60, positives=12, n_categories=4, seed=3).write_csv(tmp_path / "likes.csv")
    monkeypatch.chdir(tmp_path)
    run("train", "--data", "likes.csv", "--model", "dpcml", "--no-refit", "--out", "m", *SMALL)
    return tmp_path


def test_json_has_every_term_and_the_gap(folder):
    found = json.loads(run("bound", "m", "--json"))
    model = load("m")
    expected = bound_of(model)
    for name in ("n_users", "dim", "weight", "user_term", "positive_term", "negative_term", "effective_size"):
        assert found[name] == getattr(expected, name)
    assert (found["value"], found["failure"], found["no_gap"]) == (None, 1.0, None)
    assert "too small" in found["vacuous"]
    _, valid, test = DataSource("likes.csv").read().split((0.6, 0.2, 0.2), 0)
    assert found["gap"] == gap(model, test, also_liked=valid).to_dict()
    assert found["gap"]["held_out"]["value"] > found["gap"]["train"]["value"]


def test_people_see_terms_and_a_plain_word(folder):
    text = run("bound", "m")
    for part in ("(4 + eta)^2 / |U|", "N~", "vacuous: N~ =", "training", "test", "gap", "users with both"):
        assert part in text


def test_without_held_out_positives_the_bound_is_still_there(folder):
    run("train", "--data", "likes.csv", "--model", "dpcml", "--out", "all", "--all", *SMALL)
    found = json.loads(run("bound", "all", "--json"))
    assert found["gap"] is None
    assert "trained on everything" in found["no_gap"]
    (folder / "likes.csv").unlink()
    assert "no gap: m: its data cannot be read" in run("bound", "m")
    assert "cannot be read" in run("bound", "m", "--data", "gone.csv", code=2)


def test_other_models_are_refused(folder):
    save(EASE().fit(load("m").train_), "e")
    assert "EASE: the theory is about vectors" in run("bound", "e", code=2)
    assert "no such folder" in run("bound", "nothing", code=2)
