"""The paper's generalisation bound: how far the objective on a training sample may be from its expectation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.base import Recommender
from dpcml.models.dpcml import DPCML
from dpcml.utils.checks import at_least, bounds, positive
from dpcml.utils.errors import DataError, ParameterError


@dataclass(frozen=True)
class Bound:
    """The bound and its terms.

    Attributes
    ----------
    n_users, dim, radius, weight
        Users |U| with positives and negatives, dimension d, radius r of the ball of all vectors, weight eta.
    user_term, positive_term, negative_term
        ``(4 + eta)^2 / |U|``, and ``2 / |U|^2`` times the sums over users of ``1 / n+`` and of ``1 / n-``.
    effective_size
        ``N~ = 1 / (16 r^4 (user_term + positive_term + negative_term))``: how many draws the sample is worth.
    value
        ``sqrt(2 d log(3 r N~) / N~)``; infinite where ``3 r N~ <= 1``.
    log_failure
        Natural logarithm of ``2 (3 r B^2 / (2 d log(3 r N~)))^d`` with ``B = 16 r (4 + eta)``, at most the probability
        that the gap is larger than the bound; kept as a logarithm because the power leaves the range of floats.
    largest_gap
        What no gap can exceed, whatever the sample: the largest value of the objective.
    """

    n_users: int
    dim: int
    radius: float
    weight: float
    user_term: float
    positive_term: float
    negative_term: float
    effective_size: float
    value: float
    log_failure: float
    largest_gap: float = math.inf

    @property
    def failure(self) -> float:
        """The failure probability, 1 where the formula gives more."""
        return math.exp(min(0.0, self.log_failure))

    @property
    def vacuous(self) -> str:
        """Why the bound says nothing here, in words; empty where it says something."""
        reasons = []
        if not math.isfinite(self.value):
            reasons.append(f"N~ = {self.effective_size:.3g} is too small: 3 r N~ must exceed 1")
        elif self.value >= self.largest_gap:
            reasons.append(f"no gap can exceed {self.largest_gap:.3g}, and the bound is {self.value:.3g}")
        if self.log_failure >= 0:
            power = "" if math.isinf(self.log_failure) else f", 10^{self.log_failure / math.log(10):.0f},"
            reasons.append(f"its failure probability{power} is not below 1")
        return "; ".join(reasons)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, fit for JSON: None in place of infinity."""
        plain = {name: value if math.isfinite(value) else None for name, value in vars(self).items()}
        return {**plain, "failure": self.failure, "vacuous": self.vacuous}


def bound(train: Interactions, *, dim: int, weight: float, radius: float = 1.0, largest_gap: float = math.inf) -> Bound:
    """Return the bound for training data and the size of a model; the number of vectors per user plays no part in it.

    Parameters
    ----------
    train
        Training positives; all other items are a user's negatives. Users without either do not count.
    dim, weight, radius
        Dimension d, weight eta of the diversity term, radius r.
    largest_gap
        What no gap can exceed, to say where the bound is of no use.

    Examples
    --------
    >>> data = Interactions.from_csr(np.tile(np.eye(4), (5_000, 1)))
    >>> found = bound(data, dim=2, weight=0.0)
    >>> round(found.effective_size, 2), round(found.value, 3)
    (66.96, 0.563)
    >>> bound(data, dim=2, weight=1e6).vacuous
    'N~ = 1.25e-09 is too small: 3 r N~ must exceed 1; its failure probability is not below 1'
    """
    at_least("dim", dim, 1)
    positive("weight", weight, or_zero=True)
    positive("radius", radius)
    liked = train.per_user.astype(np.float64)
    liked = liked[(liked > 0) & (liked < train.n_items)]
    if not len(liked):
        raise DataError("no user has both positives and negatives: there is nothing to bound")
    n = len(liked)
    terms = (
        (4 + weight) ** 2 / n,
        2 / n**2 * float((1 / liked).sum()),
        2 / n**2 * float((1 / (train.n_items - liked)).sum()),
    )
    size = 1 / (16 * radius**4 * sum(terms))
    logarithm = math.log(3 * radius * size)
    value, log_failure = math.inf, math.inf
    if logarithm > 0:
        value = math.sqrt(2 * dim * logarithm / size)
        largest = 16 * radius * (4 + weight)  # B
        log_failure = math.log(2) + dim * (math.log(3 * radius * largest**2) - math.log(2 * dim * logarithm))
    return Bound(n, dim, radius, weight, *terms, size, value, log_failure, largest_gap)


def bound_of(model: Recommender) -> Bound:
    """Return the bound for a fitted model with vectors in the unit ball: DPCML, CML, GFJA.

    Examples
    --------
    >>> model = DPCML(n_vectors=2, dim=4, epochs=1, n_candidates=2).fit(np.eye(8))
    >>> bound_of(model).vacuous.startswith("N~ = 0.0")
    True
    """
    checked = with_vectors(model)
    low, high = bounds("diversity", checked.diversity)
    most_psi = max(low, 2 - high, 0.0)  # half the mean of squared distances in the unit ball is at most 2
    weight = weight_of(checked)
    return bound(
        checked._fitted(),
        dim=checked.dim,
        weight=weight,
        largest_gap=checked._distance_margin() + 4 + (weight * most_psi if weight else 0.0),
    )


def with_vectors(model: Recommender) -> DPCML:
    """Return a model that the theory is about, or say that it is not."""
    if not isinstance(model, DPCML):
        raise ParameterError(
            f"{type(model).__name__}: the theory is about vectors in a ball, compared by distance: dpcml, cml, gfja"
        )
    return model


def weight_of(model: DPCML) -> float:
    """Return eta; one vector has no diversity to control."""
    return model.diversity_weight if model.n_vectors > 1 else 0.0
