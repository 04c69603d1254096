"""M2F and MGMF: factorisations with several vectors per user (Guo et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpcml.models.neural.backend import diversity_hinge, largest_inner, least_squares, load_torch, look_up
from dpcml.models.neural.base import NeuralRecommender, ParameterTable
from dpcml.models.neural.learner import Tensors
from dpcml.models.parameters import register
from dpcml.utils.checks import at_least, bounds, positive

if TYPE_CHECKING:
    from torch import Tensor


@register("m2f")
@dataclass(eq=False)
class M2F(NeuralRecommender):
    """Multi-vector matrix factorisation (Guo et al., 2021, "The Stereotyping Problem in Collaboratively Filtered
    Recommender Systems"; the score is that of Weston et al., 2013, "Nonlinear Latent Factorization by Embedding
    Multiple User Interests").

    The score is ``max_c <u_c, v_i>``, fitted by least squares: 1 for positives, 0 for sampled negatives. With a
    ``diversity_weight``, the diversity hinge of DPCML (DCRS) is added, ``max(0, delta_1 - delta) + max(0, delta -
    delta_2)`` with delta half the mean squared distance of a user's vectors, as a mean over the users of a batch.

    Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    n_vectors
        Vectors per user, C.
    negative_weight
        Weight of a negative's squared error.
    diversity
        Bounds (delta_1, delta_2); ``None`` leaves a bound out.
    diversity_weight
        Weight of the diversity hinge; 0 leaves it out.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> M2F(n_vectors=2, dim=8, n_candidates=3, learning_rate=0.01).fit(likes).recommend(0, n=1)[0]
    array([4])
    """  # noqa: D205 (the reference is long)

    n_vectors: int = 4
    negative_weight: float = 1.0
    diversity: tuple[float | None, float | None] = (0.02, 0.15)
    diversity_weight: float = 0.0

    def _check(self) -> None:
        super()._check()
        at_least("n_vectors", self.n_vectors, 1)
        positive("negative_weight", self.negative_weight)
        positive("diversity_weight", self.diversity_weight, or_zero=True)
        bounds("diversity", self.diversity)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return {
            "user_vectors_": ParameterTable((n_users, self.n_vectors, self.dim), 0.1),
            "item_vectors_": ParameterTable((n_items, self.dim), 0.1),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        return largest_inner(user_vectors(p, users), look_up(p["item_vectors_"], items))

    def loss(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        """Return the mean loss of a batch; column 0 of ``items`` holds the positives."""
        loss = least_squares(self._chosen(self._score(p, users, items)), self.negative_weight)
        if self.diversity_weight:
            lower, upper = bounds("diversity", self.diversity)
            present = load_torch().unique(users)
            loss = loss + self.diversity_weight * diversity_hinge(user_vectors(p, present), lower, upper).mean()
        return loss

    def _floats_per_user(self, n_items: int) -> int:
        return (1 + self.n_vectors) * n_items


def user_vectors(p: Tensors, users: Tensor) -> Tensor:
    """Return the vectors of some users; shape (B, C, d)."""
    table = p["user_vectors_"]
    return look_up(table.flatten(1), users).view(-1, *table.shape[1:])


@register("mgmf")
@dataclass(eq=False)
class MGMF(NeuralRecommender):
    """Multi-vector GMF (Guo et al., 2021, "The Stereotyping Problem in Collaboratively Filtered Recommender Systems").

    The chance that user u likes item i is ``sigmoid(max_c h . (u_c * q_i) + b_i)``: `GMF` (He et al., 2017) with C
    vectors per user, of which the one that fits the item best counts; binary cross-entropy on positives and sampled
    negatives. The bias b_i of an item is ours. Takes the parameters of `NeuralRecommender`, and:

    Parameters
    ----------
    n_vectors
        Vectors per user, C.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> MGMF(n_vectors=2, dim=8, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    n_vectors: int = 4

    def _check(self) -> None:
        super()._check()
        at_least("n_vectors", self.n_vectors, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return {
            "user_vectors_": ParameterTable((n_users, self.n_vectors, self.dim), 0.1),
            "item_vectors_": ParameterTable((n_items, self.dim), 0.1),
            "weights_": ParameterTable((self.dim,), 0.0, 1.0),
            "item_biases_": ParameterTable((n_items, 1)),
        }

    def _score(self, p: Tensors, users: Tensor, items: Tensor) -> Tensor:
        weighted = user_vectors(p, users) * p["weights_"]  # (B, C, d)
        best = largest_inner(weighted, look_up(p["item_vectors_"], items))
        return best + look_up(p["item_biases_"], items)[..., 0]

    def _floats_per_user(self, n_items: int) -> int:
        return (3 + self.n_vectors) * n_items
