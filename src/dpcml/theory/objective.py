"""The gap that the theory bounds, measured: the objective on training positives and on held-out ones.

The objective is ``risk + eta * mean_u psi_u``: the hinge, averaged over each user's pairs of a positive and a negative
and then over users, and the diversity term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.base import Recommender
from dpcml.models.dpcml import DPCML
from dpcml.models.vectors import nearest_scores
from dpcml.theory.bounds import weight_of, with_vectors
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import bounds
from dpcml.utils.errors import DataError

MOST_SCORES = 500_000_000  # users x items up to which all users count: a minute or two
BLOCK_SCORES = 8_000_000  # scores held at once


@dataclass(frozen=True)
class Objective:
    """The objective on some positives."""

    risk: float  # mean over users of the mean hinge over pairs of a positive and a negative
    diversity: float  # mean over users of psi
    weight: float  # eta

    @property
    def value(self) -> float:
        """``risk + eta * mean psi``."""
        return self.risk + self.weight * self.diversity


@dataclass(frozen=True)
class Gap:
    """The objective on the training part and on a held-out part."""

    train: Objective
    held_out: Objective
    n_users: int  # that it was computed from
    users_with_both: int  # that could have been
    seed: int | None  # of the draw of users; None: all of them

    @property
    def value(self) -> float:
        """How much larger the held-out objective is."""
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
) -> Gap:
    """Return the objective of a fitted model on its training positives and on held-out ones.

    Both are means over the same users, those with positives in both parts, and over all pairs with the same negatives,
    the items that the user likes in no part. (Training draws a few negatives, and takes hard ones: its loss is another
    figure.) So the diversity term is the same in both, and the gap is that of the risks.

    Parameters
    ----------
    model
        DPCML, CML or GFJA.
    held_out
        Positives that the model has not seen.
    also_liked
        More positives, such as the validation part, that are no negatives.
    most_scores
        Users times items above which users are drawn; all pairs of each drawn user count.
    seed
        Of that draw.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> train, test = Interactions.from_csr(likes).split((0.6, 0.4), 0)
    >>> found = gap(DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(train), test)
    >>> found.n_users, found.seed, found.train.risk <= found.held_out.risk
    (12, None, True)
    """
    checked = with_vectors(model)
    train = checked._fitted()
    parts = [train, held_out, *([] if also_liked is None else [also_liked])]
    for part in parts[1:]:
        if (part.n_users, part.n_items) != (train.n_users, train.n_items):
            raise DataError(
                f"{part!r}: has other users or items than the training data, {train!r}; use parts of one split"
            )
    liked = sum(part.per_user for part in parts)
    rows = np.flatnonzero((train.per_user > 0) & (held_out.per_user > 0) & (liked < train.n_items))
    if not len(rows):
        raise DataError("no user has training positives, held-out positives and negatives: there is no gap to measure")
    most = max(1, most_scores // train.n_items)
    drawn = rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    risks = _risks(checked, drawn, parts)
    psi, weight = float(_psi(checked, drawn).mean()), weight_of(checked)
    seen, unseen = (Objective(float(risks[:, k].mean()), psi, weight) for k in range(2))
    return Gap(seen, unseen, len(drawn), len(rows), seed if len(drawn) < len(rows) else None)


def _psi(model: DPCML, rows: IntArray) -> FloatArray:
    """Return psi of some users."""
    vectors = model.user_vectors_[rows].astype(np.float64)  # (B, C, d)
    c = model.n_vectors
    if c == 1:
        return np.zeros(len(rows))
    squares = 2 * (c * (vectors**2).sum(axis=(1, 2)) - (vectors.sum(axis=1) ** 2).sum(axis=1))  # over ordered pairs
    diversity = squares / (2 * c * (c - 1))
    low, high = bounds("diversity", model.diversity)
    return np.asarray(np.maximum(0, low - diversity) + np.maximum(0, diversity - high))


def _risks(model: DPCML, rows: IntArray, parts: list[Interactions]) -> FloatArray:
    """Return the mean hinge of each user on the first two parts, shape (users, 2)."""
    risks = np.empty((len(rows), 2))
    margin = model._distance_margin()
    block = max(1, BLOCK_SCORES // parts[0].n_items)
    for first in range(0, len(rows), block):
        some = rows[first : first + block]
        distances = -nearest_scores(model.user_vectors_[some], model.item_vectors_).astype(np.float64)
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
