"""AdaCML: user vectors that adapt to the target item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpcml.models.neural.backend import inner, load_torch, look_up
from dpcml.models.neural.base import NeuralRecommender
from dpcml.models.neural.history import ReadsHistory, hidden
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.space import squared_distances
from dpcml.models.parameters import register

if TYPE_CHECKING:
    from torch import Tensor


@register("adacml")
@dataclass(eq=False)
class AdaCML(ReadsHistory, NeuralRecommender):
    """Adaptive collaborative metric learning (Zhang et al., 2019).

    A user's memory holds the items that the user likes. The target item attends to them, ``a_j = softmax_j(v_j . v)``,
    and the user's vector adapts, ``u' = u + sum_j a_j v_j``; the score is ``-|u' - v|^2``, and a hinge keeps positives
    closer than negatives. The target itself is left out of the memory: else positives would explain themselves.

    Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    margin, init
        As for `UnitBall`.
    history
        Items in a user's memory at most; of more, some at random.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> AdaCML(dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    dim: int = 100
    negatives: str = "hard"
    learning_rate: float = 0.001
    regularisation: float = 0.0
    margin: float = 1.0
    init: str = "spectral"
    history: int = 30

    largest_batch: ClassVar[int] = 1024

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        liked = p["history"][users]  # (B, H)
        memory = look_up(p["item_vectors_"], liked.clamp(min=0))  # (B, H, d)
        weights = masked_softmax(v @ memory.mT, hidden(liked, items))  # (B, K, H)
        return -(u[:, None] + weights @ memory - v).square().sum(2)

    def _pairs(self, p: Tensors, past: Tensor, items: Tensor) -> tuple[Tensor, ...]:
        """Return attentions before they are divided by their sum, exp(v_j . v), and these times v_j . v."""
        torch = load_torch()
        near = look_up(p["item_vectors_"], past) @ look_up(p["item_vectors_"], items).T  # (P, K)
        attention = (near - near.amax(0)).exp_().masked_fill_(past[:, None] == items, 0.0)
        nothing = near.new_zeros(1, len(items))
        return torch.cat([attention, nothing]), torch.cat([near.mul_(attention), nothing])

    def _score_pairs(
        self, p: Tensors, users: Tensor, place: Tensor, pairs: tuple[Tensor, ...], items: Tensor
    ) -> Tensor:
        bag = load_torch().nn.functional.embedding_bag
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        memory = look_up(p["item_vectors_"], p["history"][users, : place.shape[1]].clamp(min=0))  # (B, H, d)
        attention = look_up(pairs[0], place)  # (B, H, K)
        total = attention.sum(1).clamp_(min=1e-30)  # 0 where nothing counts: all terms below are 0 too
        with_users = inner(u, memory)[:, None] @ attention  # (B, 1, K)
        mixed = with_users[:, 0].sub_(bag(place, pairs[1], mode="sum")).mul_(2)
        squares = ((memory @ memory.mT) @ attention).mul_(attention).sum(1)
        return -(squared_distances(u, v[None]) + mixed.add_(squares.div_(total)).div_(total))

    def _floats_per_user(self, n_items: int) -> int:
        return 3 * self.history * n_items


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the last dimension of what is not masked; zeros where everything is.

    Examples
    --------
    >>> torch = load_torch()
    >>> masked_softmax(torch.zeros(1, 3), torch.tensor([[False, False, True]])).tolist()
    [[0.5, 0.5, 0.0]]
    """
    return logits.masked_fill(mask, -1e9).softmax(-1).masked_fill(mask, 0.0)
