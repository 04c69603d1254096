"""A small world, a model that trains on it in no time, and a process of its own to kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpcml import DPCML, Interactions

SETTINGS = {
    "n_vectors": 3,
    "dim": 8,
    "n_candidates": 4,
    "batch_size": 32,
    "validate_every": 2,
    "init": "random",
    "pull": 0.0,
    "popularity": 0.0,
    "average": 0.0,
}

PROGRAM = """
import sys, time
from pathlib import Path
import numpy as np
from dpcml import DPCML, Checkpoint, Interactions

likes = Interactions.from_csr(np.load(sys.argv[1]))
train, valid, _ = likes.split((0.6, 0.2, 0.2), 0)

def slowly(history):
    print("epoch", len(history.epochs), flush=True)
    time.sleep(float(sys.argv[4]))

model = DPCML(**eval(sys.argv[3]))
model.fit(train, valid, checkpoint=Checkpoint(sys.argv[2], every_epochs=1), callbacks=[slowly])
"""


@pytest.fixture(scope="session")
def likes() -> Interactions:
    """Two kinds of users, 50 in all, and 40 items."""
    rng = np.random.default_rng(1)
    liked = rng.random((50, 40)) < 0.5
    liked[:25, 25:] = False
    liked[25:, :15] = False
    return Interactions.from_csr(liked)


@pytest.fixture(scope="session")
def parts(likes):
    return likes.split((0.6, 0.2, 0.2), 0)


@pytest.fixture(scope="session")
def model():
    """Return a function that makes a small DPCML, all with the same kernel."""
    return lambda **changes: DPCML(**{**SETTINGS, **changes})


@pytest.fixture
def start_training(likes, tmp_path):
    """Return a function that starts training in a process of its own, with a checkpoint after every epoch."""
    started = []

    def start(folder: Path, pause: float = 0.05, **changes) -> subprocess.Popen[str]:
        np.save(tmp_path / "likes.npy", likes.csr.toarray())
        settings = repr({**SETTINGS, **changes})
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "likes.npy"), str(folder), settings, str(pause)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
