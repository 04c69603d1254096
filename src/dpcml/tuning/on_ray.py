"""Trials on Ray: the machines of a cluster, or worker processes of this one."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

from dpcml.data.interactions import Interactions
from dpcml.tuning.engines import Share, threads_of_children
from dpcml.tuning.trial import Outcome, Task, run_trial
from dpcml.utils.packages import require


class OnRay:
    """Ray's workers, each with as many cores as a trial has threads.

    Connects to the cluster that ``RAY_ADDRESS`` names; without it, Ray is started on this machine for as long as the
    search lasts. On a cluster, as many trials run at once as its cores allow. Needs ray: ``pip install 'dpcml[ray]'``.
    """

    def __init__(self, train: Interactions, valid: Interactions, share: Share) -> None:
        self._ray: Any = require("ray", "ray")
        self.data, self.share = (train, valid), share
        self._ours = False
        self._parts: list[Any] = []

    def __enter__(self) -> Self:
        if not self._ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            address = os.environ.get("RAY_ADDRESS", "local")
            cores = {"num_cpus": self.share.workers * self.share.threads} if address == "local" else {}
            with threads_of_children(self.share.threads):
                quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
                self._ray.init(address=address, **quiet, **cores)
            self._ours = True
        self._parts = [self._ray.put(part) for part in self.data]
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.clear()
        if self._ours:
            self._ray.shutdown()

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Run trials; each is yielded as soon as it is done."""
        # A trial that kills its worker would kill the next one too: no second try.
        remote = self._ray.remote(num_cpus=self.share.threads, max_retries=0)(_limited)
        started = time.perf_counter()
        running = {remote.remote(task, self.share.threads, *self._parts): task for task in tasks}
        try:
            while running:
                ready, _ = self._ray.wait(list(running), num_returns=1)
                yield running.pop(ready[0]), self._outcome(ready[0], started)
        finally:
            for left in running:
                self._ray.cancel(left, force=True)

    def _outcome(self, reference: Any, started: float) -> Outcome:
        try:
            found: Outcome = self._ray.get(reference)
            return found
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            return Outcome(None, time.perf_counter() - started, error=f"its worker died: {reason}")


def _limited(task: Task, threads: int, train: Interactions, valid: Interactions) -> Outcome:
    os.environ["DPCML_THREADS"] = str(threads)  # a worker of Ray does nothing but trials
    return run_trial(task, train, valid)
