"""Accuracy, minority recall and diversity of lists at several values of ``mix``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.workloads import multi_interest_model
from dpcml.data.interactions import Interactions
from dpcml.evaluation import diversity, groups, metrics
from dpcml.evaluation.ranks import Ranks
from dpcml.retrieval.request import UserBatch
from dpcml.utils.arrays import IntArray

MIXES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def bench_mix(
    data: Interactions,
    *,
    model: str = "dpcml",
    mixes: Sequence[float] = MIXES,
    n: int = 10,
    seeds: int = 3,
    **settings: Any,
) -> dict[str, Any]:
    """Evaluate lists at several values of ``mix`` on the test part of a 60/20/20 split.

    Parameters
    ----------
    data
        All positives.
    model
        A model or preset with vectors.
    mixes
        Values of ``mix``.
    n
        Length of the lists.
    seeds
        Runs, each with its own split and model; the figures are means.
    **settings
        Parameters of the model.

    Returns
    -------
    dict
        ``dial``: per value ``mix``, ``P@3``, ``NDCG@n``, ``minority_R@n`` and ``attribute_ILD@n`` (where items have
        categories), ``cooccurrence_ILD@n``, ``coverage@n`` and ``microseconds`` per list. Training and validation
        positives are no candidates; users with at least one test item count.

    Examples
    --------
    >>> from dpcml.data.synthetic import planted
    >>> world = planted(200, 120, seed=1).data
    >>> found = bench_mix(world, mixes=(0.0, 1.0), seeds=1, n_vectors=2, dim=8, epochs=10, n_candidates=4)
    >>> [row["mix"] for row in found["dial"]]
    [0.0, 1.0]
    """
    runs = [_run(data, model, mixes, n, seed, settings) for seed in range(seeds)]
    rows = [
        {name: float(np.mean([run[k][name] for run in runs])) for name in runs[0][k]} | {"mix": mix}
        for k, mix in enumerate(mixes)
    ]
    return {
        "benchmark": "mix",
        "users": data.n_users,
        "items": data.n_items,
        "model": model,
        "settings": settings,
        "n": n,
        "seeds": seeds,
        "dial": rows,
    }


def _run(
    data: Interactions, name: str, mixes: Sequence[float], n: int, seed: int, settings: dict[str, Any]
) -> list[dict[str, float]]:
    train, valid, test = data.split((0.6, 0.2, 0.2), seed)
    model = multi_interest_model(name, random_state=seed, **settings).fit(train, valid)
    users = np.flatnonzero(test.per_user)
    seen = sparse.csr_array(train.csr[users] + valid.csr[users])
    model.top_items(UserBatch(seen[:1], users[:1]), n, mix=0.5)  # compiles the kernels, or loads them
    found = []
    for mix in mixes:
        started = time.perf_counter()
        lists = model.top_items(UserBatch(seen, users), n, mix=mix).items
        seconds = time.perf_counter() - started
        figures = _figures(lists, users, train, test, n)
        found.append({"mix": mix, **figures, "microseconds": 1e6 * seconds / len(users)})
    return found


def _figures(lists: IntArray, users: IntArray, train: Interactions, test: Interactions, n: int) -> dict[str, float]:
    ranks = ranks_of_lists(lists, users, test)
    found = {
        "P@3": metrics.precision(ranks, 3),
        f"NDCG@{n}": metrics.ndcg(ranks, n),
        f"cooccurrence_ILD@{n}": diversity.cooccurrence_dissimilarity(lists, train)[:, -1],
    }
    if train.items.attributes is not None:
        found[f"minority_R@{n}"] = metrics.recall(ranks.only(groups.outside_majority(ranks, train)), n)
        found[f"attribute_ILD@{n}"] = diversity.attribute_dissimilarity(lists, train.items.attributes)[:, -1]
    means = {name: float(np.nanmean(values)) for name, values in found.items()}
    return {**means, f"coverage@{n}": diversity.coverage(lists, train.n_items)}


def ranks_of_lists(lists: IntArray, users: IntArray, test: Interactions) -> Ranks:
    """Return the ranks of held-out items in lists; items outside the list get the last rank.

    Examples
    --------
    >>> test = Interactions.from_csr(np.array([[0, 1, 1]]))
    >>> ranks_of_lists(np.array([[2, 0]]), np.array([0]), test).ahead.tolist()
    [3, 0]
    """
    indptr = np.concatenate([[0], np.cumsum(test.per_user[users])])
    held = np.concatenate([test.of(user) for user in users.tolist()])
    same = lists[np.repeat(np.arange(len(users)), test.per_user[users])] == held[:, None]
    ahead = np.where(same.any(axis=1), same.argmax(axis=1), test.n_items)
    candidates = np.full(len(users), test.n_items + 1)
    return Ranks(users, indptr, held, ahead, np.zeros_like(ahead), candidates, lists)
