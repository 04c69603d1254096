"""How benchmarks measure: interleaved repetitions, best of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def all_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int = 3) -> dict[str, list[float]]:
    """Return the times of each job, in order; jobs take turns, so that a busy spell hits all of them.

    Examples
    --------
    >>> len(all_seconds({"sum": lambda: sum(range(10))}, repeats=2)["sum"])
    2
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def best_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Return the shortest time of each job, with the jobs taking turns.

    Examples
    --------
    >>> sorted(best_seconds({"sum": lambda: sum(range(10))}))
    ['sum']
    """
    return {name: min(seconds) for name, seconds in all_seconds(jobs, repeats).items()}
