"""Model directories: complete, the same bits, whole or not at all, and clear words for everything else."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import sparse

import dpcml
from dpcml import CML, DPCML, EASE, GFJA, Interactions, ItemKNN, Popularity
from dpcml.data.items import Attributes, ItemTable
from dpcml.storage import CARD, FILES, MODEL, free_place, load, read_card, save
from dpcml.utils.errors import DataError, NotFittedError, ParameterError, RecoveryWarning

QUICK = {"dim": 8, "epochs": 3, "n_candidates": 3}


@pytest.fixture
def folder(blocks, tmp_path):
    """A saved model with text ids of users and number ids of items."""
    return save(ItemKNN(k=5).fit(blocks), tmp_path / "model")


def test_everything_survives(tmp_path):
    titles = np.array(["Ä\n", "", "c", "ü"], dtype=object)
    table = ItemTable(
        np.array(["a", "\ud800", "c\0", "ü"], dtype=object), titles, Attributes.from_sets(["x", "", "xy", "y"])
    )
    train = Interactions.from_codes(
        np.array([0, 0, 1, 2]), np.array([0, 3, 1, 2]), np.array([5, 2**40, -3]), table,
        timestamps=np.array([1.5, 2, 3, 4]), catalogue_size=9,
    )  # fmt: skip
    train = train.split((0.5, 0.5), 1).train
    save(EASE(l2=3.0).fit(train), tmp_path / "m", record={"why": "a test"})
    model = load(tmp_path / "m")
    again = model.train_
    assert isinstance(model, EASE)
    assert model.l2 == 3.0
    assert again.content_hash == train.content_hash
    assert again.split_hash == train.split_hash
    assert again.catalogue_size == 9
    assert again.preparation == train.preparation
    assert again.timestamps.tolist() == train.timestamps.tolist()
    assert again.items.titles.tolist() == titles.tolist()
    assert [again.items.attributes.of(k) for k in range(4)] == [["x"], [], ["x", "y"], ["y"]]
    card = read_card(tmp_path / "m")
    assert (card["model"], card["class"], card["version"]) == ("ease", "EASE", dpcml.__version__)
    assert (card["data_hash"], card["split_hash"]) == (train.content_hash, train.split_hash)
    assert card["record"] == {"why": "a test"}
    assert set(card["files"]) == set(FILES)


@pytest.mark.parametrize("kind", [DPCML, CML, GFJA])
def test_vectors_and_history_come_back_without_a_copy(kind, blocks, tmp_path):
    train, valid, _ = blocks.split((0.6, 0.2, 0.2), 0)
    bounds = {} if kind is CML else {"diversity": (0.1, None)}
    model = kind(**QUICK, **bounds, validate_every=1, patience=2).fit(train, valid=valid)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    for name in ("user_vectors_", "item_vectors_"):
        vectors = getattr(again, name)
        assert vectors.tobytes() == getattr(model, name).tobytes()
        assert not vectors.flags.owndata
        assert not vectors.flags.writeable
        assert vectors.flags.aligned
    users = np.arange(train.n_users)
    assert again.score(users).tobytes() == model.score(users).tobytes()
    arrays = load_file(tmp_path / "m" / MODEL)
    found = {"popularity_weight_", "vector_rate_"} if kind is DPCML else set()  # on the validation part
    assert set(arrays) == {"user_vectors_", "item_vectors_"} | found


def test_loading_reads_no_vectors(tmp_path):
    """A model of 200 MB is loaded by a process that may use far less memory for it."""
    n = 7000
    model = EASE(l2=1.0)
    model.form_, model.train_ = "dense", Interactions.from_csr(sparse.eye_array(n, format="csr"))
    model.weights_ = np.zeros((n, n), dtype=np.float32)
    save(model, tmp_path / "m")
    code = """
import sys
from pathlib import Path
from dpcml.storage import load
def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
before = resident()
model = load(sys.argv[1])
print(resident() - before)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40 * 1024  # kB


def test_the_old_model_is_replaced_and_stays_usable_where_it_is_loaded(blocks, folder):
    old = load(folder)
    expected = old.score([0, 1])
    save(Popularity().fit(blocks), folder)
    assert isinstance(load(folder), Popularity)
    assert (old.score([0, 1]) == expected).all()
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]


def test_files_can_be_read_by_whoever_may_read_the_card(folder):
    assert len({(folder / name).stat().st_mode for name in (CARD, *FILES)}) == 1


def test_an_empty_folder_and_new_parents_will_do(blocks, tmp_path):
    (tmp_path / "empty").mkdir()
    model = Popularity().fit(blocks)
    for place in (tmp_path / "empty", tmp_path / "a" / "b[1]"):
        assert (
            load(save(model, place)).recommend("user-3", n=2)[0].tolist() == model.recommend("user-3", n=2)[0].tolist()
        )


@pytest.mark.parametrize("stage", ["rename", "rmtree", "file", "first"])
def test_a_crash_at_any_moment_leaves_a_loadable_model(blocks, folder, stage):
    """The process dies (no clean-up runs) at each step of replacing a model."""
    code = f"""
import os, shutil, sys
from pathlib import Path
import numpy as np
from dpcml import Popularity, storage
from dpcml.utils import files
stage, folder = {stage!r}, Path({str(folder)!r})
rename = Path.rename
def die(*_, **__): os._exit(9)
def second(self, to):
    return die() if self.name.endswith(".new") else rename(self, to)
if stage == "rename": Path.rename = second
if stage == "first": Path.rename = die
if stage == "rmtree": shutil.rmtree = die
if stage == "file": storage._write_json = die
storage.save(Popularity().fit(np.eye(5)), folder)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    expected = Popularity if stage == "rmtree" else ItemKNN
    with pytest.warns(RecoveryWarning) if stage == "rename" else nullcontext():
        assert isinstance(load(folder), expected)
    save(EASE().fit(blocks), folder)
    assert isinstance(load(folder), EASE)
    assert [file.name for file in folder.parent.iterdir()] == [folder.name], "what the crash left is cleared away"


def test_a_full_disk_leaves_the_old_model(folder):
    code = f"""
import resource
import numpy as np
from dpcml import EASE
from dpcml.utils.errors import DataError
from dpcml.storage import save
model = EASE().fit(np.eye(300))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save(model, {str(folder)!r})
except DataError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}: cannot be written (File too large); make room or choose another place\n"
    assert isinstance(load(folder), ItemKNN)
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]


def test_a_copy_that_was_put_aside_answers_only_with_a_warning(blocks, folder):
    """Finding 13: what a killed save left answered for a model that somebody had removed, without a word."""
    folder.rename(folder.with_name(".model.replaced"))
    with pytest.warns(RecoveryWarning, match=r"model: is missing; \.model\.replaced, .* rename it, or remove it"):
        assert isinstance(load(folder), ItemKNN)
    save(Popularity().fit(blocks), folder)
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]
    shutil.rmtree(folder)
    with pytest.raises(DataError, match="there is no such folder"):
        load(folder)


def test_a_model_is_saved_and_loaded_when_the_current_folder_is_gone(blocks, tmp_path, monkeypatch):
    """Finding 19: a deleted current folder gave a traceback, even for full paths."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert isinstance(load(save(Popularity().fit(blocks), tmp_path / "m")), Popularity)
    with pytest.raises(DataError, match="m: the current folder has been deleted"):
        save(Popularity().fit(blocks), "m")
    with pytest.raises(DataError, match="m: there is no such folder"):
        load("m")


def test_a_model_that_was_read_survives_a_file_that_is_cut(blocks, tmp_path):
    """Finding 20: a mapped one does not (SIGBUS), as the docs say."""
    save(EASE().fit(blocks), tmp_path / "m")
    code = """
import sys
from pathlib import Path
from dpcml.storage import load

model = load(sys.argv[1], mapped=sys.argv[2] == "mapped")
with (Path(sys.argv[1]) / "model.safetensors").open("rb+") as file:
    file.truncate(0)
print(model.weights_.sum() != 0)
"""
    for how, expected in (("read", (0, "True\n")), ("mapped", (-signal.SIGBUS, ""))):
        save(EASE().fit(blocks), tmp_path / "m")
        command = [sys.executable, "-c", code, tmp_path / "m", how]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == expected


def test_a_folder_that_is_no_model_is_never_overwritten(blocks, folder, tmp_path, monkeypatch):
    model = Popularity().fit(blocks)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (folder / "notes.txt").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / CARD).write_text('{"kind": "something else"}')
    for place, word in (("thesis", "chapter.txt"), ("model", "notes.txt"), ("foreign", CARD)):
        with pytest.raises(DataError, match=f"{place}: holds {word}"):
            save(model, tmp_path / place)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert isinstance(load(folder), ItemKNN)
    with pytest.raises(DataError, match=r"chapter\.txt: is a file"):
        save(model, tmp_path / "thesis" / "chapter.txt")
    with pytest.raises(DataError, match="cannot be written"):
        save(model, tmp_path / "thesis" / "chapter.txt" / "m")
    monkeypatch.chdir(tmp_path / "thesis")
    for here in (".", ".."):
        with pytest.raises(DataError, match="current folder"):
            free_place(here)


def test_what_cannot_be_saved(blocks, tmp_path):
    with pytest.raises(NotFittedError):
        save(Popularity(), tmp_path / "m")

    class Mine(Popularity):
        name = "mine"

    with pytest.raises(ParameterError, match="Mine is not registered"):
        save(Mine().fit(blocks), tmp_path / "m")
    model = DPCML(**QUICK).fit(blocks).set_params(dim=9)
    with pytest.raises(DataError, match=r"shape \(60, \d, 8\).*\(60, -1, 9\); fit it anew"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


OLD_NAMES = {"init": "start", "optimizer": "optimiser", "max_user_run": "together"}
GONE = {"cml": {"n_vectors": 1, "diversity": [0.02, 0.15], "diversity_weight": 0.0, "diversity_per": "user"}}


@pytest.mark.parametrize("kind", [DPCML, CML, GFJA])
def test_a_folder_with_the_parameter_names_of_an_older_version_loads_without_a_warning(kind, blocks, tmp_path):
    model = kind(**QUICK, init="random", max_user_run=2).fit(blocks)
    save(model, tmp_path / "m")
    card = json.loads((tmp_path / "m" / "model.json").read_text())
    old = {OLD_NAMES.get(name, name): value for name, value in card["parameters"].items()}
    old |= GONE.get(kind.name, {}) | ({"projection": "sphere"} if kind is GFJA else {})
    card = {key: value for key, value in card.items() if key != "checksum"} | {"format": 1}
    (tmp_path / "m" / "model.json").write_text(json.dumps({**card, "parameters": old}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.score([0, 7]).tobytes() == model.score([0, 7]).tobytes()
    wrong = {"cml": {"n_vectors": 3}, "gfja": {"projection": "ball"}, "dpcml": {"thread": 1}}[kind.name]
    (tmp_path / "m" / "model.json").write_text(json.dumps({**card, "parameters": {**old, **wrong}}))
    with pytest.raises(DataError, match=next(iter(wrong))):
        load(tmp_path / "m")


def test_a_folder_name_that_is_too_long_is_our_error():
    with pytest.raises(DataError, match=r"cannot be looked into \(File name too long\); name another folder"):
        free_place("x" * 5000)
