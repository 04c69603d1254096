"""Popularity: the same list of most popular items for every user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.models.base import Recommender
from dpcml.models.parameters import register
from dpcml.retrieval.content import ContentRidge
from dpcml.training.trainer import FitOptions
from dpcml.utils.arrays import FloatArray


@register("popularity")
@dataclass(eq=False)
class Popularity(Recommender):
    """Score items by the number of users who like them, the same for everyone.

    Examples
    --------
    >>> model = Popularity().fit(np.array([[1, 0, 1], [0, 0, 1]]))
    >>> model.score([0])
    array([[1., 0., 2.]], dtype=float32)
    >>> model.recommend(1, n=1)
    (array([0]), array([1.], dtype=float32))
    """

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        self.item_counts_ = train.per_item.astype(np.float32)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"item_counts_": (self.check_fitted().n_items,)}

    def _add_items(self, both: Interactions, ridge: ContentRidge) -> None:
        self.item_counts_ = both.per_item.astype(np.float32)

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return np.tile(self.item_counts_, (likes.shape[0], 1))
