"""The server as a process: signals, workers, logs."""

import json
import os
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from typer.testing import CliRunner

from dpcml import load, save
from dpcml.cli import app
from dpcml.serving.run import bind

BATCH = {"users": list(range(200)), "n": 40, "explain": True}


def events(text: str, name: str) -> list[dict]:
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def test_it_finishes_what_it_took_and_logs_nothing_personal(models, start):
    server = start(models["dpcml"])
    history = [3, 14, 15, 92, 65]
    assert server.client.post("/api/v1/recommend/new", json={"history": history}).status_code == 200
    assert server.client.get("/api/v1/interests", params={"user": "177"}).status_code == 200
    url = server.client.base_url.join("/api/v1/recommend/batch")
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(httpx.post, url, json=BATCH, timeout=120) for _ in range(8)]
        server.until(lambda: server.in_flight() == 9)  # all of them, and this question itself
        server.process.send_signal(signal.SIGTERM)
        answers = [one.result() for one in asked]
    assert [answer.status_code for answer in answers] == [200] * 8
    assert all(len(answer.json()["lists"]) == 200 for answer in answers)
    assert server.end() == 0
    requests = events(server.text(), "request")
    assert {"time", "level", "method", "path", "status", "milliseconds", "request"} <= requests[0].keys()
    assert {one["path"] for one in requests} >= {"/api/v1/recommend/new", "/api/v1/interests", "/metrics"}
    assert "177" not in [value for one in requests for value in one.values()]
    assert "history" not in server.text()
    assert "user=" not in server.text()


def test_hanging_up_reloads_and_refuses_what_is_damaged(own_model, models, start):
    server = start(own_model)
    fingerprint = server.client.get("/api/v1/model").json()["models"][0]["fingerprint"]
    save(load(models["again"]), own_model)
    server.process.send_signal(signal.SIGHUP)
    server.until(lambda: bool(events(server.text(), "reloaded")))
    new = server.client.get("/api/v1/model").json()["models"][0]["fingerprint"]
    assert new != fingerprint
    (own_model / "model.safetensors").write_bytes(b"nothing")
    server.process.send_signal(signal.SIGHUP)
    server.until(lambda: bool(events(server.text(), "reload refused")))
    assert "model.safetensors is damaged" in events(server.text(), "reload refused")[0]["reason"]
    assert server.client.get("/api/v1/model").json()["models"][0]["fingerprint"] == new
    server.process.send_signal(signal.SIGINT)
    assert server.end() == 0


def test_workers_share_counts_and_reload_together(own_model, models, start):
    server = start(own_model, "--workers", "2")
    server.until(lambda: len(events(server.text(), "started")) == 2)
    for _ in range(30):  # a connection each: either worker may take it
        url = server.client.base_url.join("/api/v1/recommend")
        assert httpx.post(url, json={"user": 1}, timeout=120).status_code == 200
    assert 'dpcml_requests_total{path="/api/v1/recommend",status="200"} 30.0' in server.client.get("/metrics").text
    save(load(models["again"]), own_model)
    fingerprint = server.client.post("/api/v1/reload").json()["models"]["main"]
    # The worker that was asked reloads at once, and once more with all the others.
    server.until(lambda: len(events(server.text(), "reloaded")) == 3)
    assert {one["models"]["main"] for one in events(server.text(), "reloaded")} == {fingerprint}
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 0


def test_a_worker_that_cannot_come_back_leaves_the_others_at_work(own_model, models, start):
    """The folder was damaged after the start: the other worker serves the model that it holds until it is repaired."""
    server = start(own_model, "--workers", "2")
    server.until(lambda: len(events(server.text(), "started")) == 2)
    lost = events(server.text(), "started")[0]["process"]
    (own_model / "model.safetensors").write_bytes(b"nothing")
    os.kill(lost, signal.SIGKILL)
    server.until(lambda: bool(events(server.text(), "worker cannot start")))
    assert "model.safetensors is damaged" in events(server.text(), "worker cannot start")[0]["reason"]
    assert events(server.text(), "worker lost")[0]["process"] == lost
    assert server.client.get("/ready").json() == {"status": "ready", "workers": 1, "workers_wanted": 2}
    assert "dpcml_workers 1.0" in server.client.get("/metrics").text.splitlines()
    url = server.client.base_url.join("/api/v1/recommend")
    answers = [httpx.post(url, json={"user": 1}, timeout=120) for _ in range(10)]
    assert [answer.status_code for answer in answers] == [200] * 10
    shutil.copy(models["dpcml"] / "model.safetensors", own_model)
    server.process.send_signal(signal.SIGHUP)
    server.until(lambda: server.client.get("/ready").json()["workers"] == 2)
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 0


def test_without_any_worker_it_waits_until_the_folder_is_repaired(own_model, models, start):
    server = start(own_model, "--workers", "2")
    server.until(lambda: len(events(server.text(), "started")) == 2)
    (own_model / "model.safetensors").write_bytes(b"nothing")
    for one in events(server.text(), "started"):
        os.kill(one["process"], signal.SIGKILL)
    server.until(lambda: len(events(server.text(), "worker cannot start")) >= 2)
    shutil.copy(models["dpcml"] / "model.safetensors", own_model)
    server.until(lambda: len(events(server.text(), "started")) == 4)
    assert httpx.get(server.client.base_url.join("/ready")).json()["workers"] == 2
    (own_model / "model.safetensors").write_bytes(b"nothing")
    os.kill(events(server.text(), "started")[-1]["process"], signal.SIGKILL)
    seen = len(events(server.text(), "worker cannot start"))
    server.until(lambda: len(events(server.text(), "worker cannot start")) > seen)
    server.process.send_signal(signal.SIGTERM)  # while a worker waits to try again
    assert server.end() == 0


def test_answers_are_sent_at_once():
    """Without a named protocol asyncio leaves TCP_NODELAY off, and every answer took 40 ms more."""
    with bind("127.0.0.1", 0) as place:
        assert place.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "there is no such folder"),
        (["--token-file", "none"], "cannot be read"),
        (["--compare", "none"], "there is no such folder"),
        (["--host", "203.0.113.7"], "cannot listen there"),
    ],
)
def test_bad_options_are_bad_input(models, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    folder = str(models["dpcml"]) if options else "none"
    result = CliRunner().invoke(app, ["serve", folder, *options])
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_an_open_address_without_token_is_warned_of(models):
    result = CliRunner().invoke(app, ["serve", str(models["dpcml"]), "--host", "203.0.113.7"])
    assert "warning: 203.0.113.7 can be reached by others and there is no token" in result.output


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hangup_while_it_starts_ends_nothing(models, start, workers):
    server = start(models["dpcml"], "--workers", workers)
    for _ in range(20):
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.02)
    server.until(lambda: server.client.get("/ready").json()["workers"] == int(workers))
    server.process.send_signal(signal.SIGHUP)
    server.until(lambda: len(events(server.text(), "reloaded")) >= int(workers))
    assert not events(server.text(), "worker lost")
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 0


def test_the_folder_of_shared_metrics_goes_with_the_server(models, start, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    server = start(models["itemknn"], "--workers", "2")
    assert list(tmp_path.glob("dpcml-serve-*/*.db"))
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 0
    assert not list(tmp_path.glob("dpcml-serve-*"))
