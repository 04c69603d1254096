"""`evaluate`: one call from a model and a split to a report."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.evaluation import diversity, groups
from dpcml.evaluation.protocol import PROTOCOLS, accuracy, cutoffs, metric_cutoff
from dpcml.evaluation.ranks import Ranks, Scorer, rank_held_out
from dpcml.evaluation.report import Report
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.packages import version


def evaluate(
    model: Scorer,
    train: Any,
    test: Any,
    *,
    valid: Any = None,
    protocol: str = "strict",
    at: Sequence[int] = (3, 5, 10, 20),
    users: IntArray | None = None,
    beyond: bool = True,
    label: str | None = None,
    n_threads: int | None = None,
) -> Report:
    """Rank held-out items among the full catalogue and report every metric.

    Parameters
    ----------
    model
        A fitted model, or anything with ``score(rows) -> (rows, items)``, larger is better.
    train, test
        Parts of one split: what the model learned from, and what it is asked for.
    valid
        The validation part; under ``strict`` its positives are no candidates either.
    protocol
        ``strict`` (default), ``text`` or ``released``; see `dpcml.evaluation.protocol`.
    at
        Cut-offs N.
    users
        Rows of the users to evaluate; all with held-out items by default.
    beyond
        Also report diversity, coverage, novelty and, where items have attributes, minority recall and MAP by category.
    label
        What to call the model in tables; its name by default.
    n_threads
        Threads; all cores by default.

    Examples
    --------
    >>> from dpcml import Popularity
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((50, 20)) < 0.4)
    >>> train, valid, test = data.split((0.6, 0.2, 0.2), 0)
    >>> report = evaluate(Popularity().fit(train), train, test, valid=valid, at=(3, 5))
    >>> report.protocol, 0 < report.metrics["P@3"] < 1
    ('strict', True)
    """
    started = time.perf_counter()
    rules = PROTOCOLS[protocol]
    at = cutoffs(at)
    train, test = as_interactions(train), as_interactions(test)
    valid = None if valid is None else as_interactions(valid)
    masks = {"train": train} | ({"valid": valid} if valid is not None and rules.masks_validation else {})
    ranks = rank_held_out(
        model,
        train,
        test,
        also_masked=masks.get("valid"),
        users=users,
        top=max(at) if beyond else 0,
        n_threads=n_threads,
    )
    if not len(ranks.users):
        raise DataError("no user has a held-out positive: there is nothing to evaluate")
    per_user = accuracy(ranks, rules, at)
    totals: dict[str, float] = {}
    if beyond:
        more, totals = _beyond(model, ranks, train, at)
        per_user |= more
    counted = {name: int((~np.isnan(values)).sum()) for name, values in per_user.items()}
    means = {name: float(np.nanmean(v)) if counted[name] else float("nan") for name, v in per_user.items()}
    name = str(getattr(model, "name", type(model).__name__))
    parameters: dict[str, Any] = getattr(model, "get_params", dict)()
    with_attributes = beyond and train.items.attributes is not None
    return Report(
        label=label or name,
        model=name,
        parameters=parameters,
        protocol=rules.name,
        split=_split_hash(train, test),
        masked=tuple(masks),
        n_users=len(ranks.users),
        metrics=means | totals,
        counted=counted,
        categories=groups.category_map(ranks, train) if with_attributes else {},
        version=version(),
        seconds=time.perf_counter() - started,
        users=test.user_ids[ranks.users],
        per_user=per_user,
    )


def validation(
    model: Scorer, train: Interactions, valid: Interactions, metric: str = "P@3", *, n_threads: int | None = None
) -> float:
    """Return one metric on the validation part under the released protocol, as model selection uses it.

    Where no user has enough held-out items for that protocol, the text's formula is used.

    Examples
    --------
    >>> from dpcml import Popularity
    >>> train, valid, _ = Interactions.from_csr(np.tri(9)).split((0.6, 0.2, 0.2), 0)
    >>> 0 < validation(Popularity().fit(train), train, valid, "MAP") < 1
    True
    """
    cutoff = metric_cutoff(metric)
    ranks = rank_held_out(model, train, valid, top=0, n_threads=n_threads)
    for protocol in ("released", "text"):
        values = accuracy(ranks, PROTOCOLS[protocol], [cutoff or 3])[metric]
        if not np.isnan(values).all():
            return float(np.nanmean(values))
    raise DataError("no user has a validation positive: there is nothing to choose by")


def _beyond(
    model: Scorer, ranks: Ranks, train: Interactions, at: Sequence[int]
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return the metrics beyond accuracy: those with a value per user, and those of all lists together."""
    lists = ranks.top
    per_user: dict[str, FloatArray] = {}
    by_users = diversity.cooccurrence_dissimilarity(lists, train)
    for n in at:
        per_user[f"cooccurrence_ILD@{n}"] = by_users[:, min(n, lists.shape[1]) - 1]
        per_user[f"novelty@{n}"] = diversity.novelty(lists[:, :n], train)
    if train.items.attributes is not None:
        by_attributes = diversity.attribute_dissimilarity(lists, train.items.attributes)
        for n in at:
            per_user[f"attribute_ILD@{n}"] = by_attributes[:, min(n, lists.shape[1]) - 1]
            per_user[f"minority_R@{n}"] = groups.minority_recall(ranks, train, n)
    vectors = getattr(model, "item_vectors_", None)
    if vectors is not None:
        per_user |= {f"MaxDiv@{n}": diversity.max_div(lists[:, :n], vectors) for n in at}
    totals = {f"coverage@{n}": diversity.coverage(lists[:, :n], train.n_items) for n in at}
    totals |= {f"gini@{n}": diversity.gini(lists[:, :n], train.n_items) for n in at}
    return per_user, totals


def _split_hash(train: Interactions, test: Interactions) -> str:
    """Return the hash of the split that both are parts of, or one of their contents."""
    if train.split_hash is not None and train.split_hash == test.split_hash:
        return train.split_hash
    return hashlib.sha256((train.content_hash + test.content_hash).encode()).hexdigest()[:16]
