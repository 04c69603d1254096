"""``dpcml train`` as a user meets it: options, files, crashes, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from dpcml import DPCML, EASE, Blend, load
from dpcml.cli import app
from dpcml.data.synthetic import planted
from dpcml.models.presets import PRESETS
from dpcml.storage import CARD, MODEL, read_card

QUICK = ["--set", "dim=8", "--set", "epochs=4", "--set", "n_candidates=3", "--set", "n_vectors=2"]


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["train", *arguments])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dpcml", "train", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_json_is_the_last_line_and_the_model_is_there(folder):
    done = CliRunner().invoke(app, ["train", "--data", "likes.csv", "--seed", "5", "--out", "m", *QUICK, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])
    assert json.loads(done.stdout) == found
    assert {"out", "model", "seconds", "epochs", "best_epoch", "positives_per_second"} <= found.keys()
    assert (found["out"], found["model"], found["epochs"], found["seed"]) == ("m", "blend", 4, 5)
    assert 1 <= found["best_epoch"] <= 4
    assert found["positives_per_second"] > 0
    assert "guessed" in done.stderr, "says what it guessed of the file"
    blend = load("m")
    assert isinstance(blend, Blend), "the recommended model"
    model = blend.multi_interest
    assert isinstance(model, DPCML)
    assert (model.dim, model.random_state, model.user_vectors_.shape) == (8, 5, (120, 2, 8))
    assert load("m/evaluation").train_.split_hash == found["split"]["hash"]
    assert model.train_.n_positives == found["refit"]["positives"] > found["positives"]
    assert 0 < found["test"]["metrics"]["NDCG@10"] < 1
    assert sorted(file.name for file in folder.iterdir()) == ["likes.csv", "m"], "no checkpoint stays behind"


def test_models_with_other_seeds_share_a_split(folder):
    found = [
        json.loads(run("--data", "likes.csv", "--out", f"m{k}", "--seed", str(k), *more, *QUICK, "--json"))
        for k, more in enumerate(([], [], ["--split-seed", "1"]))
    ]
    hashes = [one["split"]["hash"] for one in found]
    assert hashes[0] == hashes[1] != hashes[2]
    first, second = (load_file(f"m{k}/{MODEL}")["dpcml.item_vectors_"] for k in range(2))
    assert (first != second).any()


def test_models_without_epochs_and_all_the_data(folder):
    found = json.loads(run("--data", "likes.csv", "--model", "ease", "--out", "e", "--all", "--json", "--seed", "1"))
    assert (found["epochs"], found["best_epoch"], found["split"], found["seed"]) == (0, 0, None, None)
    assert found["positives_per_second"] > 0
    model = load("e")
    assert isinstance(model, EASE)
    assert model.train_.n_positives == found["positives"] == len((folder / "likes.csv").read_text().splitlines()) - 1


def test_without_refit_the_model_is_that_of_the_training_part(folder):
    found = json.loads(run("--data", "likes.csv", "--model", "ease", "--out", "e", "--no-refit", "--json"))
    assert found["refit"] is None
    assert load("e").train_.n_positives == found["positives"]
    assert not (folder / "e" / "evaluation").exists()


def test_both_reports_are_shown(folder):
    said = run("--data", "likes.csv", "--model", "ease", "--out", "e")
    assert "held out (strict protocol, 120 users): P@10" in said
    assert "for use: trained on all" in said


def test_presets(folder):
    run("--data", "likes.csv", "--model", "dpcml2", "--out", "m", *QUICK, "--quiet")
    model = load("m")
    assert type(model) is PRESETS["dpcml2"][0]
    assert model.init == PRESETS["dpcml2"][1]["init"]
    assert read_card("m")["record"]["label"] == "dpcml2"


def test_config_file_and_command_line(folder):
    (folder / "run.toml").write_text(
        'data = "likes.csv"\nmodel = "dpcml2"\nseed = 3\nout = "m"\n'
        "[parameters]\ndim = 8\nepochs = 9\nn_candidates = 3\nn_vectors = 2\n"
        'patience = "none"\ndiversity = [0.1, 0.2]\n'
    )
    run("--config", "run.toml", "--set", "epochs=2", "--seed", "4", "--set", "init=random", "--threads", "1")
    model = load("m")
    said = (model.dim, model.epochs, model.random_state, model.init, model.patience, model.n_threads)
    assert said == (8, 2, 4, "random", None, 1)
    assert model.diversity == (0.1, 0.2)
    assert read_card("m")["record"]["label"] == "dpcml2"


def test_reading_options_reach_the_reader(folder):
    (folder / "odd.txt").write_text("x;y;z\n" + "".join(f"{u};{i};{u * i % 5}\n" for u in range(30) for i in range(12)))
    columns = ["--format", "csv", "--separator", ";", "--user", "x", "--item", "y", "--rating", "z"]
    asked = ["--data", "odd.txt", *columns, "--min-rating", "2", "--model", "popularity", "--out", "m"]
    found = json.loads(run(*asked, "--json", "--all"))
    assert found["positives"] == sum(u * i % 5 >= 2 for u in range(30) for i in range(12))


def test_planted_is_the_planted_world(folder):
    found = json.loads(run("--data", "planted", "--model", "popularity", "--out", "m", "--json"))
    assert found["data_hash"] == planted().data.content_hash


def test_threads_do_not_change_the_bits(folder):
    for threads in ("1", "2"):
        run("--data", "likes.csv", "--out", f"m{threads}", "--threads", threads, "--quiet", *QUICK)
    one, two = (load_file(f"m{k}/{MODEL}") for k in "12")
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "dpcml3"], "unknown model or preset 'dpcml3': did you mean 'dpcml"),
        (["--model", "eaze"], "did you mean 'ease'?"),
        (["--set", "lerning_rate=1"], "no parameter 'lerning_rate': did you mean 'learning_rate'?"),
        (["--model", "ease", "--set", "l3=1"], "EASE has no parameter 'l3'"),
        (["--set", "diversity=[0.5, 0.1]"], "the lower bound must not exceed the upper one"),
        (["--set", 'diversity=["a", 0.1]'], "diversity="),
        (["--set", "diversity=0.1"], "diversity=0.1"),
        (["--set", "n_vectors=0"], "n_vectors=0: must be"),
        (["--set", "n_vectors=two"], "n_vectors='two': known: adaptive"),
        (["--set", "margin=-1"], "margin=-1: must be"),
        (["--set", "margin=nan"], "margin=nan: must be"),
        (["--set", "dim=0"], "dim=0: must be"),
        (["--set", "init=spectrl"], "did you mean 'spectral'"),
        (["--set", "epochs"], "write key=value"),
        (["--set", "epochs=1", "--set", "epochs=2"], "set twice"),
        (["--seed", "-1"], "random_state=-1"),
        (["--split-seed", "-1"], "seed=-1"),
        (["--seed", "1", "--set", "random_state=2"], "contradict"),
        (["--threads", "0"], "n_threads=0"),
        (["--min-user-interactions", "1000"], "min_user_interactions=1000"),
        (["--data", "none.csv"], "no file and no data set 'none.csv'"),
        (["--data", "like.csv"], "did you mean 'likes.csv'?"),
        (["--items", "like.csv"], "like.csv: no such file; did you mean 'likes.csv'?"),
        (["--weight", "plays"], "no column 'plays' for the weight"),
        (["--split", "tim"], "split='tim'"),
        (["--split", "time"], "needs the time of each positive"),
        (["--config", "reading.toml"], "unknown key 'min_ratings' in [reading]: did you mean 'min_rating'?"),
        (["--config", "ids.toml"], "text_ids = 'no' in [reading]: must be true or false"),
        (["--data", "empty.csv"], "empty.csv"),
        (["--data", "one.csv"], "too small"),
        (["--data", "planted", "--core", "3"], "core"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--config", "broken.toml"], "broken.toml: no valid TOML"),
        (["--config", "typo.toml"], "unknown key 'sed': did you mean 'seed'?"),
        (["--config", "type.toml"], "seed = 'one': must be a whole number"),
        (["--out", "thesis"], "thesis: holds chapter.txt, which is no part of a model"),
        (["--out", "likes.csv"], "likes.csv: is a file"),
        (["--out", "."], "current folder"),
    ],
)
def test_bad_input(folder, arguments, message):
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter.txt").write_text("years of work")
    (folder / "empty.csv").write_text("user,item\n")
    (folder / "one.csv").write_text("user,item\n1,2\n")
    (folder / "broken.toml").write_text("model = \n")
    (folder / "typo.toml").write_text("sed = 1\n")
    (folder / "ids.toml").write_text('[reading]\ntext_ids = "no"\n')
    (folder / "reading.toml").write_text("[reading]\nmin_ratings = 1\n")
    (folder / "type.toml").write_text('seed = "one"\n')
    before = sorted(folder.rglob("*"))
    said = run("--data", "likes.csv", "--out", "m", *arguments, code=2)
    assert message in said
    assert said.splitlines()[-1].startswith("error: ")
    assert sorted(folder.rglob("*")) == before, "nothing is left behind"


def test_what_is_missing_is_named(folder):
    assert "--data is missing" in run("--out", "m", code=2)
    assert "--out is missing" in run("--data", "likes.csv", code=2)


LONG = [*QUICK, "--set", "patience=none"]
LONG[LONG.index("epochs=4")] = "epochs=150"


def started(arguments: list[str], checkpoint: Path) -> subprocess.Popen[str]:
    """Start a run and wait until it has left a checkpoint."""
    running = process(*arguments)
    while not checkpoint.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.001)
    return running


def test_killed_and_resumed_gives_the_bits_of_a_run_without_a_break(folder):
    arguments = ["--data", "likes.csv", *LONG, "--checkpoint-every", "1", "--quiet"]
    run(*arguments, "--out", "whole")
    running = started([*arguments, "--out", "cut"], folder / "cut.checkpoint" / "checkpoint.safetensors")
    running.kill()
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    assert not (folder / "cut").exists()
    run(*arguments, "--out", "cut", "--resume", "--threads", "1")
    whole, cut = (load_file(f"{name}/{MODEL}") for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(whole[name].tobytes() == cut[name].tobytes() for name in whole)
    losses = [[epoch["loss"] for epoch in read_card(name)["history"]["epochs"]] for name in ("whole", "cut")]
    assert losses[0] == losses[1]
    assert not (folder / "cut.checkpoint").exists()


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(folder):
    arguments = ["--data", "likes.csv", *LONG, "--checkpoint-every", "1", "--out", "m"]
    running = started(arguments, folder / "m.checkpoint" / "checkpoint.safetensors")
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert out == ""
    assert "--resume" in said
    assert "Traceback" not in said
    assert (folder / "m.checkpoint" / "checkpoint.safetensors").exists()
    found = json.loads(run(*arguments, "--resume", "--json"))
    assert found["epochs"] == 150


def test_a_checkpoint_of_other_settings_is_refused(folder):
    arguments = ["--data", "likes.csv", *LONG, "--checkpoint-every", "1", "--out", "m", "--quiet"]
    running = started(arguments, folder / "m.checkpoint" / "checkpoint.safetensors")
    running.kill()
    running.communicate()
    assert "margin" in run(*arguments, "--resume", "--set", "margin=0.5", code=2)


def test_a_full_disk_keeps_the_old_model(folder):
    run("--data", "likes.csv", "--model", "popularity", "--out", "m", "--quiet")
    before = (folder / "m" / CARD).read_bytes()
    limited = f"ulimit -f 8; exec {sys.executable} -m dpcml train --data likes.csv --model ease --out m"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert f"{folder / 'm'}: cannot be written (File too large" in done.stderr
    assert (folder / "m" / CARD).read_bytes() == before
    load("m")


def test_resume_without_a_checkpoint_starts_anew_and_says_so(folder):
    done = CliRunner().invoke(app, ["train", "--data", "likes.csv", "--out", "m", "--resume", *QUICK])
    assert done.exit_code == 0
    assert "no checkpoint" in done.stderr
    assert done.stdout.endswith("\nnext: dpcml recommend m --user 0 --explain\n")
    assert CliRunner().invoke(app, done.stdout.splitlines()[-1].split()[2:]).exit_code == 0


def test_a_model_in_the_folder_is_replaced_with_a_word(folder):
    run = ["train", "--data", "likes.csv", "--out", "m", "--model", "popularity"]
    assert "replaced" not in CliRunner().invoke(app, run).stderr
    assert "m has a model: it is replaced when the new one is whole" in CliRunner().invoke(app, run).stderr


def test_quiet_says_nothing(folder):
    done = CliRunner().invoke(app, ["train", "--data", "likes.csv", "--out", "m", "--quiet", *QUICK])
    assert (done.exit_code, done.output) == (0, "")
