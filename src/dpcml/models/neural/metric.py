"""What the metric models share: vectors in the unit ball, a hinge on squared distances, translations from a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import cross, inner
from dpcml.models.neural.losses import hinge
from dpcml.models.neural.network import Network, Table
from dpcml.models.neural.trainer import Tensors
from dpcml.models.vectors import nearest_scores
from dpcml.training.init import INITS
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import choice, positive

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(eq=False)
class Metric(Network):
    """A model whose score is minus a squared distance; users and items have one vector each, in the unit ball.

    Takes the parameters of `Network`, and:

    Parameters
    ----------
    margin
        How much closer a positive must be than a negative.
    init
        ``spectral`` or ``random``; see `dpcml.training.init`.
    """

    dim: int = 100
    negatives: str = "hard"
    learning_rate: float = 0.001
    regularisation: float = 0.0
    margin: float = 1.0
    init: str = "spectral"

    renamed_params = {"start": "init"}  # noqa: RUF012

    def _check(self) -> None:
        super()._check()
        positive("margin", self.margin)
        choice("init", self.init, tuple(INITS))

    def _tables(self, n_users: int, n_items: int) -> dict[str, Table]:
        return {"user_vectors_": Table((n_users, self.dim)), "item_vectors_": Table((n_items, self.dim))}

    def _start(self, train_data: Interactions, rng: np.random.Generator) -> dict[str, FloatArray]:
        users, items = INITS[self.init](train_data, 1, self.dim, rng)
        vectors = {"user_vectors_": in_ball(users[:, 0]), "item_vectors_": in_ball(items)}
        return super()._start(train_data, rng) | vectors

    def _loss(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        return hinge(self._chosen(self._score(p, users, items)), self.margin)

    def _project(self, p: Tensors) -> None:
        for name in ("user_vectors_", "item_vectors_"):
            vectors = p[name]
            vectors.div_(vectors.norm(dim=1, keepdim=True).clamp_(min=1))

    def _similarity(self, columns: IntArray) -> FloatArray:
        vectors: FloatArray = vars(self)["item_vectors_"]
        return nearest_scores(vectors[columns][:, None, :], vectors)


def in_ball(vectors: FloatArray) -> FloatArray:
    """Return vectors, those longer than 1 scaled to length 1.

    Examples
    --------
    >>> in_ball(np.array([[0.0, 2.0], [0.5, 0.0]])).tolist()
    [[0.0, 1.0], [0.5, 0.0]]
    """
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1))


def attention(keys: Tensor, users: Tensor, items: Tensor) -> Tensor:
    """Return weights of the memory slots (B, K, M): ``softmax_m((u * v) . k_m)`` with keys (M, d).

    Users have shape (B, d), items (B or 1, K, d).
    """
    if len(items) == 1:
        return cross(users[:, None, :] * keys, items).mT.softmax(2)
    return ((users[:, None, :] * items) @ keys.T).softmax(2)


def translated(users: Tensor, items: Tensor, weights: Tensor, memory: Tensor) -> Tensor:
    """Return minus the squared distance ``|u + r - v|^2`` with ``r = sum_m w_m memory_m``; shape (B, K).

    Users have shape (B, d), items (B or 1, K, d), weights (B, K, M), the memory (M, d). The square is multiplied out,
    so that nothing of shape (B, K, d) is made.
    """
    with_users = (users @ memory.T)[:, None, :]  # (B, 1, M)
    with_items = items @ memory.T  # (B or 1, K, M)
    with_itself = weights @ (memory @ memory.T)  # (B, K, M)
    return -(squared_distances(users, items) + (weights * (2 * (with_users - with_items) + with_itself)).sum(2))


def squared_distances(users: Tensor, items: Tensor) -> Tensor:
    """Return squared distances (B, K) of users (B, d) to items (B or 1, K, d).

    Examples
    --------
    >>> from dpcml.models.neural.backend import load_torch
    >>> torch = load_torch()
    >>> squared_distances(torch.tensor([[1.0, 0.0]]), torch.tensor([[[1.0, 2.0], [0.0, 0.0]]])).tolist()
    [[4.0, 1.0]]
    """
    return users.square().sum(1)[:, None] + items.square().sum(2) - 2 * inner(users, items)
