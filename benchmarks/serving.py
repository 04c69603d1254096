"""Requests per second, latency and processor time of a server, under load from this machine.

The client writes HTTP by hand: a general client would use more processor time than the server that it measures.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import psutil

from benchmarks.isolated import ChildError
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted
from dpcml.models.dpcml import DPCML
from dpcml.storage import load, save
from dpcml.utils.errors import ParameterError
from dpcml.utils.packages import version

START_SECONDS = 120.0  # until the server answers
USERS = 1000  # whose lists are requested
RATES = (0.25, 0.5)  # of the highest rate that was reached: how long answers take where the server is not overloaded
MAX_CONNECTIONS = 256
MAX_REQUESTS = 1_000_000
MAX_SECONDS = 120.0


def bench_serving(
    directory: Path | None = None,
    *,
    connections: Sequence[int] = (1, 8, 64),
    requests: int = 20_000,
    seconds: float = 5.0,
    workers: int = 1,
) -> dict[str, Any]:
    """Start a server and send it requests for known users and for new users with a history.

    Parameters
    ----------
    directory
        A model; by default 5 vectors of 64 on a planted world of 5,000 items.
    connections
        Numbers of open connections, each measured on its own; the last one also at parts of the rate that it reached.
    requests, seconds
        A measurement ends after this many requests or seconds, whichever comes first.
    workers
        Processes of the server.
    """
    busy = psutil.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="dpcml-bench-") as place:
        folder = directory or _example_model(Path(place) / "model")
        model = load(folder)
        with _server(folder, Path(place) / "log", workers) as (url, process):
            bodies_of = _requests(model.check_fitted())
            found: dict[str, list[dict[str, Any]]] = {}
            for name, (path, bodies) in bodies_of.items():
                found[name] = []
                rates = [*((count, None) for count in connections), *((connections[-1], share) for share in RATES)]
                for count, share in rates:
                    highest = found[name][len(connections) - 1]["requests_per_second"] if share else 0.0
                    rate = None if share is None else share * highest
                    before = cpu_seconds(process)
                    run = send_load(
                        url + path, bodies, connections=count, requests=requests, seconds=seconds, rate=rate
                    )
                    used = 1000 * (cpu_seconds(process) - before) / max(run["requests"], 1)
                    found[name].append({**run, "share": share, "cpu_milliseconds_per_request": used})
    train = model.check_fitted()
    return {
        "benchmark": "serving",
        "version": version(),
        "model": type(model).__name__,
        "users": train.n_users,
        "items": train.n_items,
        "workers": workers,
        "cores": os.cpu_count(),
        "load_before": busy,
        "errors": sum(run["errors"] for runs in found.values() for run in runs),
        "asked": found,
    }


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process and its children so far; other programs do not add to it.

    Examples
    --------
    >>> cpu_seconds(os.getpid()) > 0
    True
    """
    parent = psutil.Process(process)
    times = [one.cpu_times() for one in (parent, *parent.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))


def _example_model(folder: Path) -> Path:
    """Save a model of a usual size; requests cost the same as with a fully trained one."""
    data = planted(2000, 5000, positives=40, seed=0).data
    return save(DPCML(n_vectors=5, dim=64, epochs=1, n_candidates=10).fit(data, progress=False), folder)


def _requests(train: Interactions) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    rng = np.random.default_rng(0)
    rows = rng.choice(train.n_users, min(USERS, train.n_users), replace=False)
    users = train.user_ids[rows].tolist()
    histories = [train.item_ids[train.of(row)][:50].tolist() for row in rows.tolist() if len(train.of(row))]
    return {
        "recommend": ("api/v1/recommend", [{"user": user} for user in users]),
        "recommend, with reasons": ("api/v1/recommend", [{"user": user, "explain": True} for user in users]),
        "recommend, mixed": ("api/v1/recommend", [{"user": user, "mix": 0.5} for user in users]),
        "somebody new": ("api/v1/recommend/new", [{"history": history} for history in histories]),
    }


@contextmanager
def _server(folder: Path, log: Path, workers: int) -> Iterator[tuple[str, int]]:
    """Run ``dpcml serve`` on a free port; yields its address and process id."""
    command = [sys.executable, "-m", "dpcml", "serve", str(folder), "--port", "0", "--workers", str(workers), "--quiet"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield _when_ready(process, log), process.pid
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _when_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        found = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text(errors="replace"))
        if found:
            with urlopen(f"{found[0]}ready", timeout=START_SECONDS):  # waits until the model is loaded
                return found[0]
        time.sleep(0.05)
    said = log.read_text(errors="replace").strip().splitlines() or ["no message"]
    raise ChildError(f"the server did not come up: {said[-1]}")


def send_load(
    url: str,
    bodies: Sequence[dict[str, Any]],
    *,
    connections: int,
    requests: int,
    seconds: float,
    rate: float | None = None,
) -> dict[str, Any]:
    """Send requests over open connections, each as soon as the answer to the previous one is there, or at a rate.

    Parameters
    ----------
    url
        Where to POST, on this machine.
    bodies
        Bodies to send, in turn.
    connections
        Open connections.
    requests, seconds
        Stop after this many, whichever comes first; open requests are finished.
    rate
        Requests per second of all connections; None sends as many as are answered. Latency then counts from the time
        at which a request was due, so that waiting for a free connection is part of it.

    Returns
    -------
    dict
        Requests per second, quantiles of the latency in milliseconds, errors (any status but 200, a lost connection).

    Examples
    --------
    >>> send_load("http://example.org/", [{}], connections=1, requests=1, seconds=1)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: http://example.org/: load goes to this machine only; name http://127.0.0.1:PORT/...
    """
    parts = urlsplit(url)
    if parts.hostname not in ("127.0.0.1", "localhost", "::1") or parts.port is None:
        raise ParameterError(f"{url}: load goes to this machine only; name http://127.0.0.1:PORT/...")
    limits = (
        ("connections", connections, MAX_CONNECTIONS),
        ("requests", requests, MAX_REQUESTS),
        ("seconds", seconds, MAX_SECONDS),
    )
    for name, value, limit in limits:
        if not 0 < value <= limit:
            raise ParameterError(f"{name}={value}: must be above 0 and at most {limit:g}")
    sent = [_request(parts.path, body) for body in bodies]
    gc.collect()
    gc.freeze()  # a pause of the client would count as one of the server
    try:
        return asyncio.run(_load(str(parts.hostname), parts.port, sent, connections, requests, seconds, rate))
    finally:
        gc.unfreeze()


async def _load(
    host: str, port: int, sent: Sequence[bytes], connections: int, requests: int, seconds: float, rate: float | None
) -> dict[str, Any]:
    start = time.perf_counter()
    turns, end = iter(range(requests)), start + seconds
    latencies: list[float] = []
    errors = 0

    async def caller() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection(host, port)
        for turn in turns:  # shared by all callers
            begin = time.perf_counter() if rate is None else start + turn / rate
            if begin > end:
                break
            if begin > time.perf_counter():
                await asyncio.sleep(begin - time.perf_counter())
            try:
                writer.write(sent[turn % len(sent)])
                status = await _status(reader)
                errors += status != 200  # read after the await: other connections count meanwhile
            except (OSError, asyncio.IncompleteReadError, ValueError):
                errors += 1
                break
            latencies.append(time.perf_counter() - begin)
        writer.close()

    await asyncio.gather(*(caller() for _ in range(connections)))
    took = time.perf_counter() - start
    p50, p99 = np.quantile(latencies or [np.nan], [0.5, 0.99]) * 1000
    return {
        "at_once": connections,
        "rate": rate,
        "requests": len(latencies),
        "errors": int(errors),
        "seconds": took,
        "requests_per_second": len(latencies) / took,
        "p50_milliseconds": float(p50),
        "p99_milliseconds": float(p99),
    }


def _request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    return f"{head}\r\n\r\n".encode() + content


async def _status(reader: asyncio.StreamReader) -> int:
    """Read one response; return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lengths = [line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-length:")]
    await reader.readexactly(int(lengths[0]))
    return int(head.split(" ", 2)[1])
