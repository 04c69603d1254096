"""TransCF: a translation between user and item, made of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.base import MODELS
from dpcml.models.checks import positive
from dpcml.models.neural.backend import inner, load_torch, look_up, tensor
from dpcml.models.neural.losses import hinge
from dpcml.models.neural.metric import Metric
from dpcml.models.neural.trainer import Tensors

if TYPE_CHECKING:
    from torch import Tensor


@MODELS.register("transcf")
@dataclass(eq=False)
class TransCF(Metric):
    """Collaborative translational metric learning (Park et al., 2018).

    Neighbours make the translation: with ``a_u`` the mean vector of the items that user u likes, and ``b_i`` that of
    the users who like item i, ``r = a_u * b_i`` (elementwise), and the score is ``-|u + r - v|^2``. A hinge keeps
    positives closer than negatives. Two more terms pull users and items to their neighbours, ``|u - a_u|^2 + |v -
    b_i|^2``, and users to their positives, ``|u + r - v|^2``.

    Takes the parameters of `Metric`, and:

    Parameters
    ----------
    neighbour_weight
        Weight of the pull to neighbours, summed over a positive and its negatives.
    distance_weight
        Weight of the squared distance of positives.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> TransCF(dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    neighbour_weight: float = 0.0
    distance_weight: float = 0.0

    name = "transcf"

    def _check(self) -> None:
        super()._check()
        for field in ("neighbour_weight", "distance_weight"):
            positive(field, getattr(self, field), or_zero=True)

    def _known(self, train_data: Interactions, device: str) -> dict[str, Any]:
        by_item = train_data.csr.T.tocsr()
        matrices = {"users": train_data.csr, "items": by_item}
        parts = {f"{side}_{part}": getattr(matrices[side], part) for side in matrices for part in ("indices", "indptr")}
        return {name: tensor(values.astype(np.int64), device) for name, values in parts.items()}

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        return translated_by_neighbours(*self._vectors(p, users, items))

    def _vectors(self, p: Tensors, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return users and the means of their items (B, d), items and the means of their users (B or 1, K, d)."""
        of_users = mean_rows(p["item_vectors_"], p["users_indices"], p["users_indptr"])
        of_items = mean_rows(p["user_vectors_"], p["items_indices"], p["items_indptr"])
        return (
            look_up(p["user_vectors_"], users), look_up(of_users, users),
            look_up(p["item_vectors_"], items), look_up(of_items, items),
        )  # fmt: skip

    def _loss(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        u, a, v, b = self._vectors(p, users, items)
        scores = translated_by_neighbours(u, a, v, b)
        loss = hinge(self._chosen(scores), self.margin) - self.distance_weight * scores[:, 0].mean()
        if self.neighbour_weight:
            apart = (u - a).square().sum(1).mean() + (v - b).square().sum((1, 2)).mean()
            loss = loss + self.neighbour_weight * apart
        return loss

    def _floats_per_user(self, n_items: int) -> int:
        return 6 * n_items + 4 * self.dim


def mean_rows(table: Tensor, indices: Tensor, indptr: Tensor) -> Tensor:
    """Return the mean of the rows that each row of a sparse matrix names; zeros where it names none."""
    bag = load_torch().nn.functional.embedding_bag
    means: Tensor = bag(indices, table, indptr, mode="mean", include_last_offset=True)
    return means


def translated_by_neighbours(u: Tensor, a: Tensor, v: Tensor, b: Tensor) -> Tensor:
    """Return ``-|u + a * b - v|^2``, multiplied out: users (B, d), items (B or 1, K, d), scores (B, K)."""
    squares = u.square().sum(1)[:, None] + v.square().sum(2) + inner(a.square(), b.square())
    return 2 * (inner(u, v) - inner(u * a, b) + inner(a, b * v)) - squares
