"""Accuracy of training on several Ray workers against the interval of exchange, beside that of one process."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import product
from typing import Any

from dpcml.data.split import by_ratio
from dpcml.evaluation.evaluate import evaluate
from dpcml.models import create
from dpcml.scale import RayRunner
from dpcml.scale.collective import POWER
from dpcml.scale.runner import share_of_batch
from dpcml.utils.cluster import ray_session
from dpcml.workflow import DataSource

METRICS = ("NDCG@10", "R@10", "P@3")
INTERVALS = (0.1, 1.0, 10.0)  # positives of a worker per item, between two exchanges; the default is 1


def bench_scale_accuracy(
    data: str,
    *,
    workers: Sequence[int] = (2, 4),
    intervals: Sequence[float] = INTERVALS,
    powers: Sequence[float] = (POWER,),
    seeds: int = 3,
    split_seed: int = 0,
    **changes: Any,
) -> dict[str, Any]:
    """Train with each number of workers and each interval on the same split, with several seeds.

    Parameters
    ----------
    data
        A data set's name, a file, or ``planted``.
    workers
        Numbers of workers; one process without Ray is always among the rows, as 0 workers.
    intervals
        Exchanges: after so many positives of a worker per item.
    powers
        How movements are added up, see ``sync_power`` of `dpcml.scale.RayRunner`: 0 is the sum, 1 the mean.
    seeds
        Runs of each setting.
    split_seed
        Seed of the split.
    **changes
        Parameters of `dpcml.DPCML` in place of its defaults.

    Returns
    -------
    dict
        ``rows``: workers, interval, ``sync_every`` in batches, ``sync_power``, and for each metric the values of all
        seeds; ``mean`` of each.
    """
    split = by_ratio(DataSource(data).read(), rng=split_seed)
    model = create("dpcml", **changes)
    batch, n_items = model.get_params()["batch_size"], split.train.n_items
    settings = [(0, 0.0, 0.0), *product(workers, intervals, powers)]
    rows = list[dict[str, Any]]()
    with ray_session(cores=max(workers)):
        for count, interval, power in settings:
            every = 0
            if count:
                every = max(1, round(interval * n_items / share_of_batch(batch, count, split.train.n_positives)))
            values: dict[str, list[float]] = {name: [] for name in METRICS}
            for seed in range(seeds):
                one = create("dpcml", **changes, random_state=seed, n_threads=1)
                runner = RayRunner(count, sync_every=every, sync_power=power) if count else None
                one.fit(split.train, valid=split.valid, progress=False, runner=runner)
                report = evaluate(one, split.train, split.test, valid=split.valid, metrics=METRICS)
                for name in METRICS:
                    values[name].append(report.metrics[name])
            how = {"sync_every": every, "sync_power": power} if count else {"sync_every": None, "sync_power": None}
            means = {name: statistics.fmean(figures) for name, figures in values.items()}
            rows.append({"workers": count, "interval": interval, **how, **values, "mean": means})
    return {
        "data": data,
        "users": split.train.n_users,
        "items": n_items,
        "positives": split.train.n_positives,
        "split": split.hash,
        "protocol": "strict",
        "seeds": seeds,
        "changes": changes,
        "rows": rows,
    }
