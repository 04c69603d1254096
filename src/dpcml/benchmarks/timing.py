"""How benchmarks measure: interleaved repetitions, best of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_seconds(jobs: Mapping[str, Callable[[], object]], repeats: int = 3) -> dict[str, float]:
    """Return the shortest time of each job; jobs take turns, so that a busy spell hits all of them.

    Examples
    --------
    >>> sorted(best_seconds({"sum": lambda: sum(range(10))}))
    ['sum']
    """
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - started)
    return best
