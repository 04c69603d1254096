"""Timing: interleaved repetitions and the best of each, latencies, and the spread of several times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping

import numpy as np

Jobs = dict[str, Callable[[], object]]


def seconds_of(job: Callable[[], object]) -> float:
    """Return the seconds that a job takes.

    Examples
    --------
    >>> seconds_of(lambda: sum(range(10))) > 0
    True
    """
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def latency(jobs: Iterable[Callable[[], object]]) -> tuple[float, float]:
    """Return the median and the 99th percentile of the jobs' milliseconds, run one after the other.

    Examples
    --------
    >>> median, p99 = latency([lambda: sum(range(10))] * 3)
    >>> 0 < median <= p99
    True
    """
    seconds = [seconds_of(job) for job in jobs]
    return 1e3 * float(np.median(seconds)), 1e3 * float(np.percentile(seconds, 99))


def all_seconds(
    jobs: Mapping[str, Callable[[], object]], repeats: int = 3, calls: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """Return the times of each job over interleaved rounds, so that other load on the machine hits all jobs alike.

    Parameters
    ----------
    jobs
        Functions by name.
    repeats
        Rounds; each runs every job.
    calls
        How often a job is called in a round, once by default; its time is the mean. The first of several calls finds
        the caches full of other jobs' data.

    Examples
    --------
    >>> done = []
    >>> jobs = {"short": lambda: done.append("short"), "long": lambda: done.append("long")}
    >>> len(all_seconds(jobs, repeats=2, calls={"short": 3})["short"]), done[:4]
    (2, ['short', 'short', 'short', 'long'])
    """
    counts = calls or {}
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            count = counts.get(name, 1)
            seconds[name].append(seconds_of(lambda: [job() for _ in range(count)]) / count)  # noqa: B023
    return seconds


def best_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Return the shortest time of each job over interleaved rounds.

    Examples
    --------
    >>> sorted(best_seconds({"sum": lambda: sum(range(10))}))
    ['sum']
    """
    return {name: min(seconds) for name, seconds in all_seconds(jobs, repeats).items()}


def spread(times: list[float]) -> dict[str, float]:
    """Return the best, the median and the worst of some times.

    Examples
    --------
    >>> spread([3.0, 1.0, 2.0])
    {'best': 1.0, 'median': 2.0, 'worst': 3.0}
    """
    return {"best": min(times), "median": statistics.median(times), "worst": max(times)}
