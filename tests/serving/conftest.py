"""Servers on free ports of the loopback: in a thread of the test, or as a process of their own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
import httpx

from dpcml import CML, DPCML, EASE, Blend, ItemKNN, save
from dpcml.data.synthetic import planted
from dpcml.serving.app import create_app
from dpcml.serving.run import bind, make_server
from dpcml.serving.settings import ServeSettings

WAIT = int(os.environ.get("DPCML_TEST_WAIT", "120"))  # seconds at most for a server to come up or to end


@pytest.fixture(scope="session")
def world():
    """A small world with titles and categories."""
    return planted(200, 120, seed=3).data


class Models(dict[str, Path]):
    """Trained models in folders: several vectors, another seed, one vector, none, blends; made when asked for."""

    def __init__(self, world, place: Path) -> None:
        super().__init__()
        self.world, self.place = world, place
        settings = {"dim": 8, "epochs": 25, "n_candidates": 5, "learning_rate": 0.02}
        several = {"n_vectors": 3, "diversity": (0.2, 0.5)}
        self.unfitted = {
            "dpcml": DPCML(**settings, **several, random_state=0),
            "again": DPCML(**settings, **several, random_state=1),
            "cml": CML(**settings),
            "itemknn": ItemKNN(),
            "blend": Blend([DPCML(**settings, **several, random_state=0), EASE()]),
            "plain blend": Blend([EASE(), ItemKNN()]),
        }

    def __missing__(self, name: str) -> Path:
        self[name] = save(self.unfitted[name].fit(self.world), self.place / name)
        return self[name]


@pytest.fixture(scope="session")
def models(world, tmp_path_factory) -> Models:
    """Trained models by name."""
    return Models(world, tmp_path_factory.mktemp("models"))


@contextmanager
def in_thread(directory: Path, settings: ServeSettings | None = None) -> Iterator[httpx.Client]:
    """Serve a model from a thread; yields a client of it."""
    place = bind("127.0.0.1", 0)
    settings = settings or ServeSettings()
    server = make_server(create_app(directory, settings), settings)
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{place.getsockname()[1]}", timeout=WAIT) as client:
            wait_for(lambda: client.get("/ready").status_code == 200)
            yield client
    finally:
        server.should_exit = True
        thread.join(WAIT)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., httpx.Client]]:
    """Start servers in threads; all end with the module."""
    with ExitStack() as stack:
        yield lambda directory, settings=None: stack.enter_context(in_thread(directory, settings))


@pytest.fixture(scope="module")
def client(models, serve) -> httpx.Client:
    """A client of a server with two models."""
    return serve(models["dpcml"], ServeSettings(compare=models["itemknn"]))


class ServerProcess:
    """``dpcml serve`` as a process of its own."""

    def __init__(self, directory: Path, log: Path, *options: str, files: int | None = None) -> None:
        command = [sys.executable, "-m", "dpcml", "serve", str(directory), "--port", "0", *options]
        if files is not None:
            command = ["prlimit", f"--nofile={files}", *command]
        self.log = log
        with log.open("wb") as file:  # a group of its own, so that no worker outlives the test
            self.process = subprocess.Popen(command, stderr=file, stdout=file, start_new_session=True)
        self.client = httpx.Client()
        try:
            wait_for(lambda: self.process.poll() is not None or "http://" in self.text())
            found = re.search(r"http://[\d.]+:\d+", self.text())
            assert found, self.text()
            self.client = httpx.Client(base_url=found[0], timeout=WAIT)
            wait_for(lambda: self.client.get("/ready").status_code == 200)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def until(true: Callable[[], bool]) -> None:
        """Wait until something holds."""
        wait_for(true)

    def end(self) -> int:
        """Wait for the end of the process; returns its exit code."""
        return self.process.wait(WAIT)

    def in_flight(self) -> int:
        """Return how many requests are under way."""
        lines = self.client.get("/metrics").text.splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith("dpcml_requests_in_flight "))

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        self.client.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT)


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., ServerProcess]]:
    """Start servers as processes; all end with the test."""
    started: list[ServerProcess] = []

    def starting(directory: Path, *options: str, files: int | None = None) -> ServerProcess:
        started.append(ServerProcess(directory, tmp_path / f"log-{len(started)}", *options, files=files))
        return started[-1]

    yield starting
    for one in started:
        one.close()


@pytest.fixture
def own_model(models, tmp_path) -> Path:
    """A copy of a model that a test may damage."""
    return Path(shutil.copytree(models["dpcml"], tmp_path / "own"))


def wait_for(true: Callable[[], bool]) -> None:
    """Wait until something holds, but not for ever."""
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
