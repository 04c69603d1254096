"""What goes wrong on a cluster: lost workers and nodes, full disks, little memory."""

import errno
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import psutil
import pytest

from dpcml import DPCML, Checkpoint
from dpcml.data.shards import Shards
from dpcml.scale import RayRunner, ingest
from dpcml.scale.collective import Alone
from dpcml.scale.runner import WorkerLostWarning
from dpcml.scale.worker import SharedCheckpointer
from dpcml.utils.errors import DataError, ParameterError
from tests.scale import node_loss

ROOT = Path(__file__).parents[2]


def same(one, other):
    return all(np.array_equal(value, other.to_arrays()[name]) for name, value in one.to_arrays().items())


def kill_a_worker(folder):
    node_loss.wait_for_checkpoints(folder)
    one, *others = node_loss.training_workers(psutil.Process())  # Ray of this test, and nobody else's
    one.kill()
    for other in others:
        other.resume()


def test_a_killed_worker_starts_again_from_the_checkpoint(ray_cluster, parts, model, tmp_path):
    model.set_params(epochs=40, patience=None)
    undisturbed = model.fit(parts.train, parts.valid, runner=node_loss.RUNNER)
    threading.Thread(target=kill_a_worker, args=(tmp_path,), daemon=True).start()
    with pytest.warns(WorkerLostWarning, match="going on from the last checkpoint") as said:
        found = DPCML(**model.get_params()).fit(
            parts.train, parts.valid, runner=node_loss.RUNNER, checkpoint=Checkpoint(tmp_path, every_epochs=1)
        )
    assert len(said) == 1
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
    assert run["restarts"] == 1
    assert run["same_bits"]


def test_errors_of_a_worker_are_those_of_the_library(ray_cluster, parts, model, tmp_path):
    """A disk that is full on one worker: the error names the file, and is not tried again."""
    (tmp_path / "worker-1").write_text("a file where the worker needs a folder")
    with pytest.raises(DataError, match=r"worker-1"):
        model.fit(parts.train, runner=RayRunner(2), checkpoint=Checkpoint(tmp_path, every_epochs=1), resume=True)


def test_a_shard_that_a_worker_does_not_find_is_named(ray_cluster, parts, model, tmp_path):
    rows = pl.DataFrame({"user": parts.train.rows, "item": parts.train.indices})
    rows.write_parquet(tmp_path / "likes.parquet")
    split = Shards.open(ingest([tmp_path / "likes.parquet"], tmp_path / "shards", shard_rows=400)).split()
    (tmp_path / "shards" / "shard-00002.safetensors").unlink()
    with pytest.raises(DataError, match=r"shard-00002\.safetensors: a shard is missing"):
        model.fit(split.train, runner=RayRunner(2))


def test_resume_on_ray_needs_the_same_settings(ray_cluster, parts, model, tmp_path):
    options = {"checkpoint": Checkpoint(tmp_path, every_epochs=2)}
    whole = model.fit(parts.train, parts.valid, runner=RayRunner(2), **options)
    again = DPCML(**model.get_params()).fit(parts.train, parts.valid, runner=RayRunner(2), resume=True, **options)
    assert same(whole, again)
    with pytest.raises(ParameterError, match="sync_every=3, this one has 4"):
        model.fit(parts.train, parts.valid, runner=RayRunner(2, sync_every=4), resume=True, **options)


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


def test_little_memory_is_an_error_that_says_what_to_do(monkeypatch, likes):
    from dpcml.scale import runner

    def no_memory(*_, **__):
        raise MemoryError("Unable to allocate 9.9 TiB")

    monkeypatch.setattr(runner, "run", no_memory)
    worker = runner.TrainingWorker(0, 1, "one", 1)
    with pytest.raises(DataError, match=r"a worker ran out of memory \(Unable to allocate 9\.9 TiB\).*more workers"):
        worker.train(None, likes, None)


def test_another_version_of_dpcml_on_a_worker_is_named(ray_cluster, parts, model, monkeypatch):
    monkeypatch.setattr("dpcml.scale.runner.version", lambda: "0.0.1")  # of this process alone
    with pytest.raises(DataError, match=r"has dpcml .*, the training was started by dpcml 0\.0\.1: install the same"):
        model.fit(parts.train, runner=RayRunner(1))
