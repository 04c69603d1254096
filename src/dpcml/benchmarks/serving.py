"""How many requests a server of one process answers, and how fast."""

from __future__ import annotations

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
from urllib.request import urlopen

import numpy as np

from dpcml.benchmarks.load import put_load
from dpcml.benchmarks.process import ChildError
from dpcml.benchmarks.timing import machine_load
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted
from dpcml.models.dpcml import DPCML
from dpcml.storage import load, save
from dpcml.utils.packages import version

PATIENCE = 120.0  # seconds for a server to come up
USERS = 1000  # whose lists are asked for


def bench_serving(
    directory: Path | None = None,
    *,
    at_once: Sequence[int] = (1, 8, 64),
    requests: int = 20_000,
    seconds: float = 5.0,
    workers: int = 1,
) -> dict[str, Any]:
    """Start a server and put load on it, for known users and for people from their histories.

    Parameters
    ----------
    directory
        A model; by default 5 vectors of 64 on a planted world of 5,000 items.
    at_once
        Numbers of connections to measure with.
    requests, seconds
        Bounds of each measurement.
    workers
        Processes of the server.
    """
    busy = machine_load()
    with tempfile.TemporaryDirectory(prefix="dpcml-bench-") as place:
        folder = directory or _some_model(Path(place) / "model")
        model = load(folder)
        with _server(folder, Path(place) / "log", workers) as (url, process):
            asked = _questions(model.check_fitted())
            found: dict[str, list[dict[str, Any]]] = {}
            for name, (path, bodies) in asked.items():
                found[name] = []
                for count in at_once:
                    before = cpu_seconds(process)
                    run = put_load(url + path, bodies, at_once=count, requests=requests, seconds=seconds)
                    used = 1000 * (cpu_seconds(process) - before) / max(run["requests"], 1)
                    found[name].append({**run, "cpu_milliseconds_per_request": used})
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
    """Return the processor time of a process and its children so far; unlike latency, others' work does not add to it.

    Examples
    --------
    >>> cpu_seconds(os.getpid()) > 0
    True
    """
    total = 0.0
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text(errors="replace").rpartition(")")[2].split()  # a name may hold anything
        except OSError:
            continue  # it has ended meanwhile
        if process in (int(file.parent.name), int(fields[1])):
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _some_model(folder: Path) -> Path:
    """Save a model that costs a request what a trained one costs; how well it is trained does not matter."""
    data = planted(2000, 5000, positives=40, seed=0).data
    return save(DPCML(n_vectors=5, dim=64, epochs=1, n_candidates=10).fit(data, progress=False), folder)


def _questions(train: Interactions) -> dict[str, tuple[str, list[dict[str, Any]]]]:
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
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def _when_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        found = re.search(r"http://127\.0\.0\.1:\d+/", log.read_text(errors="replace"))
        if found:
            with urlopen(f"{found[0]}ready", timeout=PATIENCE):  # waits until the model is loaded
                return found[0]
        time.sleep(0.05)
    said = log.read_text(errors="replace").strip().splitlines() or ["no message"]
    raise ChildError(f"the server did not come up: {said[-1]}")
