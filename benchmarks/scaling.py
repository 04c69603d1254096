"""Training cost per positive as the data grows, on generated data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from benchmarks.timing import Jobs, best_seconds
from benchmarks.workloads import POSITIVES_PER_USER, StepConfig, sized_data
from dpcml.training.order import default_user_run
from dpcml.utils.threads import thread_count

SIZES = (10**5, 10**6, 10**7)


def bench_scaling(
    sizes: Sequence[int] = SIZES,
    *,
    n_items: int | None = None,
    repeats: int = 3,
    threads: int | None = None,
    step: StepConfig | None = None,
) -> dict[str, Any]:
    """Time an epoch on data of growing size, with the same C, d and S.

    Parameters
    ----------
    sizes
        Numbers of positives.
    n_items
        Items of every data set; by default the catalogue grows too, see `sized_data`.
    repeats
        Interleaved rounds of one epoch each, after one that is not timed; the best is reported.
    step
        The training step; by default with as long runs of one user's positives as `DPCML` takes.

    Returns
    -------
    dict
        ``worlds``: shape, ``seconds_per_epoch`` and ``nanoseconds_per_positive`` of each data set; ``growth``: cost
        per positive of the last one over that of the first.

    Examples
    --------
    >>> found = bench_scaling((2000, 4000), n_items=300, repeats=1, step=StepConfig(dim=8))
    >>> [world["items"] for world in found["worlds"]], found["growth"] > 0
    ([300, 300], True)
    """
    threads = thread_count(threads)
    step = step or StepConfig(max_user_run=default_user_run(POSITIVES_PER_USER, 1))
    data_sets = {f"{size:.0e}": sized_data(size, n_items) for size in sizes}
    jobs: Jobs = {}
    rate = step.learning_rate
    for name, data in data_sets.items():
        engine, numbers = step.engine(data, threads), itertools.count()
        jobs[name] = lambda engine=engine, numbers=numbers: engine.epoch(next(numbers), rate)  # type: ignore[misc]
        jobs[name]()
    seconds = best_seconds(jobs, repeats)
    found = [
        {
            "users": data.n_users,
            "items": data.n_items,
            "positives": data.n_positives,
            "seconds_per_epoch": seconds[name],
            "nanoseconds_per_positive": seconds[name] / data.n_positives * 1e9,
        }
        for name, data in data_sets.items()
    ]
    return {
        "benchmark": "scaling",
        "vectors": step.n_vectors,
        "dim": step.dim,
        "candidates": step.n_candidates,
        "batch_size": step.batch_size,
        "together": step.max_user_run,
        "threads": threads,
        "worlds": found,
        "growth": found[-1]["nanoseconds_per_positive"] / found[0]["nanoseconds_per_positive"],
    }
