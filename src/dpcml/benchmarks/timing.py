"""How benchmarks measure: interleaved repetitions and the best of each, latencies, and how busy the machine was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np


def machine_load() -> float | None:
    """Return how many programs wanted to run in the last minute, None where the system does not say.

    Examples
    --------
    >>> (machine_load() or 0) >= 0
    True
    """
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def seconds_of(job: Callable[[], object]) -> float:
    """Return how long a job takes.

    Examples
    --------
    >>> seconds_of(lambda: sum(range(10))) > 0
    True
    """
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def milliseconds(jobs: Iterable[Callable[[], object]]) -> tuple[float, float]:
    """Return the median and the 99th percentile of how long jobs take, one after the other.

    Examples
    --------
    >>> median, p99 = milliseconds([lambda: sum(range(10))] * 3)
    >>> 0 < median <= p99
    True
    """
    seconds = [seconds_of(job) for job in jobs]
    return 1e3 * float(np.median(seconds)), 1e3 * float(np.percentile(seconds, 99))


def all_seconds(
    jobs: Mapping[str, Callable[[], object]], repeats: int = 3, in_a_row: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """Return the times of each job, in order; jobs take turns, so that a busy spell hits all of them.

    Parameters
    ----------
    jobs
        By name.
    repeats
        Turns of each.
    in_a_row
        How often a job is done in a turn, once by default; its time is then the mean. The first of several finds the
        caches full of other jobs' data.

    Examples
    --------
    >>> done = []
    >>> jobs = {"short": lambda: done.append("short"), "long": lambda: done.append("long")}
    >>> len(all_seconds(jobs, repeats=2, in_a_row={"short": 3})["short"]), done[:4]
    (2, ['short', 'short', 'short', 'long'])
    """
    times = in_a_row or {}
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            count = times.get(name, 1)
            seconds[name].append(seconds_of(lambda: [job() for _ in range(count)]) / count)  # noqa: B023
    return seconds


def best_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Return the shortest time of each job, with the jobs taking turns.

    Examples
    --------
    >>> sorted(best_seconds({"sum": lambda: sum(range(10))}))
    ['sum']
    """
    return {name: min(seconds) for name, seconds in all_seconds(jobs, repeats).items()}
