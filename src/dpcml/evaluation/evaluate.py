"""`evaluate`: one call from a model and a split to a report; `validation`: one metric, to select models by."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.evaluation import groups
from dpcml.evaluation.interests import nearest_interest_of
from dpcml.evaluation.protocol import PROTOCOLS, MetricInput, metric_cutoff, select
from dpcml.evaluation.ranks import Ranks, Scorer, rank_held_out
from dpcml.evaluation.report import Report
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.names import renamed
from dpcml.utils.packages import version


@renamed(at="k", beyond="beyond_accuracy")
def evaluate(
    model: Scorer,
    train: Any,
    test: Any,
    *,
    valid: Any = None,
    protocol: str = "strict",
    metrics: str | Sequence[str] | None = None,
    k: int | Sequence[int] = (3, 5, 10, 20),
    beyond_accuracy: bool = True,
    users: IntArray | None = None,
    label: str | None = None,
    n_threads: int | None = None,
    rank: Callable[..., Ranks] = rank_held_out,
) -> Report:
    """Rank held-out items among the full catalogue and report metrics.

    Parameters
    ----------
    model
        A fitted model, or anything with ``score(rows) -> (rows, items)``, larger is better.
    train, test
        Parts of one split: the positives the model was trained on, and the positives to find.
    valid
        The validation part; under ``strict`` its positives are no candidates either.
    protocol
        ``strict`` (default), ``text`` or ``released``; see `dpcml.evaluation.protocol`.
    metrics
        Metrics to compute, and nothing else: full names (``"NDCG@10"``, ``"minority_R@10"``, ``"MAP"``), names at
        every cut-off of ``k`` (``"NDCG"``), or families (``"accuracy"``, ``"diversity"``, ``"categories"``,
        ``"beyond_accuracy"``). By default ``accuracy`` and, with ``beyond_accuracy``, the others.
    k
        Cut-offs for names that have none.
    beyond_accuracy
        Without ``metrics``: also report diversity, coverage, novelty and, where items have attributes, minority
        recall, MAP by category and, for models with several vectors per user, interest agreement.
    users
        Rows of the users to evaluate; all with held-out items by default.
    label
        The model's name in tables; its own name by default.
    n_threads
        Threads; all cores by default.
    rank
        What ranks: `rank_held_out`, or something that is called in the same way and ranks elsewhere.

    Returns
    -------
    Report
        Means and values per user, with protocol and split. Metrics of a family that the data or the model cannot
        give (no attributes, no vectors) are left out; a metric asked for by its own name raises an error.

    Examples
    --------
    >>> from dpcml import Popularity
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((50, 20)) < 0.4)
    >>> train, valid, test = data.split((0.6, 0.2, 0.2), 0)
    >>> model = Popularity().fit(train)
    >>> report = evaluate(model, train, test, valid=valid, k=(3, 5))
    >>> report.protocol, 0 < report.metrics["P@3"] < 1
    ('strict', True)
    >>> list(evaluate(model, train, test, metrics=["NDCG@10", "coverage@10"]).metrics)
    ['NDCG@10', 'coverage@10']
    >>> list(evaluate(model, train, test, metrics="accuracy", k=5).metrics)
    ['P@5', 'R@5', 'NDCG@5', 'HR@5', 'MAP', 'MRR', 'AUC']
    """
    started = time.perf_counter()
    rules = PROTOCOLS[protocol]
    if metrics is None:
        metrics = ["accuracy", "beyond_accuracy"] if beyond_accuracy else "accuracy"
    chosen = select(metrics, k)
    train, test = as_interactions(train), as_interactions(test)
    valid = None if valid is None else as_interactions(valid)
    masks = {"train": train} | ({"valid": valid} if valid is not None and rules.masks_validation else {})
    ranks = rank(
        model,
        train,
        test,
        also_masked=masks.get("valid"),
        users=users,
        top=chosen.list_length,
        n_threads=n_threads,
    )
    if not len(ranks.users):
        raise DataError("no user has a held-out positive: there is nothing to evaluate")
    given = MetricInput(ranks, rules, train, getattr(model, "item_vectors_", None), nearest_interest_of(model))
    per_user, totals = chosen.compute(given)
    categories = groups.category_map(ranks, train) if chosen.wants_categories(given) else {}
    counted = {name: int((~np.isnan(values)).sum()) for name, values in per_user.items()}
    means = {name: float(np.nanmean(v)) if counted[name] else float("nan") for name, v in per_user.items()}
    name = str(getattr(model, "name", type(model).__name__))
    parameters: dict[str, Any] = getattr(model, "plain_params", getattr(model, "get_params", dict))()
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
        categories=categories,
        version=version(),
        seconds=time.perf_counter() - started,
        users=test.user_ids[ranks.users],
        per_user=per_user,
    )


def validation(
    model: Scorer,
    train: Interactions,
    valid: Interactions,
    metric: str = "P@3",
    *,
    users: IntArray | None = None,
    n_threads: int | None = None,
) -> float:
    """Return one accuracy metric on the validation part under the released protocol, as model selection uses it.

    Where no user has enough held-out items for that protocol, the text's formula is used.

    Examples
    --------
    >>> from dpcml import Popularity
    >>> train, valid, _ = Interactions.from_csr(np.tri(9)).split((0.6, 0.2, 0.2), 0)
    >>> 0 < validation(Popularity().fit(train), train, valid, "MAP") < 1
    True
    """
    metric_cutoff(metric)
    return validation_value(rank_held_out(model, train, valid, users=users, top=0, n_threads=n_threads), metric)


def validation_value(ranks: Ranks, metric: str) -> float:
    """Return one accuracy metric of ranks of validation positives, see `validation`.

    Examples
    --------
    >>> round(validation_value(Ranks.from_places([[0, 1, 7]]), "P@3"), 3)
    0.667
    """
    return mean_of_sums(validation_sums(ranks, metric))


def validation_sums(ranks: Ranks, metric: str) -> FloatArray:
    """Return sum and number of the users' values under the released protocol and the text's; shape (2, 2).

    Those of several groups of users may be added.

    Examples
    --------
    >>> validation_sums(Ranks.from_places([[0, 1, 7]]), "P@3")[0].round(2).tolist()
    [0.67, 1.0]
    """
    chosen = select(metric)
    found = [chosen.compute(MetricInput(ranks, PROTOCOLS[name]))[0][metric] for name in ("released", "text")]
    return np.array([[np.nansum(values), (~np.isnan(values)).sum()] for values in found], dtype=np.float64)


def mean_of_sums(sums: FloatArray) -> float:
    """Return the mean value from what `validation_sums` gave: of the first protocol for which a user counts.

    Examples
    --------
    >>> mean_of_sums(np.array([[0.0, 0.0], [1.0, 2.0]]))
    0.5
    """
    for total, count in sums.tolist():
        if count:
            return float(total / count)
    raise DataError("no user has a validation positive: there is nothing to choose by")


def _split_hash(train: Interactions, test: Interactions) -> str:
    """Return the hash of the split that both are parts of; for other data, a hash of both contents."""
    if train.split_hash is not None and train.split_hash == test.split_hash:
        return train.split_hash
    return hashlib.sha256((train.content_hash + test.content_hash).encode()).hexdigest()[:16]
