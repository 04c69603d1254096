"""LRML: a translation between user and item, read from a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpcml.models.neural.backend import look_up
from dpcml.models.neural.metric import Metric, attention, translated
from dpcml.models.neural.network import Table
from dpcml.models.neural.trainer import Tensors
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor


@register("lrml")
@dataclass(eq=False)
class LRML(Metric):
    """Latent relational metric learning (Tay et al., 2018, "Latent Relational Metric Learning via Memory-based
    Attention for Collaborative Ranking").

    The product of user and item asks a memory of M slots for their relation, ``r = sum_m a_m m_m`` with ``a =
    softmax_m(k_m . (u * v))``; the score is ``-|u + r - v|^2``, and a hinge keeps positives closer than negatives.

    Takes the parameters of `Metric`, and:

    Parameters
    ----------
    n_slots
        Slots of the memory, M.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> LRML(dim=8, n_slots=4, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """  # noqa: D205 (the reference is long)

    n_slots: int = 20

    def _check(self) -> None:
        super()._check()
        at_least("n_slots", self.n_slots, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, Table]:
        slots = (self.n_slots, self.dim)
        return {
            **super()._tables(n_users, n_items),
            "keys_": Table(slots, self.dim**-0.5),
            "memory_": Table(slots, 0.1 * self.dim**-0.5),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        return translated(u, v, attention(p["keys_"], u, v), p["memory_"])

    def _floats_per_user(self, n_items: int) -> int:
        return (4 * self.n_slots + 3) * n_items + self.n_slots * self.dim
