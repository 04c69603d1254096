"""``dpcml tune`` as a user meets it: files, a kill in the middle, and what to do with the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml import load
from dpcml.cli import app
from dpcml.cli.options import read_config
from dpcml.data.shards import Shards
from dpcml.data.synthetic import planted

SMALL = ["--set", "dim=8", "--set", "n_vectors=2", "--set", "n_candidates=3", "--workers", "1"]


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_the_result_trains_the_same_model(folder):
    asked = ("tune", "--data", "likes.csv", "--model", "dpcml2", "--metric", "MAP", "--seed", "2", "--split-seed", "1")
    found = json.loads(run(*asked, *SMALL, "--quick", "--budget", "3", "--out", "t", "--json"))
    assert {"out", "model", "trials", "best_value", "best_parameters", "seconds"} <= found.keys()
    assert (found["out"], found["model"], found["trials"], found["metric"]) == ("t", "dpcml2", 3, "MAP")
    config = read_config(Path("t/best.toml"))
    assert (config["model"], config["seed"], config["split_seed"]) == ("dpcml2", 2, 1)
    assert json.loads(json.dumps(config["parameters"])) == found["best_parameters"]
    trained = json.loads(run("train", "--config", "t/best.toml", "--out", "m", "--json"))
    assert trained["validation"] == found["best_value"]
    assert trained["split"]["hash"] == found["split"]
    assert pl.read_csv("t/trials.csv")["asked_epochs"].to_list() == [5, 5, 5], "--quick"


def test_shards_are_tuned_and_trained_on_the_same_parts(folder):
    run("data", "ingest", "likes.csv", "--split-seed", "3", "--out", "shards")
    asked = ("tune", "--data", "shards", "--model", "dpcml2", *SMALL)
    found = json.loads(run(*asked, "--quick", "--budget", "1", "--out", "t", "--json"))
    trained = json.loads(run("train", "--config", "t/best.toml", "--out", "m", "--json"))
    assert trained["split"]["hash"] == found["split"] == Shards.open("shards").split().hash
    assert trained["validation"] == found["best_value"]
    assert "--split-seed 2: shards has a split of its own" in run(*asked, "--split-seed", "2", "--out", "u", code=2)


def test_quick_applies_to_a_blend(folder):
    small = ("--set", "dim=8", "--set", "ials__dim=8", "--set", "ials__epochs=2")
    run("tune", "--data", "likes.csv", "--model", "blend", *small, "--quick", "--budget", "1", "--out", "t")
    assert pl.read_csv("t/trials.csv")["epochs"].to_list() == [5]
    assert read_config(Path("t/best.toml"))["parameters"]["dpcml__epochs"] == 5


def test_a_killed_search_goes_on_where_it_was(folder):
    planted(300, 500, seed=1).write_csv(folder / "large.csv")
    asked = ["tune", "--data", "large.csv", "--model", "ease", "--budget", "12"]
    process = subprocess.Popen([sys.executable, "-m", "dpcml", *asked, "--out", "killed"], stderr=subprocess.DEVNULL)
    trials = folder / "killed" / "trials.csv"
    while not trials.exists() or pl.read_csv(trials).height < 2:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = pl.read_csv(trials)
    assert 2 <= before.height < 12
    resumed = json.loads(run(*asked, "--out", "killed", "--json"))
    whole = json.loads(run(*asked, "--out", "whole", "--json"))
    assert pl.read_csv(trials).head(before.height).equals(before, null_equal=True)
    assert resumed["best_parameters"] == whole["best_parameters"]
    assert resumed["trials"] == 12
    assert {"best.toml", "trials.csv", "trials.journal"} <= {file.name for file in trials.parent.iterdir()}


def test_ctrl_c_ends_all_workers_and_says_how_to_go_on(folder):
    command = [sys.executable, "-m", "dpcml", "tune", "--data", "likes.csv", "--model", "itemknn", "--space", "wide"]
    more = ["--budget", "500", "--workers", "2", "--out", "t"]
    process = subprocess.Popen(
        [*command, *more],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job of a shell ignores Ctrl-C
    )
    while not Path("t/trials.csv").exists() or pl.read_csv("t/trials.csv").height < 2:
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to all of them
    said = process.communicate(timeout=60)[1]  # ends when nobody is left who could write: the workers are gone
    assert process.returncode == 130, said
    assert said.splitlines() == ["finished trials are in t/trials.csv: go on with the same command", "interrupted"]


def test_a_place_that_cannot_be_written_to_is_found_at_once(folder):
    Path("taken").write_text("a file")
    said = run("tune", "--data", "likes.csv", "--model", "itemknn", "--out", "taken", code=2)
    assert "taken/trials.journal: cannot make its folder" in said


def test_finished_trials_count_unless_asked_otherwise(folder):
    asked = ("tune", "--data", "likes.csv", "--model", "itemknn", "--budget", "3", "--out", "t", "--json")
    honest = json.loads(run(*asked))["best_value"]
    pl.read_csv("t/trials.csv").with_columns(value=pl.lit(0.99)).write_csv("t/trials.csv")
    Path("t/trials.journal").unlink()
    assert json.loads(run(*asked))["best_value"] == 0.99, "taken from the table"
    assert json.loads(run(*asked, "--no-resume"))["best_value"] == honest


def test_what_people_see(folder):
    text = run("tune", "--data", "likes.csv", "--model", "itemknn", "--budget", "2", "--out", "t", "--core", "2")
    assert "itemknn: 2 trials" in text
    assert "(validation, released protocol)" in text
    assert "next: dpcml train --config t/best.toml" in text
    assert read_config(Path("t/best.toml"))["reading"] == {"core": 2}, "how the file was read is kept"


def test_training_reads_the_data_as_the_search_did(folder, monkeypatch):
    data = planted(120, 90, positives=15, n_categories=4, seed=3).data
    rows = [f"{u},{i},{1 + (u + i) % 5},{i * 7 % 50}" for u, i in zip(data.rows, data.indices, strict=True)]
    Path("stars.csv").write_text("\n".join(["who,what,stars,day", *rows]))
    films = [f"{k},{data.items.title(k)},{'|'.join(data.items.attributes.of(k))}" for k in range(data.n_items)]
    Path("films.csv").write_text("\n".join(["what,title,genres", *films]))
    reading = ["--user", "who", "--item", "what", "--rating", "stars", "--time", "day", "--min-rating", "3"]
    more = ["--items", "films.csv", "--weight", "stars", "--split", "time"]
    asked = ["tune", "--data", "stars.csv", "--model", "itemknn", "--budget", "2", *reading, *more, "--out", "t"]
    found = json.loads(run(*asked, "--json"))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    trained = json.loads(run("train", "--config", "../t/best.toml", "--out", "m", "--json"))
    assert trained["split"]["hash"] == found["split"]
    assert trained["split"]["rule"] == "by time 0.6/0.2/0.2"
    model = load("m")
    assert model.train_.low_rated is not None
    assert model.train_.weights is not None
    assert model.train_.items.attributes is not None
    assert json.loads(run("evaluate", "m", "--json"))["split"] == found["split"]
    other = json.loads(run("train", "--config", "../t/best.toml", "--min-rating", "4", "--out", "n", "--json"))
    assert other["positives"] < trained["positives"], "the command line wins"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--space", "gird"], "did you mean 'grid'"),
        (["--model", "itemkn"], "did you mean 'itemknn'"),
        (["--sampler", "tep"], "did you mean 'tpe'"),
        (["--engine", "rya"], "did you mean 'ray'"),
        (["--metric", "P@"], "metric='P@'"),
        (["--set", "kk=3"], "has no parameter 'kk'"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_files(folder, arguments, said):
    text = run("tune", "--data", "likes.csv", "--model", "itemknn", "--out", "t", *arguments, code=2)
    assert said in text
    assert len(text.strip().splitlines()) == 1
    assert not Path("t").exists()
