"""``dpcml recommend``, ``similar``, ``interests``, ``export`` and ``doctor`` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml import DPCML, EASE, load, save
from dpcml.cli import app
from dpcml.data.planted import planted


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    data = planted(80, 60, positives=10, n_categories=3, seed=3).data
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(DPCML(n_vectors=2, dim=8, epochs=10, n_candidates=3).fit(data), folder)
    return folder


def run(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_a_list_with_reasons(model):
    fitted = load(model)
    ids, scores, reasons = fitted.recommend(7, n=4, explain=True)
    found = json.loads(run("recommend", model, "--user", 7, "-n", 4, "--explain", "--json"))["recommendations"]
    assert [line["item"] for line in found] == ids.tolist()
    assert [line["why"] for line in found] == [reason.text for reason in reasons]
    assert found[0]["score"] == pytest.approx(float(scores[0]), abs=1e-6)
    shown = run("recommend", model, "--user", 7, "-n", 4, "--explain")
    assert reasons[0].text in shown
    assert found[0]["title"] in shown


def test_a_new_person_a_filter_and_the_dial(model):
    fitted = load(model)
    history = fitted.train_.item_ids[fitted.train_.of(3)].tolist()
    found = json.loads(run("recommend", model, "--history", ",".join(map(str, history)), "-n", 3, "--json"))
    assert [line["item"] for line in found["recommendations"]] == fitted.recommend_new(history, n=3)[0].tolist()
    category = str(fitted.train_.items.attributes.names[0])
    chosen = json.loads(run("recommend", model, "--user", 7, "--where", f"category={category}", "--json"))
    expected = fitted.recommend(7, where={"category": category})[0].tolist()
    assert [line["item"] for line in chosen["recommendations"]] == expected
    mixed = json.loads(run("recommend", model, "--user", 7, "--mix", 1, "--json"))
    assert [line["item"] for line in mixed["recommendations"]] == fitted.recommend(7, mix=1.0)[0].tolist()


def test_many_users_to_a_file(model, tmp_path):
    (tmp_path / "users.txt").write_text("3\n7\n\n")
    out = tmp_path / "lists.parquet"
    told = json.loads(run("recommend", model, "--users", tmp_path / "users.txt", "--out", out, "-n", 2, "--json"))
    assert told == {"out": str(out), "users": 2, "lines": 4}
    assert pl.read_parquet(out)["user"].to_list() == [*"3377"]
    run("recommend", model, "--users", "-", "--out", tmp_path / "all.csv", "-n", 1)
    assert len(pl.read_csv(tmp_path / "all.csv")) == 80


def test_interests_and_neighbours(model):
    fitted = load(model)
    found = json.loads(run("interests", model, "--user", 7, "--json"))["interests"]
    assert [line["name"] for line in found] == [interest.name for interest in fitted.interests(7)]
    assert sum(line["share"] for line in found) == pytest.approx(1, abs=1e-3)
    assert found[0]["name"] in run("interests", model, "--user", 7)
    item = int(fitted.train_.item_ids[0])
    similar = json.loads(run("similar", model, "--item", item, "-n", 3, "--json"))["similar"]
    assert [line["id"] for line in similar] == fitted.similar_items(item, 3)[0].tolist()
    assert len(json.loads(run("similar", model, "--user", 7, "-n", 3, "--json"))["similar"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recommend"], "nobody given: name one of --user, --history and --users"),
        (["recommend", "--user", "7", "--history", "1"], "--user and --history given"),
        (["recommend", "--user", "nobody"], "unknown user 'nobody'"),
        (["recommend", "--user", "7", "-n", "0"], "at least 1"),
        (["recommend", "--user", "7", "--mix", "1.5"], "mix"),
        (["recommend", "--user", "7", "--where", "Horror"], "write name=value"),
        (["recommend", "--history", " , "], "history"),
        (["recommend", "--users", "-"], "needs --out"),
        (["similar"], "name one of --item and --user"),
        (["interests"], "name one of --user and --history"),
    ],
)
def test_bad_calls(model, arguments, message):
    verb, *rest = arguments
    assert message in run(verb, model, *rest, code=2)


def test_models_without_interests_say_so(tmp_path):
    save(EASE().fit(planted(40, 30, positives=6, n_categories=3).data), tmp_path / "ease")
    assert "knows no interests" in run("interests", tmp_path / "ease", "--user", 3, code=2)
    assert "knows no interests" in run("recommend", tmp_path / "ease", "--user", 3, "--mix", 0.5, code=2)


def test_export_and_doctor(model, tmp_path):
    run("export", model, "--to", "npy", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "item_vectors_.npy").exists()
    found = json.loads(run("doctor", "--json"))
    assert found["threads"]["used"] >= 1
    assert set(found) == {"dpcml", "packages", "extras", "threads", "kernels", "data"}
    assert "numba" in run("doctor")
