"""What goes wrong on a cluster: lost workers and nodes, full disks, little memory."""

import errno
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dpcml import DPCML, Checkpoint
from dpcml.scale import RayRunner
from dpcml.scale.collective import Alone
from dpcml.scale.runner import WorkerLostWarning
from dpcml.scale.worker import SharedCheckpointer
from dpcml.utils.errors import DataError, ParameterError

ROOT = Path(__file__).parents[2]


def same(one, other):
    return all(np.array_equal(value, other.to_arrays()[name]) for name, value in one.to_arrays().items())


def kill_a_worker(folder):
    psutil = pytest.importorskip("psutil")
    while len(list(folder.glob("worker-*/checkpoint.safetensors"))) < 2:
        time.sleep(0.02)
    for process in psutil.Process().children(recursive=True):  # Ray of this test, and nobody else's
        if any("TrainingWorker" in word for word in process.cmdline()):
            process.kill()
            return


def test_a_killed_worker_starts_again_from_the_checkpoint(ray_cluster, parts, model, tmp_path):
    model.set_params(epochs=40, patience=None)
    undisturbed = model.fit(parts.train, parts.valid, runner=RayRunner(2))
    killer = threading.Thread(target=kill_a_worker, args=(tmp_path,), daemon=True)
    killer.start()
    with pytest.warns(WorkerLostWarning, match="going on from the last checkpoint"):
        found = DPCML(**model.get_params()).fit(
            parts.train, parts.valid, runner=RayRunner(2), checkpoint=Checkpoint(tmp_path, every_epochs=1)
        )
    assert len(found.history_.epochs) == 40
    assert same(found, undisturbed)


def test_a_node_that_is_killed_does_not_end_the_training():
    command = [sys.executable, "-m", "tests.scale.node_loss"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "timed out during startup" in done.stderr:
        pytest.skip("Ray does not start here: it gives a node 30 seconds, which a busy machine may not have")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout.splitlines()[-1])["runs"]
    assert run["killed"]
    assert run["restarts"] >= 1  # Ray may tell of a lost node once more while the workers start again
    assert run["same_bits"]


def test_errors_of_a_worker_are_those_of_the_library(ray_cluster, parts, model, tmp_path):
    """A disk that is full on one worker: the error names the file, and is not tried again."""
    (tmp_path / "worker-1").write_text("a file where the worker needs a folder")
    with pytest.raises(DataError, match=r"worker-1"):
        model.fit(parts.train, runner=RayRunner(2), checkpoint=Checkpoint(tmp_path, every_epochs=1), resume=True)


def test_resume_on_ray_needs_the_same_settings(ray_cluster, parts, model, tmp_path):
    options = {"checkpoint": Checkpoint(tmp_path, every_epochs=2)}
    whole = model.fit(parts.train, parts.valid, runner=RayRunner(2), **options)
    again = DPCML(**model.get_params()).fit(parts.train, parts.valid, runner=RayRunner(2), resume=True, **options)
    assert same(whole, again)
    with pytest.raises(ParameterError, match="sync_every=2, this one has 3"):
        model.fit(parts.train, parts.valid, runner=RayRunner(2, sync_every=3), resume=True, **options)


class Pair:
    """The first of two workers; the other one's values are given."""

    rank, size = 0, 2

    def __init__(self, *others):
        self.others = list(others)

    def sum(self, values):
        values[1] += self.others.pop(0)
        return values


def written(folder, epochs):
    found = SharedCheckpointer(Checkpoint(folder), {"a": 1}, group=Alone())
    for epoch in epochs:
        found.write(epoch, {"x": np.full(2, epoch)}, {"history": {}})


def test_workers_go_on_from_an_epoch_that_all_of_them_have(tmp_path):
    written(tmp_path, [4, 5])
    behind = SharedCheckpointer(Checkpoint(tmp_path), {"a": 1}, group=Pair(-4, 0))  # the other one was killed before 5
    assert behind.exists()
    assert behind.read()[0]["x"].tolist() == [4, 4]
    none = SharedCheckpointer(Checkpoint(tmp_path), {"a": 1}, group=Pair(0, 1))  # the other one has written nothing
    assert not none.exists()


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    written(tmp_path, [1])

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("dpcml.training.checkpoint.save_file", full)
    with pytest.raises(DataError, match=r"No space left on device.*the checkpoint before"):
        written(tmp_path, [2])
    assert SharedCheckpointer(Checkpoint(tmp_path), {"a": 1}, group=Alone()).exists()


def test_little_memory_is_an_error_that_says_what_to_do(monkeypatch):
    from dpcml.scale import runner

    def no_memory(*_, **__):
        raise MemoryError("Unable to allocate 9.9 TiB")

    monkeypatch.setattr(runner, "run", no_memory)
    worker = runner.TrainingWorker(0, 1, "one", 1)
    with pytest.raises(DataError, match=r"a worker ran out of memory \(Unable to allocate 9\.9 TiB\).*more workers"):
        worker.train(None, None, None)
