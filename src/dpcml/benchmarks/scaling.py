"""Cost per positive as the data grows, on planted worlds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from dpcml.benchmarks.setting import Setting
from dpcml.benchmarks.timing import best_seconds
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted
from dpcml.training.order import default_user_run
from dpcml.utils.threads import thread_count

SIZES = (10**5, 10**6, 10**7)
PER_USER = 40
BASE = (10**5, 5000)  # positives and items of the smallest world


def world_of(positives: int, n_items: int | None = None) -> Interactions:
    """Return a planted world of about so many positives, 40 per user.

    Without ``n_items`` the catalogue grows with the square root of the positives, from 5,000 items at 10^5.

    Examples
    --------
    >>> world = world_of(4000)
    >>> world.n_users, world.n_items
    (100, 1000)
    """
    items = n_items or round(BASE[1] * (positives / BASE[0]) ** 0.5)
    return planted(max(1, positives // PER_USER), items, positives=PER_USER).data


def bench_scaling(
    sizes: Sequence[int] = SIZES,
    *,
    n_items: int | None = None,
    repeats: int = 3,
    threads: int | None = None,
    setting: Setting | None = None,
) -> dict[str, Any]:
    """Time an epoch on worlds of growing size, all with the same C, d and S.

    Parameters
    ----------
    sizes
        Numbers of positives.
    n_items
        Items of every world; by default the catalogue grows too, see `world_of`.
    repeats
        Epochs timed of each, in turns; the best counts. One more comes first and is not timed.
    setting
        The step that is timed; by default with as many of a user's positives side by side as `DPCML` would have.

    Returns
    -------
    dict
        ``worlds``: shape, ``seconds_per_epoch`` and ``nanoseconds_per_positive`` of each; ``growth``: the last
        world's cost per positive over the first one's.

    Examples
    --------
    >>> found = bench_scaling((2000, 4000), n_items=300, repeats=1, setting=Setting(dim=8))
    >>> [world["items"] for world in found["worlds"]], found["growth"] > 0
    ([300, 300], True)
    """
    threads, setting = thread_count(threads), setting or Setting(together=default_user_run(PER_USER, 1))
    worlds = {f"{size:.0e}": world_of(size, n_items) for size in sizes}
    jobs: dict[str, Callable[[], object]] = {}
    for name, world in worlds.items():
        engine, numbers = setting.engine(world, threads), itertools.count()
        jobs[name] = lambda engine=engine, numbers=numbers: engine.epoch(next(numbers), setting.rate)  # type: ignore[misc]
        jobs[name]()
    seconds = best_seconds(jobs, repeats)
    found = [
        {
            "users": world.n_users,
            "items": world.n_items,
            "positives": world.n_positives,
            "seconds_per_epoch": seconds[name],
            "nanoseconds_per_positive": seconds[name] / world.n_positives * 1e9,
        }
        for name, world in worlds.items()
    ]
    return {
        "benchmark": "scaling",
        "vectors": setting.n_vectors,
        "dim": setting.dim,
        "candidates": setting.n_candidates,
        "batch_size": setting.batch_size,
        "together": setting.together,
        "threads": threads,
        "worlds": found,
        "growth": found[-1]["nanoseconds_per_positive"] / found[0]["nanoseconds_per_positive"],
    }
