"""Negative sampling: where candidates come from, and which of them are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.choosing import ALL, CLOSEST, SIMILAR
from dpcml.kernels.negatives import fill_filters
from dpcml.kernels.state import Candidates, Positives
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.registry import Registry


@dataclass(frozen=True)
class Sampler:
    """A rule for negatives.

    Candidates are never training positives of the user. Each positive gets its own.
    """

    about: str
    exponent: float  # chances are proportional to training frequency to this power; 0: all alike
    choice: int  # what is kept of the candidates: ALL, the CLOSEST, or one SIMILAR to the positive

    def with_exponent(self, exponent: float) -> Sampler:
        """Return the rule with another exponent, where it draws by frequency at all."""
        return replace(self, exponent=exponent) if self.exponent else self

    @property
    def kept_all(self) -> bool:
        """Whether every candidate is a triplet of its own."""
        return self.choice == ALL

    def candidates(self, train: Interactions) -> Candidates:
        """Return the distribution of candidates."""
        if self.exponent == 0:
            nothing = np.zeros(0)
            return Candidates(nothing, nothing.astype(np.int32), train.n_items)
        threshold, alias = alias_table(np.maximum(train.per_item, 1e-9) ** self.exponent)
        return Candidates(threshold, alias, train.n_items)


SAMPLERS: Registry[Sampler] = Registry("way to draw negatives")
SAMPLERS.add("uniform", Sampler("uniform candidates, all kept (UniS)", 0.0, ALL))
SAMPLERS.add("popularity", Sampler("candidates by training frequency, all kept (PopS)", 1.0, ALL))
SAMPLERS.add(
    "two-stage", Sampler("candidates by training frequency, one similar to the positive kept (2stS)", 1.0, SIMILAR)
)
SAMPLERS.add("hard", Sampler("uniform candidates, the one closest to the user kept (HarS)", 0.0, CLOSEST))


def alias_table(weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return thresholds and aliases with which an item is drawn by weight in constant time (Vose's method).

    Draw an item with equal chances and a number in [0, 1): keep the item if the number is below its threshold, else
    take its alias.

    Examples
    --------
    >>> threshold, alias = alias_table(np.array([3.0, 1.0]))
    >>> threshold.tolist(), alias.tolist()
    ([1.0, 0.5], [0, 0])
    """
    n = len(weights)
    threshold = weights * (n / weights.sum())
    alias = np.arange(n, dtype=np.int32)
    small, large = list(np.flatnonzero(threshold < 1)[::-1]), list(np.flatnonzero(threshold >= 1)[::-1])
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        threshold[rich] -= 1 - threshold[poor]
        if threshold[rich] < 1:
            small.append(large.pop())
    threshold[[*small, *large]] = 1.0
    return threshold, alias


def positives(train: Interactions) -> Positives:
    """Return what kernels need to know of the training positives.

    A user's filter has sixteen bits per positive, so that few non-positives need a search.
    """
    indptr, items = np.array(train.indptr), np.array(train.indices, dtype=np.int32)
    filters = np.zeros((train.n_positives >> 2) + train.n_users, dtype=np.uint64)  # see `words_of`
    fill_filters(indptr, items, filters)
    return Positives(items, indptr, filters)
