"""MGMF: GMF with several vectors per user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpcml.models.neural.backend import largest_inner, look_up
from dpcml.models.neural.m2f import user_vectors
from dpcml.models.neural.network import Network, Table
from dpcml.models.neural.trainer import Tensors
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor


@register("mgmf")
@dataclass(eq=False)
class MGMF(Network):
    """Multi-vector GMF (Guo et al., 2021, "The Stereotyping Problem in Collaboratively Filtered Recommender Systems").

    The chance that user u likes item i is ``sigmoid(max_c h . (u_c * q_i) + b_i)``: `GMF` (He et al., 2017) with C
    vectors per user, of which the one that fits the item best counts; binary cross-entropy on positives and sampled
    negatives. The bias b_i of an item is ours. Takes the parameters of `Network`, and:

    Parameters
    ----------
    n_vectors
        Vectors per user, C.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> MGMF(n_vectors=2, dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    n_vectors: int = 4

    def _check(self) -> None:
        super()._check()
        at_least("n_vectors", self.n_vectors, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, Table]:
        return {
            "user_vectors_": Table((n_users, self.n_vectors, self.dim), 0.1),
            "item_vectors_": Table((n_items, self.dim), 0.1),
            "weights_": Table((self.dim,), 0.0, 1.0),
            "item_biases_": Table((n_items, 1)),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        weighted = user_vectors(p, users) * p["weights_"]  # (B, C, d)
        best = largest_inner(weighted, look_up(p["item_vectors_"], items))
        return best + look_up(p["item_biases_"], items)[..., 0]

    def _floats_per_user(self, n_items: int) -> int:
        return (3 + self.n_vectors) * n_items
