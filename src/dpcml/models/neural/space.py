"""The space of a model's vectors: unconstrained, or the unit ball of the metric models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import cross_entropy, hinge, inner
from dpcml.retrieval.exact import nearest_scores
from dpcml.training.init import INITS
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import choice, positive
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from torch import Tensor


class FreeSpace:
    """Unconstrained vectors; scores are logits, and the loss is binary cross-entropy."""

    def check(self, model: Any) -> None:
        """Raise a `ParameterError` for a parameter out of range."""

    def initial(self, model: Any, train: Interactions, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Return initial vectors by name; none, so that all tables are drawn at random."""
        return {}

    def loss(self, model: Any, scores: Tensor) -> Tensor:
        """Return the mean loss of scores (B, 1 + negatives); column 0 holds the positives."""
        return cross_entropy(scores)

    def steep(self, model: Any, positives: Tensor, negatives: Tensor) -> Tensor:
        """Return for which pairs of scores, both of shape (B,), the loss has a gradient: here for all."""
        return negatives.new_ones(len(negatives))

    def project(self, p: Any) -> None:
        """Bring vectors back into the space, in place, after a step."""

    def similarity(self, model: Any, columns: IntArray) -> FloatArray:
        """Return the similarity of some items to all; shape (columns, items)."""
        raise ParameterError(f"{type(model).__name__} has no notion of similar items: use itemknn or ease")


class UnitBall(FreeSpace):
    """One vector per user and item in the unit ball; scores are minus squared distances, and the loss is a hinge.

    A model in this space has the parameters ``margin`` (how much closer a positive must be than a negative) and
    ``init`` (initial vectors: ``spectral`` or ``random``; see `dpcml.training.init`).
    """

    def check(self, model: Any) -> None:
        """Raise a `ParameterError` for a margin or an initialisation out of range."""
        positive("margin", model.margin)
        choice("init", model.init, tuple(INITS))

    def initial(self, model: Any, train: Interactions, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Return initial vectors of users and items."""
        users, items = INITS[model.init](train, 1, model.dim, rng)
        return {"user_vectors_": in_ball(users[:, 0]), "item_vectors_": in_ball(items)}

    def loss(self, model: Any, scores: Tensor) -> Tensor:
        """Return the mean hinge of the positive's score against each negative's."""
        return hinge(scores, model.margin)

    def steep(self, model: Any, positives: Tensor, negatives: Tensor) -> Tensor:
        """Return for which pairs of scores the hinge is not 0."""
        found: Tensor = model.margin - positives + negatives > 0
        return found

    def project(self, p: Any) -> None:
        """Scale vectors longer than 1 to length 1."""
        for name in ("user_vectors_", "item_vectors_"):
            vectors = p[name]
            vectors.div_(vectors.norm(dim=1, keepdim=True).clamp_(min=1))

    def similarity(self, model: Any, columns: IntArray) -> FloatArray:
        """Return minus the squared distances of some items to all."""
        vectors: FloatArray = vars(model)["item_vectors_"]
        return nearest_scores(vectors[columns][:, None, :], vectors)


def in_ball(vectors: FloatArray) -> FloatArray:
    """Return vectors, those longer than 1 scaled to length 1.

    Examples
    --------
    >>> in_ball(np.array([[0.0, 2.0], [0.5, 0.0]])).tolist()
    [[0.0, 1.0], [0.5, 0.0]]
    """
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1))


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
