"""GMF: a matrix factorisation whose dimensions have learned weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpcml.models.neural.backend import inner, look_up
from dpcml.models.neural.network import Network, Table
from dpcml.models.neural.trainer import Tensors
from dpcml.models.parameters import register

if TYPE_CHECKING:
    from torch import Tensor


@register("gmf")
@dataclass(eq=False)
class GMF(Network):
    """Generalised matrix factorisation (He et al., 2017, "Neural Collaborative Filtering").

    The chance that user u likes item i is ``sigmoid(h . (p_u * q_i) + b_i)`` with learned weights h of the dimensions;
    positives should have 1, sampled negatives 0 (binary cross-entropy). The bias b_i of an item is ours: it leaves the
    vectors to what is not popularity. Takes the parameters of `Network`.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> GMF(dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    def _tables(self, n_users: int, n_items: int) -> dict[str, Table]:
        return {
            "user_vectors_": Table((n_users, self.dim), 0.1),
            "item_vectors_": Table((n_items, self.dim), 0.1),
            "weights_": Table((self.dim,), 0.0, 1.0),
            "item_biases_": Table((n_items, 1)),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        weighted = look_up(p["user_vectors_"], users) * p["weights_"]  # (B, d)
        return inner(weighted, look_up(p["item_vectors_"], items)) + look_up(p["item_biases_"], items)[..., 0]

    def _floats_per_user(self, n_items: int) -> int:
        return 2 * n_items + self.dim
