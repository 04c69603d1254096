"""What all parts of the campaign share: a tally of cases, and processes that may die without ending the campaign."""

from __future__ import annotations

import faulthandler
import itertools
import multiprocessing
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

CASE_SECONDS = 300  # a case that takes longer hangs
SHOWN = 20  # failures that the results file describes
STACKS, DEPTH = "stacks", 6  # the file that a process which hangs writes, and how many calls of it are shown

# A process of a case is forked from one that has imported the package and loaded its kernels. Each of them is a real
# process that can be killed, and starts in milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.faults.campaign.warm"])

# A case: its folder and its random numbers in; its kind and what went wrong, if anything did, out.
Attempt = Callable[[Path, np.random.Generator], tuple[str, str | None]]


@dataclass
class Tally:
    """Cases and failures of a part of the campaign, by kind of case."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, failure: str | None = None) -> None:
        """Count a case."""
        self.counts[kind] += 1
        if failure is not None:
            self.failed[kind] += 1
            self.notes.append(f"{kind}: {failure}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        kinds = {kind: {"cases": n, "failures": self.failed[kind]} for kind, n in sorted(self.counts.items())}
        total = {"cases": self.counts.total(), "failures": self.failed.total(), "kinds": kinds}
        return total | ({"described": self.notes[:SHOWN]} if self.notes else {})


@dataclass(frozen=True)
class Budget:
    """How much a part may do: a share of its full number of cases, and the time at which it has to stop."""

    seed: int
    scale: float = 1.0
    end: float = float("inf")  # of time.monotonic

    def cases(self, full: int) -> int:
        """Return the number of cases for a full number."""
        return max(1, round(full * self.scale))

    def over(self) -> bool:
        """Return whether the time is up."""
        return time.monotonic() > self.end


def load_once() -> None:
    """Start the process that all others are forked from, and wait until everything is loaded and compiled."""
    process = PROCESSES.Process(target=int)
    process.start()
    process.join()


def run_isolated(attempt: Attempt, cases: int, folder: Path, budget: Budget) -> Tally:
    """Run cases one after the other in another process; if it dies or hangs, the case failed and a new one goes on."""
    tally, first = Tally(), 0
    while first < cases and not budget.over():
        ours, theirs = PROCESSES.Pipe()
        place = folder / f"from-{first}"
        place.mkdir(parents=True)
        process = PROCESSES.Process(target=_run, args=(theirs, attempt, first, cases, place, budget))
        process.start()
        theirs.close()
        try:
            while first < cases and ours.poll(CASE_SECONDS):
                found = ours.recv()
                if found is None:  # the time is up
                    break
                tally.add(*found)
                first += 1
            else:
                if first < cases:
                    tally.add("hang", f"case {first}: no answer in {CASE_SECONDS} s, {_where(process, place)}")
                    first += 1
        except EOFError:
            process.join()
            tally.add("crash", f"case {first}: the process ended with code {process.exitcode}")
            first += 1
        finally:
            process.kill()
            process.join()
            ours.close()
    return tally


def _where(process: Any, place: Path) -> str:
    """Return in which functions the threads of a process are, innermost first."""
    os.kill(process.pid, signal.SIGUSR1)
    time.sleep(2)
    threads = (place / STACKS).read_text().split("\n\n")
    stacks = [re.findall(r'/([^/"]+)", line (\d+) in (\S+)', thread)[:DEPTH] for thread in threads]
    return "; ".join(" < ".join(f"{name} ({file}:{line})" for file, line, name in stack) for stack in stacks)


def _run(results: Connection, attempt: Attempt, first: int, cases: int, folder: Path, budget: Budget) -> None:
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, (folder / STACKS).open("w"))
    os.chdir(folder)
    for case in itertools.count(first):
        if case == cases or budget.over():
            results.send(None)
            results.recv_bytes()  # until the campaign closes the pipe
            return
        rng = np.random.default_rng([budget.seed, case])
        try:
            results.send(attempt(folder, rng))
        except Exception as error:  # an error that a case did not expect is what it looks for
            results.send((attempt.__name__, f"case {case}: {type(error).__name__}: {error}"[:500]))
