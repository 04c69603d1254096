"""Trackers with the real packages; a missing package, a failed run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from dpcml import DPCML, EASE, MissingExtraError, ParameterError
from dpcml.data.synthetic import planted
from dpcml.training.tracking import MLflow, TensorBoard, Tracker, WandB, make_tracker
from dpcml.training.trainer import TrainingError
from dpcml.workflow import DataSource, train_and_save


@pytest.fixture(scope="module")
def split():
    return planted(60, 50, positives=10, n_categories=3, seed=1).data.split((0.6, 0.2, 0.2), 0)


def model(**changes) -> DPCML:
    return DPCML(**{"dim": 4, "epochs": 4, "n_candidates": 3, "n_vectors": 2, "validate_every": 2, **changes})


class Kept(Tracker):
    """A tracker that keeps what it gets."""

    module, extra = "json", "none"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple] = []

    def _start(self, parameters):
        self.events.append(("start", parameters))

    def _log(self, figures, step):
        self.events.append(("log", step, figures))

    def _finish(self, failed):
        self.events.append(("finish", failed))


def test_a_training_is_one_run(split):
    tracker = Kept()
    fitted = model().fit(split.train, split.valid, callbacks=[tracker])
    kinds = [event[0] for event in tracker.events]
    assert kinds == ["start", *["log"] * 4, "finish"]
    assert tracker.events[0][1]["dim"] == 4
    assert tracker.events[0][1]["model"] == "dpcml"
    assert [event[1] for event in tracker.events[1:-1]] == [1, 2, 3, 4]
    logged = tracker.events[2][2]
    assert logged["loss"] == fitted.history_.epochs[1].loss
    assert logged["validation_P_at_3"] == fitted.history_.epochs[1].validation
    assert "validation_P_at_3" not in tracker.events[1][2], "not validated after epoch 1"
    assert tracker.events[-1] == ("finish", False)


def test_resumed_run_has_all_epochs(split, tmp_path):
    stop = Kept()
    model().fit(split.train, callbacks=[stop, lambda history: len(history.epochs) == 2], checkpoint=tmp_path / "c")
    steps = [event[1] for event in stop.events if event[0] == "log"]
    assert steps == [1, 2]
    again = Kept()
    made = model().fit(split.train, checkpoint=tmp_path / "c", resume=True, callbacks=[again])
    assert [event[1] for event in again.events if event[0] == "log"] == [e.number for e in made.history_.epochs]


def test_failed_training_is_a_failed_run(split, monkeypatch):
    tracker = Kept()
    monkeypatch.setattr("dpcml.training.engine.Engine.epoch", lambda *_: float("nan"))
    with pytest.raises(TrainingError):
        model().fit(split.train, callbacks=[tracker])
    assert tracker.events[-1] == ("finish", True)


def test_workflow_adds_held_out_figures(split, tmp_path):
    data = planted(60, 50, positives=10, n_categories=3, seed=1).data
    for one, epochs in ((model(), 4), (EASE(), 0)):  # a model without epochs has figures, too
        tracker = Kept()
        found = train_and_save(one, data, tmp_path / one.name, source=DataSource("planted"), trackers=[tracker])
        logs = [event for event in tracker.events if event[0] == "log"]
        assert [event[0] for event in tracker.events] == ["start", *["log"] * (epochs + 1), "finish"], "one run"
        assert logs[-1][2]["test_NDCG_at_10"] == found["test"]["metrics"]["NDCG@10"]


def test_missing_package_is_an_error_before_training(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"mlflow is not installed: pip install .*\[mlflow\]"):
        make_tracker("mlflow")


def test_tensorboard(split, tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event
    from tensorboardX.record_writer import RecordWriter  # noqa: F401 (the format that is read below)

    fitted = model().fit(split.train, split.valid, callbacks=[TensorBoard(tmp_path)])
    model(epochs=1).fit(split.train, callbacks=[make_tracker(f"tensorboard={tmp_path}")])
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["run-1", "run-2"]
    raw = next((tmp_path / "run-1").iterdir()).read_bytes()
    values, at = {}, 0
    while at < len(raw):  # length, its checksum, the event, its checksum
        length = int.from_bytes(raw[at : at + 8], "little")
        event = Event.FromString(raw[at + 12 : at + 12 + length])
        values |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        at += length + 16
    for epoch in fitted.history_.epochs:
        assert values["loss", epoch.number] == np.float32(epoch.loss)
    assert values["validation_P_at_3", 4] == np.float32(fitted.history_.epochs[3].validation)
    assert any(name.startswith("parameters") for name, _ in values)


def test_mlflow(split, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    where = (tmp_path / "mlruns").as_uri()
    fitted = model().fit(split.train, split.valid, callbacks=[MLflow(where, experiment="trial")])
    assert mlflow.active_run() is None, "the run is closed"
    client = mlflow.MlflowClient(where)
    (run,) = client.search_runs([client.get_experiment_by_name("trial").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["dim"] == "4"
    losses = {one.step: one.value for one in client.get_metric_history(run.info.run_id, "loss")}
    assert losses == {epoch.number: pytest.approx(epoch.loss) for epoch in fitted.history_.epochs}
    assert run.data.metrics["validation_P_at_3"] == pytest.approx(fitted.history_.epochs[-1].validation)


def refused() -> str:
    """Return the address of a port on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("where", [refused, lambda: "foo://x"])
def test_mlflow_that_does_not_start_is_one_line(split, where):
    pytest.importorskip("mlflow")
    with pytest.raises(ParameterError, match=r"MLflow does not start with '(http|foo):.*; check the address"):
        model().fit(split.train, callbacks=[MLflow(where())])


def test_tensorboard_that_cannot_write_is_one_line(split, tmp_path):
    pytest.importorskip("tensorboardX")
    (tmp_path / "file").write_text("taken")
    with pytest.raises(ParameterError, match=r"TensorBoard does not start with '.*file'"):
        model().fit(split.train, callbacks=[TensorBoard(tmp_path / "file")])


def test_wandb_without_a_key_names_the_way_out(tmp_path):
    pytest.importorskip("wandb")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    given = {**kept, "HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc"), "WANDB_SILENT": "true"}
    program = "from dpcml.training.tracking import WandB\nwith WandB().run({}): pass"  # wandb keeps its first settings
    done = subprocess.run([sys.executable, "-c", program], env=given, cwd=tmp_path, capture_output=True, text=True)
    assert "ParameterError: Weights & Biases does not start: No API key configured" in done.stderr
    assert "run 'wandb login', or set WANDB_MODE=offline to write files only" in done.stderr


def test_wandb_offline(split, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    for name, value in (("MODE", "offline"), ("DIR", str(tmp_path)), ("SILENT", "true"), ("CONSOLE", "off")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    tracker = WandB("trial")
    summary = {}
    finish = tracker._finish
    monkeypatch.setattr(tracker, "_finish", lambda failed: (summary.update(dict(tracker._run.summary)), finish(failed)))
    fitted = model().fit(split.train, split.valid, callbacks=[tracker])
    assert wandb.run is None, "the run is closed"
    assert summary["loss"] == pytest.approx(fitted.history_.epochs[-1].loss)
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb")), "written, not sent"
    assert json.dumps(summary["validation_P_at_3"])
