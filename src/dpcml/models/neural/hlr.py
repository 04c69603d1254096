"""HLR: relations between items, and between user and items on top of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpcml.models.neural.backend import cross, inner, load_torch, look_up
from dpcml.models.neural.base import NeuralRecommender, ParameterTable
from dpcml.models.neural.history import ReadsHistory, hidden
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.lrml import attention, translated_to_all
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor


@register("hlr")
@dataclass(eq=False)
class HLR(ReadsHistory, NeuralRecommender):
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

    largest_batch: ClassVar[int] = 512

    def _check(self) -> None:
        super()._check()
        at_least("n_slots", self.n_slots, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        slots, scale = (self.n_slots, self.dim), self.dim**-0.5
        return {
            **super()._tables(n_users, n_items),
            "user_keys_": ParameterTable(slots, scale),
            "user_memory_": ParameterTable(slots, 0.1 * scale),
            "item_keys_": ParameterTable(slots, scale),
            "item_memory_": ParameterTable(slots, 0.1 * scale),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        torch = load_torch()
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        liked = p["history"][users]  # (B, H)
        past = look_up(p["item_vectors_"], liked.clamp(min=0))  # (B, H, d)
        to_user = attention(p["user_keys_"], u, v)  # (B, K, M)
        asked = (v[:, :, None] * p["item_keys_"]).flatten(1, 2)  # (B, K M, d)
        to_items = (asked @ past.mT).view(*items.shape, self.n_slots, -1).softmax(2)  # (B, K, M, H)
        on_user = inner(u @ p["user_memory_"].T, to_user)[:, :, None]  # (B, K, 1): u . r_0
        on_items = ((u @ p["item_memory_"].T)[:, None, :, None] * to_items).sum(2)  # (B, K, H): u . r_j
        on_items = on_items.masked_fill(hidden(liked, items), -1e9)
        share = torch.cat([on_user, on_items], dim=2).softmax(2)  # (B, K, 1 + H)
        mixed = (to_items * share[:, :, None, 1:]).sum(3)  # (B, K, M)
        relation = (share[:, :, :1] * to_user) @ p["user_memory_"] + mixed @ p["item_memory_"]  # (B, K, d)
        distances: Tensor = (u[:, None] + relation - v).square().sum(2)
        return -distances

    def _pairs(self, p: Tensors, past: Tensor, items: Tensor) -> tuple[Tensor, ...]:
        """Return weights of slots in the relation of two items (P + 1, M, K), and -1e9 where they do not count."""
        torch = load_torch()
        one, other = look_up(p["item_vectors_"], past), look_up(p["item_vectors_"], items)
        logits = cross(one[:, None] * p["item_keys_"], other[None])  # (P, M, K)
        closed = one.new_zeros(len(past) + 1, len(items))
        closed[:-1].masked_fill_(past[:, None] == items, -1e9)
        closed[-1] = -1e9
        return torch.cat([logits.softmax(1), logits.new_zeros(1, *logits.shape[1:])]), closed

    def _score_pairs(
        self, p: Tensors, users: Tensor, place: Tensor, pairs: tuple[Tensor, ...], items: Tensor
    ) -> Tensor:
        torch = load_torch()
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        to_items = pairs[0].index_select(0, place.flatten()).view(*place.shape, self.n_slots, -1)  # (B, H, M, K)
        to_user = cross(u[:, None] * p["user_keys_"], v[None]).softmax(1)  # (B, M, K)
        on_user = (u @ p["user_memory_"].T)[:, None] @ to_user  # (B, 1, K): u . r_0
        on_items = ((u @ p["item_memory_"].T)[:, None, None] @ to_items)[:, :, 0]  # (B, H, K): u . r_j
        on_items = on_items.add_(look_up(pairs[1], place))
        share = torch.cat([on_user, on_items], dim=1).softmax(1)  # (B, 1 + H, K)
        mixed = to_items.mul_(share[:, 1:, None]).sum(1)  # (B, M, K)
        weights = torch.cat([to_user.mul_(share[:, :1]), mixed], dim=1)  # (B, 2 M, K)
        return translated_to_all(u, v, weights, torch.cat([p["user_memory_"], p["item_memory_"]]))

    def _floats_per_user(self, n_items: int) -> int:
        return self.history * self.n_slots * n_items
