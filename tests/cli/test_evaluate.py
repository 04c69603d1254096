"""``dpcml evaluate`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcml import Report, evaluate, load, save
from dpcml.cli import app
from dpcml.data.readers import read
from dpcml.storage import CARD, read_card, signed


@pytest.fixture(autouse=True)
def trained(folder: Path) -> None:
    """Train a model on the file."""
    command = ["train", "--data", "likes.csv", "--model", "ease", "--out", "m", "--split-seed", "7", "--core", "2"]
    assert CliRunner().invoke(app, command).exit_code == 0


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["evaluate", *arguments])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


@pytest.mark.parametrize("protocol", ["text", "released", "strict"])
def test_the_report_is_that_of_the_very_split(folder, protocol):
    found = Report.from_json(run("m", "--protocol", protocol, "--k", "3,5", "--json"))
    split = read("likes.csv", core=2).split((0.6, 0.2, 0.2), 7)
    expected = evaluate(load("m/evaluation"), split.train, split.test, valid=split.valid, protocol=protocol, k=(3, 5))
    assert found.metrics == pytest.approx(expected.metrics)
    assert (found.split, found.protocol, found.label, found.model) == (split.hash, protocol, "ease", "ease")


def test_the_old_name_of_the_cut_offs_works_with_a_warning(folder):
    done = CliRunner().invoke(app, ["evaluate", "m", "--at", "7", "--json"])
    assert "NDCG@7" in json.loads(done.stdout)["metrics"]
    assert "--at is called --k now" in done.stderr


def test_only_the_metrics_asked_for(folder):
    found = json.loads(run("m", "--metrics", "MAP,NDCG@10,coverage", "--k", "7", "--json"))
    assert list(found["metrics"]) == ["MAP", "NDCG@10", "coverage@7"]
    assert "did you mean 'NDCG@10'" in run("m", "--metrics", "NDGC@10", code=2)


def test_a_table_for_people(folder, monkeypatch):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    said = run("../m")
    assert "protocol strict" in said
    assert "NDCG@20" in said
    assert "split per-user ratio 0.6/0.2/0.2 with seed 7" in said


def test_a_trained_preset_is_reported_under_its_name(folder):
    quick = ["--set", "dim=8", "--set", "epochs=2", "--set", "n_candidates=3", "--set", "n_vectors=2"]
    command = ["train", "--data", "planted", "--model", "dpcml2", "--out", "h", *quick, "--seed", "4"]
    assert CliRunner().invoke(app, command).exit_code == 0
    report = json.loads(run("h", "--json", "--threads", "1"))
    assert (report["label"], report["model"], report["parameters"]["random_state"]) == ("dpcml2", "dpcml", 4)
    assert "MaxDiv@3" in report["metrics"]
    assert "minority_R@10" in report["metrics"]
    assert {"interest_agreement", "interest_agreement_held_out"} <= set(report["metrics"])


def test_data_that_moved_can_be_named(folder):
    (folder / "likes.csv").rename(folder / "moved.csv")
    said = run("m", code=2)
    assert "its data cannot be read" in said
    assert "say with --data" in said
    assert "protocol strict" in run("m", "--data", "moved.csv")


def test_changed_data_is_refused_with_both_hashes(folder):
    trained_on = read_card("m")["record"]["data_hash"]
    rows = (folder / "likes.csv").read_text().splitlines()
    (folder / "likes.csv").write_text("\n".join(rows[:-1]))
    now = read("likes.csv", core=2).content_hash
    said = run("m", code=2)
    assert trained_on in said
    assert now in said
    (folder / "likes.csv").write_text("\n".join(rows))
    run("m")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        (["."], "is no model"),
        (["likes.csv"], "is a file"),
        (["m", "--protocol", "strikt"], "did you mean 'strict'"),
        (["m", "--k", "3,five"], "--k '3,five'"),
        (["m", "--k", "0"], "at least 1"),
        (["m", "--k", ""], "--k ''"),
        (["m", "--data", "planted"], "core"),
        (["m", "--threads", "0"], "n_threads=0"),
        (["all"], "trained on everything"),
        (["python"], "was not written by 'dpcml train'"),
        (["broken"], "damaged"),
    ],
)
def test_bad_input(folder, arguments, message):
    model = load("m")
    save(model, "python")
    save(model, "all", record={"split": None, "source": {}})
    save(model, "broken", record={"split": {}, "source": {}})
    assert message in run(*arguments, code=2)


def test_another_split_than_then_is_refused(folder):
    card = json.loads((folder / "m" / CARD).read_text())
    card["record"]["split"]["seed"] = 8
    (folder / "m" / CARD).write_text(json.dumps(signed(card)))
    assert f"was {card['record']['split']['hash']}" in run("m", code=2)
