"""Whether vectors are interests, and what minorities get from it: DPCML beside models with one vector or none.

Every model has its own defaults, and sees training and validation parts only. On the planted world the oracle, which
knows the truth, is evaluated too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.intervals import bootstrap_means, interval
from dpcml.data.datasets import load_dataset
from dpcml.data.interactions import Interactions
from dpcml.data.split import Split
from dpcml.data.synthetic import PlantedWorld, planted
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.report import Report
from dpcml.models import create
from dpcml.utils.arrays import FloatArray
from dpcml.utils.errors import MissingExtraError, ParameterError

MODELS = ("dpcml", "cml", "ease", "ials", "rp3beta")
METRICS = ("NDCG@10", "minority_R@10", "interest_agreement", "interest_agreement_held_out", "coverage@10")
ORACLE = "oracle"


def bench_interests(
    data: str = "planted",
    *,
    models: Sequence[str] = MODELS,
    seeds: int = 5,
    world: PlantedWorld | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Evaluate models on the test part of 60/20/20 splits, under the strict protocol.

    Parameters
    ----------
    data
        A named data set or a file with categories, or ``planted``.
    models
        Models and presets by name; differences are to the first.
    seeds
        Runs, each with its own split and model.
    world
        Another planted world than the default one.
    **settings
        Parameters of the first model that differ from its defaults.

    Returns
    -------
    dict
        ``models``: per model and metric the ``mean`` over the seeds, the ``low`` and ``high`` end of its 95 % interval
        (bootstrap over users and seeds; None for metrics of all lists together), the same of the ``difference``
        of the first model and this one, and on the planted world ``share_of_oracle``. ``skipped``: models that need
        an extra.

    Examples
    --------
    >>> found = bench_interests(world=planted(150, 120, seed=1), models=["ease", "rp3beta"], seeds=1)
    >>> list(found["models"]), 0 < found["models"]["ease"]["NDCG@10"]["share_of_oracle"] < 1
    (['ease', 'rp3beta', 'oracle'], True)
    """
    if data == "planted" and world is None:
        world = planted()
    likes = load_dataset(data) if world is None else world.data
    if likes.items.attributes is None:
        raise ParameterError(f"data={data!r}: its items have no categories; use planted, ml-1m or ml-100k")
    reports: dict[str, list[Report]] = {}
    skipped: dict[str, str] = {}
    for seed in range(seeds):
        parts = likes.split((0.6, 0.2, 0.2), seed)
        for name in models:
            model = create(name, **(settings if name == models[0] else {}))
            if "random_state" in model.get_params():
                model.set_params(random_state=seed)
            try:
                model.fit(parts.train, valid=parts.valid)
            except MissingExtraError as error:
                skipped[name] = str(error)
                continue
            reports.setdefault(name, []).append(_evaluate(model, parts))
        if world is not None:
            reports.setdefault(ORACLE, []).append(_evaluate(world.oracle(parts.train, parts.valid), parts))
    return {
        "benchmark": "interests",
        "data": data,
        "users": likes.n_users,
        "items": likes.n_items,
        "positives": likes.n_positives,
        "protocol": "strict",
        "seeds": seeds,
        "settings": settings,
        "models": _figures(reports, likes),
        "skipped": skipped,
    }


def _evaluate(model: Any, parts: Split) -> Report:
    # By family, not by name: a model with one vector per user has no interest agreement.
    wanted = ["NDCG@10", "minority_R@10", "coverage@10", "categories"]
    return evaluate(model, parts.train, parts.test, valid=parts.valid, metrics=wanted)


def _figures(reports: dict[str, list[Report]], data: Interactions) -> dict[str, dict[str, dict[str, Any]]]:
    first = next(iter(reports))
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in reports}
    for metric in METRICS:
        having = {name: runs for name, runs in reports.items() if metric in runs[0].metrics}
        means = {name: float(np.mean([run.metrics[metric] for run in runs])) for name, runs in having.items()}
        values = {
            name: [_by_user(run, metric, data) for run in runs]
            for name, runs in having.items()
            if metric in runs[0].per_user
        }
        drawn = bootstrap_means(values, np.random.default_rng(0)) if values else {}
        for name, mean in means.items():
            figure: dict[str, Any] = {"mean": mean, "low": None, "high": None}
            if name in drawn:
                figure["low"], figure["high"] = interval(drawn[name])
            if first in means and name != first:
                figure["difference"] = {"mean": means[first] - mean, "low": None, "high": None}
                if name in drawn:
                    low, high = interval(drawn[first] - drawn[name])
                    figure["difference"] |= {"low": low, "high": high}
            if ORACLE in means and name != ORACLE and means[ORACLE]:
                figure["share_of_oracle"] = mean / means[ORACLE]
            found[name][metric] = figure
    return found


def _by_user(report: Report, metric: str, data: Interactions) -> FloatArray:
    """Return one value for each user of the data: splits differ in who has held-out items."""
    assert report.users is not None
    values = np.full(data.n_users, np.nan)
    values[data.user_rows(report.users)] = report.per_user[metric]
    return values
