"""Protocols and metrics by name: which users count, how a metric is defined, and which metrics an evaluation computes.

A protocol fixes the choices in which evaluations differ silently. A metric is one entry of `METRICS`; names with a
cut-off are written ``NDCG@10``. A family is a name for several metrics: ``accuracy``, ``diversity``, ``categories``
(MAP by category and interest agreement) and ``beyond_accuracy`` (everything that is not in ``accuracy``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation import diversity, groups, interests, metrics
from dpcml.evaluation.ranks import Ranks
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.names import Registry


@dataclass(frozen=True)
class Protocol:
    """Which users count in a metric, how NDCG and MRR are defined, and which items are candidates."""

    name: str
    about: str
    n_held_for_cutoff: bool  # a user counts in metrics at N only with at least N held-out items
    min_held_for_lists: int  # a user counts in MAP, MRR and AUC only with at least this many held-out items
    full_ideal: bool  # the ideal gain of NDCG has N items, even for users with fewer held out
    first_hit: bool  # MRR takes the first held-out item, not the sum over all
    masks_validation: bool  # validation positives are no candidates when the test items are ranked


PROTOCOLS: Registry[Protocol] = Registry("protocol")
for _protocol in (
    Protocol("text", "the formulas of the paper's text", False, 1, False, False, False),
    Protocol("released", "what produced the paper's tables", True, 3, True, True, False),
    Protocol(
        "strict", "the text's formulas, MRR of the first hit, validation positives masked", False, 1, False, True, True
    ),
):
    PROTOCOLS.add(_protocol.name, _protocol)


@dataclass(frozen=True, eq=False)
class MetricInput:
    """What metrics are computed from; results that several metrics share are computed once, when first needed.

    Parameters
    ----------
    ranks
        Ranks of the held-out items, with the first items of every user where list metrics are asked for.
    protocol
        Which users count, and how.
    train
        Training data; metrics of accuracy do not need it.
    item_vectors
        The model's item vectors; only MaxDiv needs them.
    nearest_interest
        The model's ``nearest_interest``; only interest agreement needs it.
    """

    ranks: Ranks
    protocol: Protocol
    train: Interactions | None = None
    item_vectors: FloatArray | None = None
    nearest_interest: interests.NearestInterest | None = None

    @property
    def data(self) -> Interactions:
        """The training data, which every metric beyond accuracy needs."""
        if self.train is None:
            raise DataError("metrics beyond accuracy are computed from training data: pass train")
        return self.train

    @cached_property
    def cooccurrence(self) -> FloatArray:
        """Mean dissimilarity by users of the first k items for every k; shape (users, n)."""
        return diversity.cooccurrence_dissimilarity(self.ranks.top, self.data)

    @cached_property
    def attributes(self) -> FloatArray:
        """Mean dissimilarity by attributes of the first k items for every k; shape (users, n)."""
        return diversity.attribute_dissimilarity(self.ranks.top, groups.attributes_of(self.data))

    @cached_property
    def minority(self) -> Ranks:
        """Ranks of the held-out items outside their user's majority category."""
        return self.ranks.only(groups.outside_majority(self.ranks, self.data))

    @property
    def vectors(self) -> FloatArray:
        """The model's item vectors, or an error if it has none."""
        if self.item_vectors is None:
            raise DataError("MaxDiv is a distance between item vectors, and this model has none: leave it out")
        return self.item_vectors

    def agreement(self, owner: IntArray, items: IntArray) -> FloatArray:
        """Return the interest agreement of each ranked user on items of position ``owner``; NaN where none counts."""
        if self.nearest_interest is None:
            raise DataError(
                "interest agreement assigns items to the nearest of a user's vectors, and this model has not several"
                " vectors per user: leave it out, or evaluate a model with nearest_interest such as DPCML"
            )
        return interests.interest_agreement(self.nearest_interest, self.data, self.ranks.users, owner, items)

    @property
    def training_positives(self) -> tuple[IntArray, IntArray]:
        """Position in ``ranks.users`` and column of each training positive of the ranked users."""
        rows = self.data.csr[self.ranks.users]
        return np.repeat(np.arange(len(self.ranks.users)), np.diff(rows.indptr)), rows.indices

    def has(self, need: str | None) -> bool:
        """Return whether a metric with that need can be computed; see `Metric`."""
        available = {
            "attributes": self.train is not None and self.train.items.attributes is not None,
            "vectors": self.item_vectors is not None,
        }
        available["interests"] = available["attributes"] and self.nearest_interest is not None
        return need is None or available[need]


@dataclass(frozen=True)
class Metric:
    """A metric of a report.

    ``values`` takes the input and the cut-off (0 for metrics without one). It returns one value per ranked user, NaN
    for users who do not count, or a single number for metrics of all lists together.
    """

    family: str
    at_cutoff: bool
    values: Callable[[MetricInput, int], FloatArray | float]
    needs: str | None = None  # "attributes", "vectors", "interests": families leave the metric out where it is missing
    from_lists: bool = True  # computed from the first k recommended items


METRICS: Registry[Metric] = Registry("metric")
CATEGORIES = "categories"  # also stands for MAP by category, which is no metric here: its names come from the data


def _add_accuracy(name: str, at_cutoff: bool, values: Callable[[Ranks, int, Protocol], FloatArray]) -> None:
    """Add a function of ranks as a metric that counts the users whom the protocol counts."""

    def counted(given: MetricInput, k: int) -> FloatArray:
        rules = given.protocol
        least = (k if rules.n_held_for_cutoff else 1) if at_cutoff else rules.min_held_for_lists
        return np.where(given.ranks.n_held >= least, values(given.ranks, k, rules), np.nan)

    METRICS.add(name, Metric("accuracy", at_cutoff, counted, from_lists=False))


def _mrr(ranks: Ranks, _: int, rules: Protocol) -> FloatArray:
    return metrics.reciprocal_rank(ranks) if rules.first_hit else metrics.reciprocal_rank_sum(ranks)


def _first(by_length: FloatArray, k: int) -> FloatArray:
    """Return the column of the first k items; lists end where there are no more items."""
    column: FloatArray = by_length[:, min(k, by_length.shape[1]) - 1]
    return column


_add_accuracy("P", True, lambda ranks, k, _: metrics.precision(ranks, k))
_add_accuracy("R", True, lambda ranks, k, _: metrics.recall(ranks, k))
_add_accuracy("NDCG", True, lambda ranks, k, rules: metrics.ndcg(ranks, k, full_ideal=rules.full_ideal))
_add_accuracy("HR", True, lambda ranks, k, _: metrics.hit_rate(ranks, k))
_add_accuracy("MAP", False, lambda ranks, _k, _: metrics.average_precision(ranks))
_add_accuracy("MRR", False, _mrr)
_add_accuracy("AUC", False, lambda ranks, _k, _: metrics.auc(ranks))
METRICS.add("cooccurrence_ILD", Metric("diversity", True, lambda given, k: _first(given.cooccurrence, k)))
METRICS.add("attribute_ILD", Metric("diversity", True, lambda given, k: _first(given.attributes, k), "attributes"))
METRICS.add(
    "MaxDiv",
    Metric("diversity", True, lambda given, k: diversity.max_div(given.ranks.top[:, :k], given.vectors), "vectors"),
)
METRICS.add("novelty", Metric("novelty", True, lambda given, k: diversity.novelty(given.ranks.top[:, :k], given.data)))
METRICS.add(
    "minority_R",
    Metric("minority_R", True, lambda given, k: metrics.recall(given.minority, k), "attributes", from_lists=False),
)
METRICS.add(
    "interest_agreement",
    Metric(
        CATEGORIES, False, lambda given, _: given.agreement(*given.training_positives), "interests", from_lists=False
    ),
)
METRICS.add(
    "interest_agreement_held_out",
    Metric(
        CATEGORIES,
        False,
        lambda given, _: given.agreement(given.ranks.owner, given.ranks.items),
        "interests",
        from_lists=False,
    ),
)
METRICS.add(
    "coverage",
    Metric("coverage", True, lambda given, k: diversity.coverage(given.ranks.top[:, :k], given.data.n_items)),
)
METRICS.add("gini", Metric("gini", True, lambda given, k: diversity.gini(given.ranks.top[:, :k], given.data.n_items)))


@dataclass(frozen=True)
class Selection:
    """The metrics that an evaluation computes, in the order of the report.

    Parameters
    ----------
    names
        Full name to name and cut-off: ``{"NDCG@10": ("NDCG", 10), "MAP": ("MAP", 0)}``.
    required
        Names that were asked for one by one. The others came from a family: they are left out where the data or the
        model cannot give them. ``categories`` is MAP by category.
    """

    names: dict[str, tuple[str, int]]
    required: frozenset[str]
    categories: bool

    @property
    def list_length(self) -> int:
        """How many first items of each user's ranking the metrics need."""
        return max((k for name, k in self.names.values() if METRICS[name].from_lists), default=0)

    def compute(self, given: MetricInput) -> tuple[dict[str, FloatArray], dict[str, float]]:
        """Return the metrics with one value per user, and those of all lists together.

        Examples
        --------
        >>> given = MetricInput(Ranks.from_places([[0, 4], [2]]), PROTOCOLS["released"])
        >>> select(["R@2", "MAP"]).compute(given)
        ({'R@2': array([0.5, nan]), 'MAP': array([nan, nan])}, {})
        """
        per_user: dict[str, FloatArray] = {}
        totals: dict[str, float] = {}
        for full, (name, k) in self.names.items():
            metric = METRICS[name]
            if full not in self.required and not given.has(metric.needs):
                continue
            value = metric.values(given, k)
            if isinstance(value, float):
                totals[full] = value
            else:
                per_user[full] = value
        return per_user, totals

    def wants_categories(self, given: MetricInput) -> bool:
        """Return whether to compute MAP by category."""
        return self.categories and (CATEGORIES in self.required or given.has("attributes"))


def select(names: str | Iterable[str], k: int | Sequence[int] = (3, 5, 10, 20)) -> Selection:
    """Return the metrics that a list of names asks for.

    Parameters
    ----------
    names
        Metrics (``"NDCG@10"``, ``"MAP"``), metrics at every cut-off of ``k`` (``"NDCG"``), or families
        (``"accuracy"``, ``"diversity"``, ``"categories"``, ``"beyond_accuracy"``); one name, or several.
    k
        Cut-offs for names that have none.

    Examples
    --------
    >>> list(select(["NDCG@10", "minority_R"], k=(3, 5)).names)
    ['NDCG@10', 'minority_R@3', 'minority_R@5']
    >>> list(select("accuracy", k=3).names)
    ['P@3', 'R@3', 'NDCG@3', 'HR@3', 'MAP', 'MRR', 'AUC']
    >>> select("diversty")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: metrics: unknown metric 'diversty': did you mean 'diversity'?
    """
    every = cutoffs(k)
    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise ParameterError("metrics=[]: name at least one metric, such as 'NDCG@10'")
    found: dict[str, tuple[str, int]] = {}
    required: set[str] = set()
    for name in wanted:
        members = _members(name)
        more = {name: _parse(name)} if members is None else _at_each(members, every)
        found |= more
        if members is None or name in METRICS:
            required |= more.keys()
    if CATEGORIES in wanted:
        required.add(CATEGORIES)
    return Selection(found, frozenset(required), bool({CATEGORIES, "beyond_accuracy"} & set(wanted)))


def _at_each(names: Iterable[str], every: Sequence[int]) -> dict[str, tuple[str, int]]:
    """Return full names at all cut-offs, then those of metrics without one."""
    found = {f"{name}@{k}": (name, k) for k in every for name in names if METRICS[name].at_cutoff}
    return found | {name: (name, 0) for name in names if not METRICS[name].at_cutoff}


def _members(name: str) -> list[str] | None:
    """Return the metrics that a name without a cut-off stands for; None for the name of one metric."""
    if name in METRICS:
        return [name]
    if name == "beyond_accuracy":
        return [one for one in METRICS if METRICS[one].family != "accuracy"]
    members = [one for one in METRICS if METRICS[one].family == name]
    return members if members or name == CATEGORIES else None


def _parse(full: str) -> tuple[str, int]:
    """Return name and cut-off of ``NDCG@10``, or raise an error that suggests a name."""
    name, _, cutoff = str(full).partition("@")
    if name not in METRICS:
        known = [f"{one}@{cutoff or 10}" if METRICS[one].at_cutoff else one for one in METRICS]
        families = {METRICS[one].family for one in METRICS} | {CATEGORIES, "beyond_accuracy"}
        hint = did_you_mean(str(full), [*known, *(families if not cutoff else ())])
        raise ParameterError(f"metrics: unknown metric {full!r}: {hint}")
    if not METRICS[name].at_cutoff:
        raise ParameterError(f"metrics: {full!r}: {name} has no cut-off, write {name!r}")
    if not cutoff.isdigit() or int(cutoff) < 1:
        raise ParameterError(f"metrics: {full!r}: the cut-off must be a whole number of at least 1, as in '{name}@10'")
    return name, int(cutoff)


def metric_cutoff(metric: str) -> int | None:
    """Return the cut-off of an accuracy metric by which models are selected, None where it has none.

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
    known = [one for one in METRICS if METRICS[one].family == "accuracy"]
    whole = cutoff.isdigit() and int(cutoff) > 0
    if name not in known or (not whole if METRICS[name].at_cutoff else name != metric):
        written = [f"{one}@3" if METRICS[one].at_cutoff else one for one in known]
        raise ParameterError(f"metric={metric!r}: {did_you_mean(str(metric), written)}")
    return int(cutoff) if cutoff else None


def cutoffs(k: int | Sequence[int]) -> tuple[int, ...]:
    """Return cut-offs in ascending order, each once.

    Examples
    --------
    >>> cutoffs([10, 3, 3]), cutoffs(5)
    ((3, 10), (5,))
    """
    given = (k,) if isinstance(k, (int, np.integer)) else tuple(k)
    for n in given:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ParameterError(f"k={k!r}: cut-offs are whole numbers of at least 1, got {n!r}")
    if not given:
        raise ParameterError("k=(): name at least one cut-off")
    return tuple(sorted({int(n) for n in given}))
