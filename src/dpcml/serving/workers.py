"""Several processes that share a socket, and what happens when one of them is lost."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import time
from contextlib import suppress
from socket import socket

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from dpcml.serving.crew import Crew
from dpcml.serving.logs import say
from dpcml.utils.signals import held_back

AGAIN = 10.0  # seconds until a worker that could not start is tried again
SILENT = 60.0  # seconds without an answer, as while it imports, after which a worker is taken for dead


class Workers(Multiprocess):
    """Processes that are replaced when they die; one that cannot start leaves the others at work.

    Uvicorn itself would end them all, as a worker that cannot start would not start the next time either; but here the
    others hold a model that was sound. It would also wait for the answer of each worker, deaf to signals.

    Parameters
    ----------
    config, sockets
        As uvicorn takes them.
    crew
        Is told who has died.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket], crew: Crew) -> None:
        super().__init__(config, sockets)
        self.all_lost = False
        self._crew, self._next_try = crew, 0.0
        self._heard: dict[int | None, float] = {}  # when each worker answered last
        self._asked: set[int | None] = set()  # whose answer is due

    def handle_hup(self) -> None:
        """Have all workers load the model anew, and try those again that could not start."""
        self._next_try = 0.0
        for worker in self.processes:
            with suppress(ProcessLookupError):  # it may have died a moment ago
                if worker.pid is not None:
                    os.kill(worker.pid, signal.SIGHUP)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have died, at once or, where they could not start, after a while."""
        if self.should_exit.is_set():
            return
        dead = [worker for worker in self.processes if worker.exitcode is not None or not self._answers(worker)]
        self.processes = [worker for worker in self.processes if worker not in dead]
        for worker in dead:
            worker.kill()  # if it only hangs
            worker.join()
        self._crew.keep(worker.pid for worker in self.processes)
        failed = [worker for worker in dead if worker.exitcode == STARTUP_FAILURE]
        if failed:
            self._next_try = time.monotonic() + AGAIN
            self.all_lost = not self.processes
        for worker in dead:
            then = "the server ends" if self.all_lost else f"tried again in {AGAIN:g} s, or on SIGHUP"
            then = then if worker in failed else "replaced"
            code, left = worker.exitcode, len(self.processes)
            say("worker lost", logging.ERROR, process=worker.pid, exit_code=code, workers=left, then=then)
        if self.all_lost:
            self.should_exit.set()
        elif time.monotonic() >= self._next_try or not self.processes:
            for _ in range(self.processes_num - len(self.processes)):
                self._start()

    def init_processes(self) -> None:
        """Start all workers."""
        for _ in range(self.processes_num):
            self._start()

    def _start(self) -> None:
        """Start a worker; SIGHUP waits until it has loaded the model."""
        self.processes.append(Process(self.config, self.sockets))
        with held_back(signal.SIGHUP):
            self.processes[-1].start()

    def _answers(self, worker: Process) -> bool:
        """Say whether a worker has answered lately, without waiting for it."""
        now, pid = time.monotonic(), worker.pid
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            if pid in self._asked and worker.parent_conn.poll(0):
                worker.parent_conn.recv()
                self._asked.discard(pid)
                self._heard[pid] = now
            if pid not in self._asked:
                worker.parent_conn.send(b"ping")
                self._asked.add(pid)
        return now - self._heard.setdefault(pid, now) < SILENT
