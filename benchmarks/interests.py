"""DPCML and its blend beside models with one vector or none: accuracy, minorities, interests, coverage.

DPCML and the blend have their defaults, the same for all data. The others are searched: as many settings each, their
defaults first, by NDCG@5 on the validation part of the first seed. Every trial is kept. On the planted world the
oracle, which knows the truth, is evaluated too.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.intervals import bootstrap_means, interval
from benchmarks.workloads import fitted, with_seed
from dpcml.data.datasets import load_dataset
from dpcml.data.interactions import Interactions
from dpcml.data.split import Split
from dpcml.data.synthetic import PlantedWorld, planted
from dpcml.evaluation.evaluate import evaluate, validation
from dpcml.evaluation.report import Report
from dpcml.models import Recommender, create
from dpcml.utils.arrays import FloatArray
from dpcml.utils.errors import MissingExtraError, ParameterError
from dpcml.utils.packages import version

MODELS = ("dpcml", "blend", "cml", "ease", "ials", "rp3beta", "itemknn")
RELEASED = "NDCG@5 (released)"
METRICS = (RELEASED, "NDCG@10", "minority_R@10", "interest_agreement", "interest_agreement_held_out", "coverage@10")
ORACLE = "oracle"
SEARCH: dict[str, list[dict[str, Any]]] = {  # after the defaults, in this order
    "cml": [
        {"margin": 0.5}, {"learning_rate": 0.001}, {"n_candidates": 10}, {"margin": 2.0}, {"learning_rate": 0.01},
        {"n_candidates": 40}, {"dim": 200},
    ],
    "ease": [{"l2": value} for value in (50.0, 500.0, 200.0, 20.0, 100.0, 1000.0, 10.0)],
    "ials": [
        {"dim": 128}, {"confidence": 10.0}, {"dim": 64}, {"confidence": 1.0}, {"dim": 128, "confidence": 10.0},
        {"dim": 512}, {"confidence": 20.0},
    ],
    "rp3beta": [
        {"alpha": alpha, "beta": beta}
        for alpha, beta in ((1.0, 0.3), (0.7, 0.2), (1.0, 0.5), (0.5, 0.1), (0.7, 0.4), (0.6, 0.0), (1.0, 0.1))
    ],
    "itemknn": [
        {"k": 400}, {"shrink": 100.0}, {"k": 50}, {"k": 400, "shrink": 100.0}, {"shrink": 0.0}, {"k": 200},
        {"k": 200, "shrink": 50.0},
    ],
}  # fmt: skip


def bench_interests(
    data: str = "planted",
    *,
    models: Sequence[str] = MODELS,
    seeds: int = 5,
    trials: int = 8,
    world: PlantedWorld | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Evaluate models on the test part of 60/20/20 splits, under the strict protocol and by NDCG@5 of the released one.

    Parameters
    ----------
    data
        A named data set or a file, or ``planted``. Metrics of categories are left out where items have none.
    models
        Models and presets by name; differences are to the first.
    seeds
        Runs, each with its own split and model.
    trials
        Settings that are tried of each model in `SEARCH`, its defaults included.
    world
        Another planted world than the default one.
    **settings
        Parameters of the first model that differ from its defaults.

    Returns
    -------
    dict
        ``models``: per model and metric the ``mean`` over the seeds, the ``low`` and ``high`` end of its 95 % interval
        (bootstrap over users and seeds; None for metrics of all lists together), the same of the ``difference``
        of the first model and this one, and on the planted world ``share_of_oracle``. ``trials``: what was tried, and
        its validation figure. ``found``: the settings that were best. ``skipped``: models that need an extra.

    Examples
    --------
    >>> found = bench_interests(world=planted(150, 120, seed=1), models=["ease", "rp3beta"], seeds=1, trials=2)
    >>> list(found["models"]), 0 < found["models"]["ease"]["NDCG@10"]["share_of_oracle"] < 1
    (['ease', 'rp3beta', 'oracle'], True)
    """
    if data == "planted" and world is None:
        world = planted()
    likes = load_dataset(data) if world is None else world.data
    reports: dict[str, list[Report]] = {}
    skipped: dict[str, str] = {}
    tried: list[dict[str, Any]] = []
    found: dict[str, dict[str, Any]] = {name: settings if name == models[0] else {} for name in models}
    for seed in range(seeds):
        parts, members = likes.split((0.6, 0.2, 0.2), seed), list[Recommender]()
        for name in sorted(models, key=lambda name: name != "blend"):  # its members need not be fitted twice
            try:
                if seed == 0 and name in SEARCH:
                    rows = search(name, parts, [found[name], *SEARCH[name][: trials - 1]])
                    tried += rows
                    found[name] = max(rows, key=lambda row: row["validation"])["parameters"]
                wanted = with_seed(create(name, **found[name]), seed)
                model = fitted(wanted, parts.train, parts.valid, members)
                members += getattr(model, "members_", [])
            except MissingExtraError as error:
                skipped[name] = str(error)
                continue
            reports.setdefault(name, []).append(_evaluate(model, parts))
            print_progress(data, seed, name, reports[name][-1])
        if world is not None:
            reports.setdefault(ORACLE, []).append(_evaluate(world.oracle(parts.train, parts.valid), parts))
    reports = {name: reports[name] for name in (*models, ORACLE) if name in reports}
    return {
        "benchmark": "interests",
        "data": data,
        "users": likes.n_users,
        "items": likes.n_items,
        "positives": likes.n_positives,
        "protocol": "strict",
        "seeds": seeds,
        "version": version(),
        "settings": settings,
        "found": found,
        "trials": tried,
        "models": _figures(reports, likes),
        "skipped": skipped,
    }


def add_models(kept: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a set with some models run again; the splits must be the same.

    Differences to the first model stay of those that were run with it only.

    Examples
    --------
    >>> old = {"NDCG@10": {"mean": 0.3, "difference": {"mean": 0.1}}}
    >>> kept = {"seeds": 5, "positives": 9, "found": {"ease": {}}, "trials": [], "models": {"ease": old}}
    >>> run = {"seeds": 5, "positives": 9, "found": {"cml": {}}, "trials": [], "models": {"cml": {}}}
    >>> add_models(kept, run)["models"]
    {'ease': {'NDCG@10': {'mean': 0.3}}, 'cml': {}}
    """
    for name in ("seeds", "positives"):
        if kept[name] != run[name]:
            raise ParameterError(f"{name}: {kept[name]:,} in the file, {run[name]:,} now: pass the same, or no --model")
    others = [one for one in kept["trials"] if one["model"] not in run["found"]]
    models = {
        name: {metric: {key: figure[key] for key in figure if key != "difference"} for metric, figure in row.items()}
        for name, row in kept["models"].items()
    }
    return {
        **run,
        "found": kept["found"] | run["found"],
        "trials": others + run["trials"],
        "models": models | run["models"],
    }


def search(name: str, parts: Split, settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the settings of a model with their NDCG@5 on the validation part, under the released protocol."""
    assert parts.valid is not None
    rows = []
    for parameters in settings:
        model = with_seed(create(name, **parameters), 0).fit(parts.train, valid=parts.valid)
        value = validation(model, parts.train, parts.valid, "NDCG@5")
        rows.append({"model": name, "parameters": parameters, "validation": value})
    return rows


def _evaluate(model: Any, parts: Split) -> Report:
    # By family, not by name: a model with one vector per user has no interest agreement.
    wanted = ["NDCG@10", "coverage@10", *(["minority_R@10", "categories"] if parts.train.items.attributes else [])]
    report = evaluate(model, parts.train, parts.test, valid=parts.valid, metrics=wanted)
    released = evaluate(model, parts.train, parts.test, protocol="released", metrics="NDCG@5")
    return replace(
        report,
        metrics={RELEASED: released.metrics["NDCG@5"], **report.metrics},
        per_user={RELEASED: released.per_user["NDCG@5"], **report.per_user},
    )


def print_progress(data: str, seed: int, name: str, report: Report) -> None:
    """Tell on standard error what a run found."""
    shown = ", ".join(f"{metric} {report.metrics[metric]:.4f}" for metric in METRICS if metric in report.metrics)
    logging.getLogger(__name__).info("%s, seed %d, %s: %s", data, seed, name, shown)


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
