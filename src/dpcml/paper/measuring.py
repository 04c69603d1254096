"""Training time and memory: seconds per epoch of many methods in one run, and the peak memory of a fit."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.models import MODELS, Recommender, create
from dpcml.models.presets import PRESETS
from dpcml.utils.errors import DataError, MissingExtraError
from dpcml.utils.threads import thread_count

YARDSTICK = "dpcml2"  # the paper's own method: times are also shown as multiples of its epoch
EPOCHS = 3  # per fit; the first one warms up


def method_names() -> list[str]:
    """Return the names of all models and presets, each once.

    Examples
    --------
    >>> {"ease", "dpcml2"} <= set(method_names())
    True
    """
    return list(dict.fromkeys([*MODELS, *PRESETS]))


def time_methods(
    data: Interactions, *, methods: Sequence[str] | None = None, epochs: int = EPOCHS, repeats: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Return the training time of every method on the training part of a 60/20/20 split, without validation.

    Parameters
    ----------
    data
        All positives; they are split here.
    methods
        Names of models and presets; all by default.
    epochs
        Epochs per fit, at most. The first one is left out if there are others.
    repeats
        Rounds; each fits every method once, so that other load on the machine affects all. The best one counts.
    seed
        Seed of the split and of the models.

    Returns
    -------
    dict
        ``methods``: per method ``name``, ``class``, ``per`` (``epoch`` or ``fit``), ``seconds`` of the best round,
        ``spread`` over rounds, and ``ratio`` to an epoch of DPCML2 (None without it); ``skipped``: why a method has no
        figures, by name.

    Examples
    --------
    >>> import numpy as np
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((40, 30)) < 0.3)
    >>> found = time_methods(data, methods=["popularity"], repeats=1)
    >>> found["methods"][0]["per"], found["skipped"]
    ('fit', {})
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    train = data.split((0.6, 0.2, 0.2), seed)[0]
    wanted = list(dict.fromkeys(method_names() if methods is None else methods))
    models = {name: _shortened(create(name), epochs, seed) for name in wanted}
    seconds: dict[str, list[float]] = {name: [] for name in wanted}
    skipped: dict[str, str] = {}
    for _ in range(repeats):
        for name in [name for name in wanted if name not in skipped]:
            try:
                seconds[name].append(_seconds(models[name], train))
            except (MissingExtraError, DataError) as error:
                skipped[name] = str(error)
    timed = [name for name in wanted if name not in skipped]
    yardstick = min(seconds[YARDSTICK]) if YARDSTICK in timed else None
    return {
        "benchmark": "methods",
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "threads": thread_count(),
        "epochs": epochs,
        "repeats": repeats,
        "methods": [_figures(name, models[name], seconds[name], yardstick) for name in timed],
        "skipped": skipped,
        "load_before": load,
    }


def _shortened(model: Recommender, epochs: int, seed: int) -> Recommender:
    """Return the model with few epochs, if it is trained in epochs."""
    known = model.get_params()
    changes = {"epochs": min(known["epochs"], epochs)} if "epochs" in known else {}
    return model.set_params(**changes, **({"random_state": seed} if "random_state" in known else {}))


def _seconds(model: Recommender, train: Interactions) -> float:
    """Fit a model; return its seconds per epoch after the first, or those of the whole fit."""
    started = time.perf_counter()
    model.fit(train)
    whole = time.perf_counter() - started
    history = getattr(model, "history_", None)
    if history is None:
        return whole
    return fmean(epoch.seconds for epoch in history.epochs[1:] or history.epochs)


def _figures(name: str, model: Recommender, seconds: list[float], yardstick: float | None) -> dict[str, Any]:
    best = min(seconds)
    return {
        "name": name,
        "class": type(model).__name__,
        "per": "epoch" if hasattr(model, "history_") else "fit",
        "seconds": best,
        "ratio": None if yardstick is None else best / yardstick,
        "spread": {"best": best, "median": median(seconds), "worst": max(seconds)},
    }


def fit_memory(model: str, parameters: Mapping[str, Any], train: Interactions) -> dict[str, int]:
    """Fit a model in a new process and return its peak resident memory.

    Parameters
    ----------
    model, parameters
        The name of a model with vectors, and its parameters.
    train
        Training positives.

    Returns
    -------
    dict
        ``peak_bytes``; ``needed_bytes``: the vectors, two moments of the optimizer and the CSR of the positives;
        ``parameters``: the number of learned values.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would start at the memory of this process
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        peak, learned = pool.submit(_fit_and_look, model, dict(parameters), train).result()
    needed = 3 * 4 * learned + train.indptr.nbytes + train.indices.nbytes
    return {"peak_bytes": peak, "needed_bytes": needed, "parameters": learned}


def _fit_and_look(name: str, parameters: dict[str, Any], train: Interactions) -> tuple[int, int]:
    model: Any = create(name, **parameters).fit(train)
    return peak_bytes(), model.user_vectors_.size + model.item_vectors_.size


def peak_bytes() -> int:
    """Return the highest resident memory of this process.

    Linux's own count comes first: psutil has no peak there, and ``getrusage`` starts from the size of the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
