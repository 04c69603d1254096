"""TransCF: a translation between user and item, made of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import inner, look_up
from dpcml.models.neural.losses import hinge
from dpcml.models.neural.metric import Metric, squared_distances
from dpcml.models.neural.sparse import both_ways, sparse_product
from dpcml.models.neural.trainer import Tensors
from dpcml.models.parameters import register
from dpcml.utils.checks import positive

if TYPE_CHECKING:
    from torch import Tensor


@register("transcf")
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

    def _check(self) -> None:
        super()._check()
        for field in ("neighbour_weight", "distance_weight"):
            positive(field, getattr(self, field), or_zero=True)

    def _known(self, train_data: Interactions, device: str) -> dict[str, Any]:
        liked = train_data.csr
        per_user, per_item = (1 / np.maximum(counts, 1) for counts in (train_data.per_user, train_data.per_item))
        return {
            "means_of_users": both_ways(sparse.diags_array(per_user) @ liked, device),
            "means_of_items": both_ways(sparse.diags_array(per_item) @ liked.T, device),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        return translated_by_neighbours(*self._vectors(p, users, items))

    def _vectors(self, p: Tensors, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return users and the means of their items (B, d), items and the means of their users (B or 1, K, d)."""
        of_users = sparse_product(p["means_of_users"], p["item_vectors_"])
        of_items = sparse_product(p["means_of_items"], p["user_vectors_"])
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


def translated_by_neighbours(u: Tensor, a: Tensor, v: Tensor, b: Tensor) -> Tensor:
    """Return ``-|u + a * b - v|^2``: users (B, d), items (B or 1, K, d), scores (B, K).

    For all items, it is multiplied out, so that nothing of shape (B, K, d) is made.
    """
    if len(v) > 1:
        return -(a[:, None, :] * b + (u[:, None, :] - v)).square().sum(2)
    return 2 * (inner(a, b * v) - inner(u * a, b)) - inner(a.square(), b.square()) - squared_distances(u, v)
