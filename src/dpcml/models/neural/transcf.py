"""TransCF: a translation between user and item, made of their neighbours."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import hinge, inner, load_torch, look_up, tensor
from dpcml.models.neural.base import NeuralRecommender, ParameterTable, ball_tables
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.space import UnitBall, squared_distances
from dpcml.models.parameters import register
from dpcml.utils.checks import positive

if TYPE_CHECKING:
    from torch import Tensor


@register("transcf")
@dataclass(eq=False)
class TransCF(NeuralRecommender):
    """Collaborative translational metric learning (Park et al., 2018).

    Neighbours make the translation: with ``a_u`` the mean vector of the items that user u likes, and ``b_i`` that of
    the users who like item i, ``r = a_u * b_i`` (elementwise), and the score is ``-|u + r - v|^2``. A hinge keeps
    positives closer than negatives. Two more terms pull users and items to their neighbours, ``|u - a_u|^2 + |v -
    b_i|^2``, and users to their positives, ``|u + r - v|^2``.

    Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    margin, init
        As for `UnitBall`.
    neighbour_weight
        Weight of the pull to neighbours, summed over a positive and its negatives.
    distance_weight
        Weight of the squared distance of positives.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> TransCF(dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    dim: int = 100
    negatives: str = "hard"
    learning_rate: float = 0.001
    regularisation: float = 0.0
    margin: float = 1.0
    init: str = "spectral"
    neighbour_weight: float = 0.0
    distance_weight: float = 0.0

    space = UnitBall()
    renamed_params = {"start": "init"}  # noqa: RUF012

    def _check(self) -> None:
        super()._check()
        for field in ("neighbour_weight", "distance_weight"):
            positive(field, getattr(self, field), or_zero=True)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return ball_tables(n_users, n_items, self.dim)

    def _known(self, train: Interactions, device: str) -> dict[str, Any]:
        liked = train.csr
        per_user, per_item = (1 / np.maximum(counts, 1) for counts in (train.per_user, train.per_item))
        return {
            "means_of_users": both_ways(sparse.diags_array(per_user) @ liked, device),
            "means_of_items": both_ways(sparse.diags_array(per_item) @ liked.T, device),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        return translated_by_neighbours(*self._vectors(p, users, items))

    def _vectors(self, p: Tensors, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return users and the means of their items (B, d), items and the means of their users (B or 1, K, d)."""
        of_users = sparse_product(p["means_of_users"], p["item_vectors_"])
        of_items = sparse_product(p["means_of_items"], p["user_vectors_"])
        return (
            look_up(p["user_vectors_"], users), look_up(of_users, users),
            look_up(p["item_vectors_"], items), look_up(of_items, items),
        )  # fmt: skip

    def loss(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        """Return the mean loss of a batch; column 0 of ``items`` holds the positives."""
        u, a, v, b = self._vectors(p, users, items)
        scores = translated_by_neighbours(u, a, v, b)
        loss = hinge(self._chosen(scores), self.margin) - self.distance_weight * scores[:, 0].mean()
        if self.neighbour_weight:
            apart = (u - a).square().sum(1).mean() + (v - b).square().sum((1, 2)).mean()
            loss = loss + self.neighbour_weight * apart
        return loss

    def _floats_per_user(self, n_items: int) -> int:
        return 6 * n_items + 4 * self.dim


def translated_by_neighbours(u: Tensor, a: Tensor, v: Tensor, b: Tensor) -> Tensor:
    """Return ``-|u + a * b - v|^2``: users (B, d), items (B or 1, K, d), scores (B, K).

    For all items, it is multiplied out, so that nothing of shape (B, K, d) is made.
    """
    if len(v) > 1:
        return -(a[:, None, :] * b + (u[:, None, :] - v)).square().sum(2)
    return 2 * (inner(a, b * v) - inner(u * a, b)) - inner(a.square(), b.square()) - squared_distances(u, v)


def both_ways(matrix: sparse.csr_array, device: str) -> tuple[Tensor, Tensor]:
    """Return a sparse matrix and its transpose as tensors of float32."""
    return _tensor(matrix.tocsr().sorted_indices(), device), _tensor(matrix.T.tocsr().sorted_indices(), device)


def _tensor(matrix: sparse.csr_array, device: str) -> Tensor:
    parts = [tensor(part.astype(np.int64), device) for part in (matrix.indptr, matrix.indices)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        made: Tensor = load_torch().sparse_csr_tensor(
            *parts, tensor(matrix.data.astype(np.float32), device), size=matrix.shape, check_invariants=True
        )
    return made


def sparse_product(both: tuple[Tensor, Tensor], table: Tensor) -> Tensor:
    """Return ``matrix @ table`` for a matrix as `both_ways` gives it; the gradient is a product with its transpose.

    Torch would transpose anew for each gradient, which takes twice the time of both products.

    Examples
    --------
    >>> torch = load_torch()
    >>> table = torch.ones(3, 1, requires_grad=True)
    >>> product = sparse_product(both_ways(sparse.csr_array(np.array([[1.0, 0.0, 2.0]])), "cpu"), table)
    >>> product.backward()
    >>> product.tolist(), table.grad.tolist()
    ([[3.0]], [[1.0], [0.0], [2.0]])
    """
    product: Tensor = _function().apply(*both, table)
    return product


@cache
def _function() -> Any:
    class Product(load_torch().autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, matrix: Tensor, transposed: Tensor, table: Tensor) -> Tensor:
            ctx.transposed = transposed
            return matrix @ table

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
            return None, None, ctx.transposed @ gradient

    return Product
