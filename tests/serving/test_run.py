"""The server as a process: signals, workers, logs."""

import json
import os
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest
from typer.testing import CliRunner

from dpcml import load, save
from dpcml.cli import app
from dpcml.serving.counters import CounterBlock
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
        (["--port", "0", "--feedback", "items.csv"], "is no feedback journal"),
        (["--port", "0", "--feedback", "."], "the feedback journal cannot be opened (Is a directory)"),
    ],
)
def test_bad_options_are_bad_input(models, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text("id,title\n1,Alien\n")
    folder = str(models["dpcml"]) if options else "none"
    result = CliRunner().invoke(app, ["serve", folder, *options])
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "serving" not in result.output


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


def test_shared_counters_need_no_temporary_folder(models, start, monkeypatch, tmp_path):
    """Finding 6: counters were files there, and a full folder ended the workers by SIGBUS."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    server = start(models["itemknn"], "--workers", "2")
    server.until(lambda: server.client.get("/ready").json()["workers"] == 2)
    assert not list(folder.iterdir())
    server.process.send_signal(signal.SIGTERM)
    assert server.end() == 0


def test_the_memory_of_shared_counters_is_reserved():
    """Finding 6: memory that is not reserved would be missed when it is first written to."""
    block = CounterBlock(3)
    file = os.fstat(block._file)
    assert file.st_size == block.values.nbytes
    assert 512 * file.st_blocks >= file.st_size


def test_counters_outlive_a_worker_and_its_gauges_do_not(models, start):
    server = start(models["itemknn"], "--workers", "2")
    server.until(lambda: server.client.get("/ready").json()["workers"] == 2)
    url = server.client.base_url.join("/api/v1/recommend")
    for _ in range(10):
        assert httpx.post(url, json={"user": 1}, timeout=120).status_code == 200
    os.kill(events(server.text(), "started")[0]["process"], signal.SIGKILL)
    server.until(lambda: len(events(server.text(), "started")) == 3)
    with httpx.Client(base_url=server.client.base_url, timeout=120) as client:
        server.until(lambda: client.get("/ready").json()["workers"] == 2)
        text = client.get("/metrics").text
    assert 'dpcml_requests_total{path="/api/v1/recommend",status="200"} 10.0' in text
    assert "dpcml_requests_in_flight 1.0" in text, "the request for the metrics itself"


def test_workers_end_with_their_supervisor(models, start):
    """Finding 11: after kill -9 of the first process, the workers went on answering."""
    server = start(models["itemknn"], "--workers", "2")
    server.until(lambda: len(events(server.text(), "started")) == 2)
    workers = [psutil.Process(one["process"]) for one in events(server.text(), "started")]
    server.process.kill()
    server.end()
    server.until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in workers))
    assert len(events(server.text(), "supervisor lost")) == 2


def test_stopping_under_load_cuts_no_answer(models, start):
    """Finding 8: a connection that was taken while the server stopped was never told, and held it for 30 seconds."""
    server = start(models["itemknn"], "--workers", "2", "--quiet")
    server.until(lambda: server.client.get("/ready").json()["workers"] == 2)
    server.client.close()
    address = server.client.base_url.host, server.client.base_url.port
    request = b"POST /api/v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request += b'Content-Length: 10\r\n\r\n{"user":1}'
    answered = []

    def ask():
        """Ask on one connection until an answer says that it was the last one."""
        with socket.create_connection(address, timeout=120) as place, place.makefile("rb") as answers:
            while True:
                place.sendall(request)
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = answers.readline()
                    assert line, "an answer was cut"
                    head += line
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                assert len(answers.read(length)) == length
                answered.append(head)
                if b"connection: close" in head.lower():
                    return

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask) for _ in range(8)]
        server.until(lambda: len(answered) > 50)
        server.process.send_signal(signal.SIGTERM)
        for one in asked:
            one.result()
    assert server.end() == 0
    assert all(head.startswith(b"HTTP/1.1 200") for head in answered)
    assert "graceful shutdown exceeded" not in server.text()


def test_a_token_that_others_can_read_is_warned_of(models, tmp_path):
    """Finding 16."""
    file = tmp_path / "token"
    file.write_text("a-token-for-the-tests")
    for mode, warned in ((0o644, True), (0o600, False)):
        file.chmod(mode)
        options = ["--host", "203.0.113.7", "--token-file", str(file)]
        result = CliRunner().invoke(app, ["serve", str(models["itemknn"]), *options])
        assert (f"others on this machine can read {file}" in result.output) == warned


def test_feedback_of_anybody_needs_a_token(models, tmp_path):
    options = ["--host", "203.0.113.7", "--feedback", str(tmp_path / "journal")]
    result = CliRunner().invoke(app, ["serve", str(models["itemknn"]), *options])
    assert result.exit_code == 2
    assert "pass --token-file too" in result.output
    assert not (tmp_path / "journal").exists()
