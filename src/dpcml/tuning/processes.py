"""Trials in worker processes of this machine; one that dies takes only its own trial with it."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from dpcml.data.interactions import Interactions
from dpcml.tuning.engines import Share, threads_of_children
from dpcml.tuning.trial import Outcome, Task, run_trial
from dpcml.utils.signals import held_back


class Worker:
    """A process that runs one trial at a time."""

    def __init__(self, train: Interactions, valid: Interactions, threads: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks of threads that it does not have
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, train, valid), daemon=True)
        with threads_of_children(threads), held_back(signal.SIGINT):  # the one that searches hears Ctrl-C, and ends it
            self.process.start()
        theirs.close()
        self.task: Task | None = None
        self._since = 0.0

    def start(self, task: Task) -> None:
        """Hand out a trial."""
        self.task, self._since = task, time.perf_counter()
        with suppress(OSError):  # it died before it began: the line says so when it is read
            self.line.send(task)

    def outcome(self) -> Outcome:
        """Return how its trial went, once the line has something to say."""
        try:
            found: Outcome = self.line.recv()
            return found
        except (EOFError, OSError):
            self.process.join()
            seconds = time.perf_counter() - self._since
            return Outcome(None, seconds, error=_why(self.process.exitcode))

    @property
    def alive(self) -> bool:
        """Whether it can take another trial."""
        return self.process.is_alive()

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.line.close()  # last: a process that finds its line closed would complain


class Processes:
    """As many worker processes as trials may run at once; each is started when it is needed first."""

    def __init__(self, train: Interactions, valid: Interactions, share: Share) -> None:
        self.train, self.valid, self.share = train, valid, share
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Run trials; each is yielded as soon as it is done."""
        waiting = deque(tasks)
        while waiting or any(worker.task for worker in self.workers):
            while waiting and (idle := self._idle()):
                idle.start(waiting.popleft())
            busy: dict[Any, Worker] = {worker.line: worker for worker in self.workers if worker.task}
            for line in wait(list(busy)):
                worker = busy[line]
                task, outcome = worker.task, worker.outcome()
                worker.task = None
                if not worker.alive:
                    self.workers.remove(worker)
                    worker.end()
                if task is not None:
                    yield task, outcome

    def _idle(self) -> Worker | None:
        for worker in self.workers:
            if worker.task is None:
                return worker
        if len(self.workers) == self.share.workers:
            return None
        self.workers.append(Worker(self.train, self.valid, self.share.threads))
        return self.workers[-1]


def _why(code: int | None) -> str:
    """Say what the end of a process may mean.

    Examples
    --------
    >>> _why(-9)
    'its process was ended by signal 9; out of memory, perhaps'
    """
    if code is not None and code < 0:
        perhaps = "; out of memory, perhaps" if code == -signal.SIGKILL else ""
        return f"its process was ended by signal {-code}{perhaps}"
    return (
        f"its process ended with exit code {code}; a script that calls tune does so below "
        "'if __name__ == \"__main__\":', or with workers=1"
    )


def _serve(line: Connection, train: Interactions, valid: Interactions) -> None:
    with suppress(EOFError, OSError):  # the one that searches is gone
        while True:
            line.send(run_trial(line.recv(), train, valid))
