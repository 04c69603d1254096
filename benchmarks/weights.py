"""What weights of positives change: accuracy on all held-out positives, and on those with a large weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import evaluate
from dpcml.models import create

METRICS = ("NDCG@10", "R@10")


def bench_weights(
    data: Interactions,
    *,
    models: Sequence[str] = ("itemknn", "ials", "cml", "dpcml"),
    heavy: float = 10.0,
    seeds: int = 1,
    part: str = "valid",
    **settings: Any,
) -> dict[str, Any]:
    """Train models with and without weights, and evaluate both on the same held-out positives.

    Parameters
    ----------
    data
        All positives, with weights.
    models
        Models or presets.
    heavy
        Least weight of a held-out positive that counts as heavy.
    seeds
        Runs, each with its own split and model; the figures are means.
    part
        ``valid`` or ``test``.
    **settings
        Parameters of all models that have them.

    Returns
    -------
    dict
        ``rows``: per model and use of weights the metrics on ``all`` held-out positives and on ``heavy`` ones.

    Examples
    --------
    >>> likes = Interactions.from_csr(np.random.default_rng(0).random((40, 30)) < 0.4)
    >>> plays = replace(likes, weights=np.arange(likes.n_positives) % 30)
    >>> found = bench_weights(plays, models=["itemknn"])
    >>> [(row["model"], row["weights"]) for row in found["rows"]]
    [('itemknn', False), ('itemknn', True)]
    """
    rows = []
    for name in models:
        for weighted in (False, True):
            runs = [_run(data, name, weighted, heavy, seed, part, settings) for seed in range(seeds)]
            means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            rows.append({"model": name, "weights": weighted, **means})
    return {
        "benchmark": "weights",
        "users": data.n_users,
        "items": data.n_items,
        "positives": data.n_positives,
        "heavy": heavy,
        "heavy_share": float(np.mean(np.asarray(data.weights) >= heavy)),
        "protocol": "strict",
        "part": part,
        "seeds": seeds,
        "settings": settings,
        "rows": rows,
    }


def _run(
    data: Interactions, name: str, weighted: bool, heavy: float, seed: int, part: str, settings: dict[str, Any]
) -> dict[str, float]:
    train, valid, test = data.split(rng=seed)
    held = {"valid": valid, "test": test}[part]
    model = create(name)
    known = model.get_params()
    model.set_params(**{key: value for key, value in {"random_state": seed, **settings}.items() if key in known})
    learned, stop = (train, valid) if weighted else (replace(part, weights=None) for part in (train, valid))
    model.fit(learned, stop, progress=False)
    also = valid if part == "test" else None
    found: dict[str, float] = {}
    for label, some in {"all": held, "heavy": held.select(np.asarray(held.weights) >= heavy)}.items():
        figures = evaluate(model, train, some, valid=also, metrics=METRICS).metrics
        found |= {f"{metric} {label}": figures[metric] for metric in METRICS}
    return found
