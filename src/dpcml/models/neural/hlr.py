"""HLR: relations between items, and between user and items on top of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dpcml.data.interactions import Interactions
from dpcml.models.neural.adacml import hidden, histories
from dpcml.models.neural.backend import cross, inner, load_torch, look_up, tensor
from dpcml.models.neural.base import NeuralRecommender, ParameterTable, ball_tables
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.lrml import attention, translated
from dpcml.models.neural.space import UnitBall
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor


@register("hlr")
@dataclass(eq=False)
class HLR(NeuralRecommender):
    """Hierarchical latent relations (Tran et al., 2021, "Hierarchical Latent Relation Modeling for Collaborative Metric
    Learning").

    The target item v has a relation to each item v_j that the user likes, ``r_j = sum_m w_jm m_m`` with ``w_j =
    softmax_m(k_m . (v_j * v))``, and one to the user, ``r_0``, read from a second memory in the same way with u in
    place of v_j. The user attends to them, ``a_j = softmax_j(u . r_j)``, and ``r = sum_j a_j r_j`` translates: the
    score is ``-|u + r - v|^2``, and a hinge keeps positives closer than negatives. The target's relation to itself is
    left out.

    Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    margin, init
        As for `UnitBall`.
    n_slots
        Slots of each memory, M.
    history
        Liked items that count at most; of more, some at random.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> HLR(dim=8, n_slots=4, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """  # noqa: D205 (the reference is long)

    dim: int = 100
    negatives: str = "hard"
    learning_rate: float = 0.001
    regularisation: float = 0.0
    margin: float = 1.0
    init: str = "spectral"
    n_candidates: int = 5
    n_slots: int = 10
    history: int = 20

    space = UnitBall()
    renamed_params = {"start": "init"}  # noqa: RUF012
    largest_batch: ClassVar[int] = 512

    def _check(self) -> None:
        super()._check()
        at_least("n_slots", self.n_slots, 1)
        at_least("history", self.history, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        slots, scale = (self.n_slots, self.dim), self.dim**-0.5
        return {
            **ball_tables(n_users, n_items, self.dim),
            "user_keys_": ParameterTable(slots, scale),
            "user_memory_": ParameterTable(slots, 0.1 * scale),
            "item_keys_": ParameterTable(slots, scale),
            "item_memory_": ParameterTable(slots, 0.1 * scale),
        }

    def _known(self, train: Interactions, device: str) -> dict[str, Any]:
        return {"history": tensor(histories(train, self.history, self.random_state), device)}

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        torch = load_torch()
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        liked = p["history"][users]  # (B, H)
        past = look_up(p["item_vectors_"], liked.clamp(min=0))  # (B, H, d)
        to_user = attention(p["user_keys_"], u, v)  # (B, K, M)
        to_items = triple(past, p["item_keys_"], v).softmax(2)  # (B, H, M, K)
        on_user = inner(u @ p["user_memory_"].T, to_user)[:, None]  # (B, 1, K): u . r_0
        on_items = ((u @ p["item_memory_"].T)[:, None, :, None] * to_items).sum(2)  # (B, H, K): u . r_j
        on_items = on_items.masked_fill(hidden(liked, items), -1e9)
        share = torch.cat([on_user, on_items], dim=1).softmax(1)  # (B, 1 + H, K)
        mixed = (share[:, 1:, None] * to_items).sum(1)  # (B, M, K)
        weights = torch.cat([share[:, 0, :, None] * to_user, mixed.mT], dim=2)  # (B, K, 2 M)
        return translated(u, v, weights, torch.cat([p["user_memory_"], p["item_memory_"]]))

    def _floats_per_user(self, n_items: int) -> int:
        return 3 * (self.history + 4) * self.n_slots * n_items


def triple(past: Tensor, keys: Tensor, items: Tensor) -> Tensor:
    """Return ``sum_d past_hd keys_md items_kd``, shape (B, H, M, K).

    Past items have shape (B, H, d), keys (M, d), target items (B or 1, K, d).
    The smaller side is multiplied with the keys first.
    """
    if len(items) == 1 or past.shape[1] <= items.shape[1]:
        asking = (past[:, :, None, :] * keys).flatten(1, 2)  # (B, H M, d)
        return cross(asking, items).view(*past.shape[:2], len(keys), -1)
    asking = (items[:, :, None, :] * keys).flatten(1, 2)  # (B, K M, d)
    return (asking @ past.mT).view(*items.shape[:2], len(keys), -1).permute(0, 3, 2, 1)
