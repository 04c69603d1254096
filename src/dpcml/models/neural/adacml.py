"""AdaCML: user vectors that adapt to the target item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import cross, inner, look_up, tensor
from dpcml.models.neural.base import NeuralRecommender, ParameterTable, ball_tables
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.space import UnitBall, squared_distances
from dpcml.models.parameters import register
from dpcml.utils.arrays import IntArray
from dpcml.utils.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor


@register("adacml")
@dataclass(eq=False)
class AdaCML(NeuralRecommender):
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

    space = UnitBall()
    renamed_params = {"start": "init"}  # noqa: RUF012
    largest_batch: ClassVar[int] = 1024

    def _check(self) -> None:
        super()._check()
        at_least("history", self.history, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return ball_tables(n_users, n_items, self.dim)

    def _known(self, train: Interactions, device: str) -> dict[str, Any]:
        return {"history": tensor(histories(train, self.history, self.random_state), device)}

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        u, v = look_up(p["user_vectors_"], users), look_up(p["item_vectors_"], items)
        liked = p["history"][users]  # (B, H)
        memory = look_up(p["item_vectors_"], liked.clamp(min=0))  # (B, H, d)
        near = cross(memory, v)  # (B, H, K)
        weights = masked_softmax(near, hidden(liked, items))
        with_users = inner(u, memory)[:, :, None]
        return -(squared_distances(u, v) + 2 * (weights * (with_users - near)).sum(1) + mixed_squares(weights, memory))

    def _floats_per_user(self, n_items: int) -> int:
        return 5 * self.history * n_items + self.history * self.dim


def mixed_squares(weights: Tensor, memory: Tensor) -> Tensor:
    """Return ``|sum_h w_hk memory_h|^2``, shape (B, K), for weights (B, H, K) and a memory (B, H, d).

    By the sums themselves, or by the inner products of the memory, whichever takes fewer numbers.
    """
    if weights.shape[2] <= memory.shape[2]:
        return (weights.mT @ memory).square().sum(2)
    return (weights * ((memory @ memory.mT) @ weights)).sum(1)


def hidden(liked: Tensor, items: Tensor) -> Tensor:
    """Return which places of a history (B, H) do not count for items (B or 1, K): empty ones, and the item itself."""
    return (liked[:, :, None] == items[:, None, :]) | (liked < 0)[:, :, None]


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over dimension 1 of what is not masked; zeros where everything is.

    Examples
    --------
    >>> from dpcml.models.neural.backend import load_torch
    >>> torch = load_torch()
    >>> masked_softmax(torch.zeros(1, 3, 1), torch.tensor([[[False], [False], [True]]]))[0, :, 0].tolist()
    [0.5, 0.5, 0.0]
    """
    return logits.masked_fill(mask, -1e9).softmax(1).masked_fill(mask, 0.0)


def histories(train: Interactions, size: int, seed: int) -> IntArray:
    """Return up to ``size`` items of each user, -1 where there are no more; of more items, some at random.

    Examples
    --------
    >>> train = Interactions.from_csr(np.array([[1, 1, 1], [0, 1, 0]]))
    >>> found = histories(train, 2, seed=0)
    >>> found.shape, found[1].tolist()
    ((2, 2), [1, -1])
    """
    width = max(1, min(size, int(train.per_user.max(initial=0))))
    found = np.full((train.n_users, width), -1, dtype=np.int64)
    rows = np.asarray(train.rows)
    order = np.lexsort((np.random.default_rng(seed).random(len(rows)), rows))
    place = np.arange(len(rows)) - np.asarray(train.indptr)[rows]  # rows ascend, before and after
    kept = place < width
    found[rows[kept], place[kept]] = np.asarray(train.indices)[order][kept]
    return found
