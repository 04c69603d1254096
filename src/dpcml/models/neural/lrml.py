"""LRML: a translation between user and item, read from a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpcml.models.neural.backend import cross, look_up
from dpcml.models.neural.base import NeuralRecommender, ParameterTable, ball_tables
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.space import UnitBall, squared_distances
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor


@register("lrml")
@dataclass(eq=False)
class LRML(NeuralRecommender):
    """Latent relational metric learning (Tay et al., 2018, "Latent Relational Metric Learning via Memory-based
    Attention for Collaborative Ranking").

    The product of user and item asks a memory of M slots for their relation, ``r = sum_m a_m m_m`` with ``a =
    softmax_m(k_m . (u * v))``; the score is ``-|u + r - v|^2``, and a hinge keeps positives closer than negatives.

    Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    margin, init
        As for `UnitBall`.
    n_slots
        Slots of the memory, M.
    shared_relation
        In training, a negative has the relation of its positive, as in the authors' code, instead of its own.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> LRML(dim=8, n_slots=4, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """  # noqa: D205 (the reference is long)

    dim: int = 100
    negatives: str = "hard"
    learning_rate: float = 0.001
    regularisation: float = 0.0
    margin: float = 1.0
    init: str = "spectral"
    n_slots: int = 20
    shared_relation: bool = False

    space = UnitBall()
    renamed_params = {"start": "init"}  # noqa: RUF012

    def _check(self) -> None:
        super()._check()
        at_least("n_slots", self.n_slots, 1)
        if not isinstance(self.shared_relation, bool):
            raise ParameterError(f"shared_relation={self.shared_relation!r}: must be true or false")

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        slots = (self.n_slots, self.dim)
        return {
            **ball_tables(n_users, n_items, self.dim),
            "keys_": ParameterTable(slots, self.dim**-0.5),
            "memory_": ParameterTable(slots, 0.1 * self.dim**-0.5),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        if len(items) == 1:
            return translated_to_all(u, v[0], cross(u[:, None] * p["keys_"], v).softmax(1), p["memory_"])
        return translated(u, v, attention(p["keys_"], u, v), p["memory_"])

    def _training_score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        related = v[:, :1] if self.shared_relation else v
        return translated(u, v, attention(p["keys_"], u, related), p["memory_"])

    def _floats_per_user(self, n_items: int) -> int:
        return (4 * self.n_slots + 3) * n_items + self.n_slots * self.dim


def attention(keys: Tensor, users: Tensor, items: Tensor) -> Tensor:
    """Return weights of the memory slots (B, K, M), ``softmax_m((u * v) . k_m)``.

    Keys have shape (M, d), users (B, d), items (B, K, d).
    """
    return ((users[:, None, :] * items) @ keys.T).softmax(2)


def translated(users: Tensor, items: Tensor, weights: Tensor, memory: Tensor) -> Tensor:
    """Return minus the squared distance ``|u + r - v|^2`` with ``r = sum_m w_m memory_m``; shape (B, K).

    Users have shape (B, d), items (B, K, d), weights (B, K or 1, M), the memory (M, d). The square is multiplied out:
    nothing of shape (B, K, d) is made.
    """
    with_users = (users @ memory.T)[:, None, :]  # (B, 1, M)
    with_items = items @ memory.T  # (B, K, M)
    with_itself = weights @ (memory @ memory.T)  # (B, K, M)
    return -(squared_distances(users, items) + (weights * (2 * (with_users - with_items) + with_itself)).sum(2))


def translated_to_all(users: Tensor, items: Tensor, weights: Tensor, memory: Tensor) -> Tensor:
    """Return what `translated` does for the same items (K, d) for all users, with weights of shape (B, M, K)."""
    with_users = (users @ memory.T)[:, :, None]  # (B, M, 1)
    with_items = memory @ items.T  # (M, K)
    terms = ((memory @ memory.T) @ weights).sub_(with_items, alpha=2).add_(with_users, alpha=2)  # (B, M, K)
    return -(squared_distances(users, items[None]) + terms.mul_(weights).sum(1))
