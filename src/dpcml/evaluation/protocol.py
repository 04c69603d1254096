"""Named protocols: which users count and how a metric is defined, so that every result says what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpcml.evaluation import metrics
from dpcml.evaluation.ranks import Ranks
from dpcml.utils.arrays import FloatArray
from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.registry import Registry


@dataclass(frozen=True)
class Protocol:
    """The choices in which evaluations differ silently, made explicit."""

    name: str
    about: str
    n_held_for_cutoff: bool  # a user counts in metrics at N only with at least N held-out items
    min_held_for_lists: int  # a user counts in MAP, MRR and AUC only with at least so many held-out items
    full_ideal: bool  # the ideal gain of NDCG has N items, even for users with fewer held out
    first_hit: bool  # MRR takes the first held-out item, not the sum over all
    masks_validation: bool  # validation positives are no candidates when ranking the test items


PROTOCOLS: Registry[Protocol] = Registry("protocol")
for _protocol in (
    Protocol("text", "the formulas of the paper's text", False, 1, False, False, False),
    Protocol("released", "what produced the paper's tables", True, 3, True, True, False),
    Protocol(
        "strict", "the text's formulas, MRR of the first hit, validation positives masked", False, 1, False, True, True
    ),
):
    PROTOCOLS.add(_protocol.name, _protocol)


@dataclass(frozen=True)
class Metric:
    """A metric of a report: its values per user under a protocol."""

    at_cutoff: bool
    values: Callable[[Ranks, int, Protocol], FloatArray]


METRICS: Registry[Metric] = Registry("metric")
METRICS.add("P", Metric(True, lambda ranks, n, _: metrics.precision(ranks, n)))
METRICS.add("R", Metric(True, lambda ranks, n, _: metrics.recall(ranks, n)))
METRICS.add("NDCG", Metric(True, lambda ranks, n, by: metrics.ndcg(ranks, n, full_ideal=by.full_ideal)))
METRICS.add("HR", Metric(True, lambda ranks, n, _: metrics.hit_rate(ranks, n)))
METRICS.add("MAP", Metric(False, lambda ranks, _n, _: metrics.average_precision(ranks)))
METRICS.add(
    "MRR",
    Metric(
        False,
        lambda ranks, _n, by: metrics.reciprocal_rank(ranks) if by.first_hit else metrics.reciprocal_rank_sum(ranks),
    ),
)
METRICS.add("AUC", Metric(False, lambda ranks, _n, _: metrics.auc(ranks)))


def accuracy(ranks: Ranks, protocol: Protocol, at: Sequence[int]) -> dict[str, FloatArray]:
    """Return every accuracy metric, one value per ranked user; NaN where the protocol does not count the user.

    Examples
    --------
    >>> ranks = Ranks.from_places([[0, 4], [2]])
    >>> accuracy(ranks, PROTOCOLS["strict"], at=[3])["R@3"]
    array([0.5, 1. ])
    >>> accuracy(ranks, PROTOCOLS["released"], at=[2])["R@2"]
    array([0.5, nan])
    """
    needed = [(f"@{n}", n, n if protocol.n_held_for_cutoff else 1) for n in at]
    values: dict[str, FloatArray] = {}
    for at_cutoff, settings in ((True, needed), (False, [("", 0, protocol.min_held_for_lists)])):
        for suffix, n, least in settings:
            for name in METRICS:
                if METRICS[name].at_cutoff is at_cutoff:
                    value = METRICS[name].values(ranks, n, protocol)
                    values[name + suffix] = np.where(ranks.n_held >= least, value, np.nan)
    return values


def metric_cutoff(metric: str) -> int | None:
    """Return the cut-off of a metric's name, None where it has none, or say which names there are.

    Examples
    --------
    >>> metric_cutoff("P@3"), metric_cutoff("MAP")
    (3, None)
    >>> metric_cutoff("NDGC@3")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: metric='NDGC@3': did you mean 'NDCG@3'?
    """
    name, _, cutoff = str(metric).partition("@")
    whole = cutoff.isdigit() and int(cutoff) > 0
    if name not in METRICS or (not whole if METRICS[name].at_cutoff else name != metric):
        known = [f"{known}@3" if METRICS[known].at_cutoff else known for known in METRICS]
        raise ParameterError(f"metric={metric!r}: {did_you_mean(str(metric), known)}")
    return int(cutoff) if cutoff else None


def cutoffs(at: Sequence[int]) -> tuple[int, ...]:
    """Return cut-offs in ascending order, or say which one is none.

    Examples
    --------
    >>> cutoffs([10, 3, 3])
    (3, 10)
    """
    for n in at:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ParameterError(f"at={tuple(at)!r}: cut-offs are whole numbers of at least 1, {n!r} is none")
    if not len(at):
        raise ParameterError("at=(): name at least one cut-off")
    return tuple(sorted({int(n) for n in at}))
