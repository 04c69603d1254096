"""Hostile load: a server gets sound and hostile requests while models are replaced and its workers are killed.

What must hold: a sound request is answered by one of the models that were saved, whole; a hostile one with 4xx, or not
at all. No 5xx, no traceback in the log, no hang; after SIGTERM no process is left. An answer may be missing only where
a worker was killed at that moment.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from dpcml import ItemKNN, planted, save
from tests.faults.campaign.cases import CASE_SECONDS, Budget, Tally

SECONDS = 600  # of hostile load
KILL_SECONDS, RELOAD_SECONDS = 12, 3  # between two of them
LAST_SECONDS = 30  # for processes that were just started when the server was told to end
LEAK_WARM_UP, LEAK_REQUESTS, LEAK_WINDOWS = 5_000, 10_000, 10  # requests before and while memory is measured
LEAK_ASKED: tuple[tuple[str, str, bytes | None], ...] = (
    ("POST", "/api/v1/recommend", b'{"user": 7, "n": 5}'),
    ("POST", "/api/v1/recommend", b'{"user": 8, "n": 5, "explain": true}'),
    ("POST", "/api/v1/recommend", b'{"user": 9, "exclude": [3]}'),
    ("POST", "/api/v1/recommend", b'{"user": "nobody"}'),
    ("POST", "/api/v1/recommend", b'{"user": 1, "n": -1}'),
    ("POST", "/api/v1/recommend/batch", b'{"users": [1, 2, "nobody"]}'),
    ("POST", "/api/v1/recommend/new", b'{"history": [1, 2]}'),
    ("GET", "/api/v1/similar/items?item=5", None),
    ("GET", "/api/v1/items?q=1", None),
    ("GET", "/nowhere", None),
)
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS")
BODIES: tuple[bytes, ...] = (
    b"", b"{", b"[]", b"null", b"1", b'"x"', b'{"user": null}', b'{"user": []}', b'{"user": {}}', b'{"user": 1e999}',
    b'{"user": 99999999999999999999999}', b'{"user": -1}', b'{"user": true}', b'{"user": "\xff"}',
    b'{"user": "\\ud800"}', b'{"user": 1, "n": 0}', b'{"user": 1, "n": -1}', b'{"user": 1, "n": 1e9}',
    b'{"user": 1, "n": "x"}', b'{"user": 1, "mix": 2}', b'{"user": 1, "mix": NaN}', b'{"user": 1, "where": 5}',
    b'{"user": 1, "where": {"a": []}}', b'{"user": 1, "exclude": [[]]}', b'{"user": 1, "items": "x"}',
    b'{"user": 1, "on_unknown": 3}', b'{"users": 1}', b'{"users": [null]}', b'{"history": [[1]]}',
    b'{"history": "x"}', b'{"history": [1, "a", null]}', b"[" * 20_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    b'{"user": "' + b"x" * 100_000 + b'"}', b"\x00" * 100, b"x" * 2_000_000, b'{"user": 1, "user": 2}',
    b'{"user": 1, "nonsense": 1}', b'\xef\xbb\xbf{"user": 1}',
)  # fmt: skip
RAW: tuple[bytes, ...] = (
    b"", b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"GET", b"GET / HTTP/9.9\r\n\r\n", b"GET /\r\n\r\n",
    b"NONSENSE / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 200_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"POST /api/v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{",
    b"POST /api/v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n{",
    b"POST /api/v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
    b"POST /api/v1/recommend HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /api/v1/recommend HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 1_000,
    b"GET /api/v1/items?q=%ff%fe HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /health HTTP/1.1\r\nHost: \x00\r\n\r\n",
)  # fmt: skip
PATHS = (
    "/api/v1/recommend", "/api/v1/recommend/batch", "/api/v1/recommend/new", "/api/v1/interests/new",
    "/api/v1/feedback", "/api/v1/similar/items?item=%00", "/api/v1/items?q=" + "x" * 500,
    "/api/v1/users?q=%F0%9F%92%A9", "/api/v1/nonsense", "/api/v1/history?user[]=1", "/api/v1/similar/users",
    "/api/v1/interests?user=1&user=2", "/metrics", "/api/v1/map",
)  # fmt: skip


class Server:
    """``dpcml serve`` as a process of its own, in a group of its own."""

    def __init__(self, model: Path, log: Path, *options: str) -> None:
        self.log = log
        command = [sys.executable, "-m", "dpcml", "serve", str(model), "--port", "0", "--quiet", *options]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        self.wait_for(lambda: "http://" in self.text())
        self.port = int(re.search(r"http://[\d.]+:(\d+)", self.text())[1])
        self.wait_for(lambda: self.ask("GET", "/ready")[0] == 200)

    def text(self) -> str:
        """Return the log."""
        return self.log.read_text(errors="replace")

    def wait_for(self, true: Callable[[], bool]) -> None:
        """Wait until something holds, but not for ever."""
        end = time.monotonic() + CASE_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if true():
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"the server does not answer: {self.text()[-500:]}")

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body of the answer to a request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CASE_SECONDS)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def send(self, data: bytes) -> bytes:
        """Send bytes and return what comes back first, nothing for a connection that is closed or stays silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=CASE_SECONDS) as connection:
            connection.settimeout(0.2)
            try:
                connection.sendall(data)
                return connection.recv(4096)
            except (TimeoutError, ConnectionError):
                return b""

    def workers(self) -> list[psutil.Process]:
        """Return its worker processes."""
        found = psutil.Process(self.process.pid).children()
        return [one for one in found if "resource_tracker" not in " ".join(one.cmdline())]

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(CASE_SECONDS)

    def kill(self) -> None:
        """End all of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Load:
    """Threads that ask, attack, reload and kill until the time is up."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True)
        data = planted(100, 60, seed=1).data
        self.models = [ItemKNN(k=k).fit(data) for k in (2, 40)]
        self.lists = [{user: model.recommend(user, n=5)[0].tolist() for user in range(100)} for model in self.models]
        self.folder, self.seed = folder, seed
        save(self.models[0], folder / "model")
        self.server = Server(folder / "model", folder / "log", "--workers", "2")
        self.sound, self.hostile, self.reloads, self.kills = Tally(), Tally(), Tally(), Tally()
        self.over, self.killed = threading.Event(), 0.0  # when a worker was killed last
        self.cut = 0  # answers that a kill cut off

    def lost(self, error: Exception) -> str | None:
        """Return what is wrong with a missing answer: nothing while a worker has just been killed."""
        if time.monotonic() - self.killed < KILL_SECONDS / 2:
            self.cut += 1
            return None
        return f"no answer: {type(error).__name__}: {error}"

    def ask(self, rng: np.random.Generator) -> None:
        """Send a sound request and compare the list with those of both models."""
        user = int(rng.integers(100))
        try:
            status, body = self.server.ask("POST", "/api/v1/recommend", json.dumps({"user": user, "n": 5}).encode())
        except (OSError, http.client.HTTPException) as error:
            self.sound.add("sound requests", self.lost(error))
            return
        if status != 200:
            self.sound.add("sound requests", f"status {status}: {body[:200]!r}")
            return
        items = [one["id"] for one in json.loads(body)["items"]]
        known = [lists[user] for lists in self.lists]
        self.sound.add("sound requests", None if items in known else f"user {user}: {items}, known {known}")

    def attack(self, rng: np.random.Generator) -> None:
        """Send a hostile request."""
        kind = ["bytes", "bodies", "paths"][int(rng.integers(3))]
        try:
            if kind == "bytes":
                answer = self.server.send(RAW[int(rng.integers(len(RAW)))] if rng.random() < 0.8 else rng.bytes(300))
                found = re.match(rb"HTTP/1\.\d (\d+)", answer)
                status, body = int(found[1]) if found else 400, answer
            else:
                method = "POST" if kind == "bodies" else METHODS[int(rng.integers(len(METHODS)))]
                path = PATHS[int(rng.integers(5 if kind == "bodies" else len(PATHS)))]
                status, body = self.server.ask(method, path, BODIES[int(rng.integers(len(BODIES)))])
        except (OSError, http.client.HTTPException) as error:  # it may close a connection of which it has seen enough
            closed = isinstance(error, (ConnectionError, http.client.HTTPException))
            self.hostile.add(kind, None if closed else self.lost(error))
            return
        self.hostile.add(kind, f"status {status}: {body[:200]!r}" if status >= 500 else None)

    def reload(self, rng: np.random.Generator) -> None:
        """Save the other model over the one that is served, and have it loaded."""
        self.models.reverse()
        save(self.models[0], self.folder / "model")
        try:
            status, body = self.server.ask("POST", "/api/v1/reload", b"{}")
        except (OSError, http.client.HTTPException) as error:
            self.reloads.add("reloads", self.lost(error))
        else:
            self.reloads.add("reloads", None if status == 200 else f"status {status}: {body[:200]!r}")
        self.over.wait(RELOAD_SECONDS)

    def kill(self, rng: np.random.Generator) -> None:
        """Kill a worker, and see another one take its place."""
        if self.over.wait(KILL_SECONDS):
            return
        workers = self.server.workers()
        self.killed = time.monotonic()
        workers[int(rng.integers(len(workers)))].kill()
        end = time.monotonic() + CASE_SECONDS
        while time.monotonic() < end and not self.over.is_set():
            self.killed = time.monotonic()  # until the new one is there, what had been given to the old one is lost
            try:
                if json.loads(self.server.ask("GET", "/ready")[1])["workers"] == 2:
                    break
            except (OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.2)
        self.kills.add("workers", None if time.monotonic() < end else "no new worker took its place")

    def run(self, seconds: float) -> None:
        """Load the server for some time, and end it."""
        jobs = [self.ask, self.ask, self.attack, self.attack, self.reload, self.kill]
        threads = [threading.Thread(target=self._repeat, args=(job, k)) for k, job in enumerate(jobs)]
        for thread in threads:
            thread.start()
        self.over.wait(seconds)
        self.over.set()
        for thread in threads:
            thread.join(CASE_SECONDS)
        self.reloads.add("answers at the end", None if self.server.ask("GET", "/health")[0] == 200 else "no health")
        group = self.server.process.pid
        code = self.server.stop()
        end = time.monotonic() + LAST_SECONDS
        while (left := _members(group)) and time.monotonic() < end:
            time.sleep(0.1)
        self.kills.add("ends", None if code == 0 and not left else f"exit code {code}, processes left: {left}")
        traces = self.server.text().count("Traceback")
        self.hostile.add("log", f"{traces} tracebacks in the log" if traces else None)

    def _repeat(self, job: Callable[[np.random.Generator], None], number: int) -> None:
        rng = np.random.default_rng([self.seed, number])
        while not self.over.is_set():
            try:
                job(rng)
            except Exception as error:
                self.hostile.add("campaign", f"{job.__name__}: {type(error).__name__}: {error}")


def _members(group: int) -> list[str]:
    """Return the command lines of all processes of a group."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline())[-200:])
    return found


def run_load(folder: Path, budget: Budget) -> dict[str, Any]:
    """Load a server for ten minutes; sound requests, hostile ones, reloads and kills of workers are counted apart."""
    load = Load(folder, budget.seed)
    try:
        load.run(min(SECONDS * budget.scale, max(1.0, budget.end - time.monotonic())))
    finally:
        load.server.kill()
    cut = {"cut_by_kills": load.cut}
    return {
        "sound_requests": load.sound.to_dict() | cut,
        "hostile_requests": load.hostile,
        "reloads": load.reloads,
        "worker_kills": load.kills,
    }


def measure_leak(folder: Path, budget: Budget) -> dict[str, Any]:
    """Measure how the memory of a server grows with the number of requests, in bytes per 10,000 of them."""
    folder.mkdir(parents=True)
    data = planted(100, 60, seed=1).data
    server = Server(save(ItemKNN(k=5).fit(data), folder / "model"), folder / "log")
    window = max(1, budget.cases(LEAK_REQUESTS) // LEAK_WINDOWS)
    turns = itertools.cycle(LEAK_ASKED)
    try:
        for _ in range(budget.cases(LEAK_WARM_UP)):  # caches fill up, and the allocator's heap
            server.ask(*next(turns))
        sizes = [own_bytes(server.process.pid)]
        while len(sizes) <= LEAK_WINDOWS and not budget.over():
            for _ in range(window):
                server.ask(*next(turns))
            sizes.append(own_bytes(server.process.pid))
    finally:
        server.kill()
    return {
        "leak_bytes_per_10000_requests": max(0, round(growth(sizes) * 10_000 / window)),
        "leak_requests": window * (len(sizes) - 1),
    }


def own_bytes(process: int) -> int:
    """Return the memory that a process has for itself: anonymous pages, those in the swap included.

    Pages of libraries do not count. They are the process's own or shared, as other processes that use the same
    libraries end and start: the unique set size changed by 12 MB when one did.
    """
    used = psutil.Process(process).memory_full_info()
    return int(used.rss - used.shared + used.swap)


def growth(sizes: Sequence[float]) -> float:
    """Return by how much a size grows from one to the next: the median, which a few jumps do not change."""
    return float(np.median(np.diff(sizes))) if len(sizes) > 1 else 0.0
