"""The paper's generalisation bound for a model, and the gap between training and held-out data that it bounds.

The objective is ``risk + eta * mean_u psi_u``: the hinge, averaged over each user's pairs of a positive and a negative
and then over users, and the diversity term of the paper (DCRS).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.base import Recommender
from dpcml.models.multi_interest import MultiInterest
from dpcml.retrieval.exact import nearest_scores
from dpcml.utils.arrays import FloatArray, IntArray, repeats_first
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import DataError, ParameterError

MOST_SCORES = 500_000_000  # users x items; above it users are sampled, so that a gap takes a minute or two
BLOCK_SCORES = 8_000_000  # scores held at once


@dataclass(frozen=True)
class Bound:
    """The generalisation bound and its terms.

    Attributes
    ----------
    n_users, dim, radius, weight
        Users |U| with positives and negatives, dimension d, radius r of the ball of all vectors, weight eta.
    user_term, positive_term, negative_term
        ``(4 + eta)^2 / |U|``, and ``2 / |U|^2`` times the sums over users of ``1 / n+`` and of ``1 / n-``.
    effective_size
        ``N~ = 1 / (16 r^4 (user_term + positive_term + negative_term))``: the effective sample size.
    value
        ``sqrt(2 d log(3 r N~) / N~)``; infinite where ``3 r N~ <= 1``.
    log_failure
        Natural logarithm of ``2 (3 r B^2 / (2 d log(3 r N~)))^d`` with ``B = 16 r (4 + eta)``, at most the probability
        that the gap is larger than the bound; kept as a logarithm because the power leaves the range of floats.
    largest_gap
        The largest value that the objective can have, which no gap can exceed.
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
        """Why the bound is vacuous, as a sentence; empty where it is not."""
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
        The largest possible gap: a bound above it is vacuous.

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
        raise DataError("no user has both positives and negatives: the bound needs at least one such user")
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

    It is about the trained coordinates, so a coordinate of popularity does not count.

    Examples
    --------
    >>> from dpcml import DPCML
    >>> model = DPCML(n_vectors=2, dim=4, epochs=1, n_candidates=2).fit(np.eye(8))
    >>> bound_of(model).vacuous.startswith("N~ = 0.0")
    True
    """
    checked = with_vectors(model)
    train = checked.check_fitted()
    config = checked.train_config(train)
    low, high = config.diversity
    most_psi = max(low, 2 - high, 0.0)  # half the mean of squared distances in the unit ball is at most 2
    weight = weight_of(checked)
    largest_gap = config.margin + 4 + (weight * most_psi if weight else 0.0)
    return bound(train, dim=checked.trained_items().shape[1], weight=weight, largest_gap=largest_gap)


def with_vectors(model: Recommender) -> MultiInterest:
    """Return the model if the bound applies to it; raise a `ParameterError` otherwise."""
    if not isinstance(model, MultiInterest):
        raise ParameterError(
            f"{type(model).__name__}: the theory is about vectors in a ball, compared by distance: dpcml, cml, gfja"
        )
    return model


def weight_of(model: MultiInterest) -> float:
    """Return eta, the weight of the diversity term; 0 for one vector per user, which has no diversity."""
    weight = model.train_config(model.check_fitted()).diversity_weight
    return weight if model.user_vectors_.shape[1] > 1 else 0.0


@dataclass(frozen=True)
class ObjectiveValue:
    """The objective on some positives."""

    risk: float  # mean over users of the mean hinge over pairs of a positive and a negative
    diversity: float  # mean over users of psi
    weight: float  # eta

    @property
    def value(self) -> float:
        """``risk + eta * mean psi``."""
        return self.risk + self.weight * self.diversity


@dataclass(frozen=True)
class ObjectiveGap:
    """The objective on the training part and on a held-out part, and their difference."""

    train: ObjectiveValue
    held_out: ObjectiveValue
    n_users: int  # users in the means
    users_with_both: int  # users with positives in both parts
    seed: int | None  # of the sample of users; None: all users count

    @property
    def value(self) -> float:
        """The held-out objective minus the training objective."""
        return self.held_out.value - self.train.value

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, fit for JSON."""
        both = {"train": self.train, "held_out": self.held_out}
        return {
            **vars(self),
            **{name: {**vars(one), "value": one.value} for name, one in both.items()},
            "value": self.value,
        }


def gap(
    model: Recommender,
    held_out: Interactions,
    *,
    also_liked: Interactions | None = None,
    most_scores: int = MOST_SCORES,
    seed: int = 0,
) -> ObjectiveGap:
    """Return the objective of a fitted model on its training positives and on held-out ones.

    Both are means over the same users, those with positives in both parts, and over all pairs of a positive and a
    negative; negatives are the items that the user likes in no part. The diversity term is therefore the same in both,
    and the gap is the difference of the risks. (The training loss is another figure: it samples hard negatives.)

    Parameters
    ----------
    model
        DPCML, CML or GFJA.
    held_out
        Positives that were not used in training.
    also_liked
        Further positives, such as the validation part: they do not count as negatives.
    most_scores
        Users times items above which users are sampled; all pairs of a sampled user count.
    seed
        Seed of that sample.

    Examples
    --------
    >>> from dpcml import DPCML
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> train, test = Interactions.from_csr(likes).split((0.6, 0.4), 0)
    >>> found = gap(DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(train), test)
    >>> found.n_users, found.seed, found.train.risk <= found.held_out.risk
    (12, None, True)
    """
    checked = with_vectors(model)
    train = checked.check_fitted()
    parts = [train, held_out, *([] if also_liked is None else [also_liked])]
    for part in parts[1:]:
        if (part.n_users, part.n_items) != (train.n_users, train.n_items):
            raise DataError(
                f"{part!r}: has other users or items than the training data, {train!r}; use parts of one split"
            )
    liked = sum(part.per_user for part in parts)
    rows = np.flatnonzero((train.per_user > 0) & (held_out.per_user > 0) & (liked < train.n_items))
    if not len(rows):
        raise DataError("no user has training positives, held-out positives and negatives: the gap needs one")
    most = max(1, most_scores // train.n_items)
    drawn = rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    risks = _risks(checked, drawn, parts)
    psi, weight = float(_psi(checked, drawn).mean()), weight_of(checked)
    seen, unseen = (ObjectiveValue(float(risks[:, k].mean()), psi, weight) for k in range(2))
    return ObjectiveGap(seen, unseen, len(drawn), len(rows), seed if len(drawn) < len(rows) else None)


def _psi(model: MultiInterest, rows: IntArray) -> FloatArray:
    """Return the diversity term psi of each user, shape (users,); 0 for users with one vector."""
    vectors = model.user_vectors_[rows].astype(np.float64)  # (B, C, d)
    used = ~repeats_first(vectors)
    vectors = vectors * used[:, :, None]
    c = used.sum(axis=1)  # (B,)
    squares = 2 * (c * (vectors**2).sum(axis=(1, 2)) - (vectors.sum(axis=1) ** 2).sum(axis=1))  # over ordered pairs
    diversity = squares / np.maximum(2 * c * (c - 1), 1)
    low, high = model.train_config(model.check_fitted()).diversity
    return np.where(c > 1, np.maximum(0, low - diversity) + np.maximum(0, diversity - high), 0.0)


def _risks(model: MultiInterest, rows: IntArray, parts: list[Interactions]) -> FloatArray:
    """Return the mean hinge of each user on the first two parts, shape (users, 2)."""
    risks = np.empty((len(rows), 2))
    margin, items = model.train_config(parts[0]).margin, model.trained_items()
    block = max(1, BLOCK_SCORES // parts[0].n_items)
    for first in range(0, len(rows), block):
        some = rows[first : first + block]
        users = model.user_vectors_[some, :, : items.shape[1]]
        distances = -nearest_scores(users, items).astype(np.float64)
        for k, user in enumerate(some):
            negative = np.ones(parts[0].n_items, dtype=bool)
            for part in parts:
                negative[part.of(user)] = False
            far = np.sort(distances[k, negative])
            risks[first + k] = [mean_hinge(distances[k, part.of(user)], far, margin) for part in parts[:2]]
    return risks


def mean_hinge(near: FloatArray, far: FloatArray, margin: float) -> float:
    """Return the mean of ``max(0, margin + near_i - far_j)`` over all pairs; ``far`` is ascending.

    Examples
    --------
    >>> mean_hinge(np.array([0.0, 1.0]), np.array([0.5, 3.0]), 1.0)
    0.5
    """
    reach = near + margin
    within = np.searchsorted(far, reach)  # how many negatives are too near
    sums = np.concatenate([[0.0], np.cumsum(far)])
    return float((within * reach - sums[within]).sum() / (len(near) * len(far)))
