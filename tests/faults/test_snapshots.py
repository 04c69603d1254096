"""Finding 1: processes load a model while another one saves to the same folder."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dpcml import EASE, Interactions, save
from dpcml.serving.model_store import LoadedModel
from dpcml.storage import load, load_with_card, read_card

SAVES = 150
WRITER = f"""
import sys
from pathlib import Path
from dpcml.storage import load, save

models = [load(sys.argv[1] + name, mapped=False) for name in "ab"]
print("ready", flush=True)
sys.stdin.readline()
for number in range({SAVES}):
    save(models[number % 2], sys.argv[1] + "m", record={{"name": "ab"[number % 2]}})
"""


def world(name: str, size: int) -> EASE:
    """Return a model of which ids, parameters and weights tell the name."""
    likes = np.triu(np.ones((size, size)))
    ids = [f"{name}{k}" for k in range(size)]
    return EASE(l2=float(ord(name))).fit(Interactions.from_csr(likes, user_ids=ids, item_ids=ids))


@pytest.mark.parametrize("how", ["mapped", "read", "server"])
def test_a_load_is_of_one_saving_while_another_process_saves(tmp_path, how):
    pytest.importorskip("fastapi")
    weights = {}
    for name in "ab":  # the same sizes: only the content differs
        save(world(name, 40), tmp_path / name)
        weights[name] = load(tmp_path / name, mapped=False).weights_.tobytes()
    save(load(tmp_path / "a"), tmp_path / "m", record={"name": "a"})
    command = [sys.executable, "-c", WRITER, f"{tmp_path}/"]
    loads, seen = 0, set()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "ready\n"
        writer.stdin.write("go\n")
        writer.stdin.flush()
        while writer.poll() is None:
            if how == "server":
                found = LoadedModel.load(tmp_path / "m")
                model, card = found.model, found.card
            else:
                model, card = load_with_card(tmp_path / "m", mapped=how == "mapped")
            name = card["record"]["name"]
            assert model.l2 == card["parameters"]["l2"] == ord(name)
            assert str(model.train_.user_ids[0]) == f"{name}0"
            assert model.weights_.tobytes() == weights[name]
            assert read_card(tmp_path / "m")["kind"] == "dpcml model"
            loads, seen = loads + 1, seen | {name}
    assert writer.returncode == 0
    assert loads > 5
    assert seen == {"a", "b"} or loads < 20
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b", "m"]
