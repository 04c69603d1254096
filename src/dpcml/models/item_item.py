"""Item-item models: scores are sums of weights from the items that the user likes to other items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.kernels.item_item import cosine_neighbours, walk_sources
from dpcml.models.base import Recommender
from dpcml.models.parameters import register
from dpcml.training.trainer import FitOptions
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least, positive
from dpcml.utils.threads import over_rows


class ItemItem(Recommender):
    """A model that keeps k weighted neighbours per item; a score is the sum of weights over liked neighbours."""

    k: int
    similarity_: sparse.csr_array  # row: an item, columns: its neighbours

    @abstractmethod
    def _find(self, train: Interactions, by_item: sparse.csr_array, neighbours: IntArray, weights: FloatArray) -> None:
        """Fill in the neighbours of all items, -1 where there are fewer than k, and their weights; both (items, k)."""

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        n, k = train.n_items, min(self.k, max(train.n_items - 1, 1))
        neighbours = np.full((n, k), -1, dtype=np.int32)
        weights = np.zeros((n, k), dtype=np.float32)
        self._find(train, train.csr.T.tocsr(), neighbours, weights)
        kept = neighbours >= 0
        pairs = np.nonzero(kept)[0], neighbours[kept]
        self._set_similarity(sparse.coo_array((weights[kept], pairs), shape=(n, n)).tocsr())

    def _set_similarity(self, similarity: sparse.csr_array) -> None:
        self.similarity_ = similarity
        self._columns = similarity.T.tocsr()  # row j: the items that have j among their neighbours

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"similarity_": (self.check_fitted().n_items,) * 2}

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        super()._set_arrays(arrays)
        self._set_similarity(self.similarity_)

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return np.asarray((likes @ self._columns).toarray(), dtype=np.float32)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return np.asarray(self.similarity_[columns].toarray(), dtype=np.float32)


@register("itemknn")
@dataclass(eq=False)
class ItemKNN(ItemItem):
    """Score an item by its similarity to the items that the user likes (Sarwar et al., 2001).

    The similarity of items i and j is ``n_ij / (sqrt(n_i n_j) + shrink)``, where n counts users who like one item or
    both; the ``k`` largest of each item are kept. With weights, a positive counts by its `Interactions.confidence`:
    n_ij is a sum of products, n_i one of squares, and the user's items count by theirs.

    Parameters
    ----------
    k
        Neighbours kept per item.
    shrink
        Damps similarities with few common users; 0 is plain cosine.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> model = ItemKNN(k=2, shrink=0).fit(likes)
    >>> model.recommend(3, n=1)[0]
    array([1])
    """

    k: int = 100
    shrink: float = 10.0

    uses_weights = True

    def _check(self) -> None:
        at_least("k", self.k, 1)
        positive("shrink", self.shrink, or_zero=True)

    def _find(self, train: Interactions, by_item: sparse.csr_array, neighbours: IntArray, weights: FloatArray) -> None:
        pairs = train.indptr, train.indices, by_item.indptr, by_item.indices
        ours, theirs, squares = _confidences(train)
        shrink = float(self.shrink)
        over_rows(
            lambda a, b: cosine_neighbours(*pairs, ours, theirs, squares, shrink, neighbours, weights, a, b),
            train.n_items,
        )

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the sums over the users' items, each times its confidence; shape (users, items)."""
        return self._score_histories(self.check_fitted().confidence[self._rows(users)])


def _confidences(train: Interactions) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the confidence of the positives user by user and item by item, and the sum of its squares per item."""
    if train.weights is None:
        none = np.zeros(0)
        return none, none, train.per_item.astype(np.float64)
    matrix = train.confidence.astype(np.float64)
    squares: FloatArray = np.bincount(train.indices, matrix.data**2, train.n_items).astype(np.float64)
    return matrix.data, matrix.T.tocsr().data, squares


@register("rp3beta")
@dataclass(eq=False)
class RP3Beta(ItemItem):
    """Score an item by random walks of three steps: user, liked item, other user, item (Paudel et al., 2017).

    A walk from item i over user u to item j weighs ``(1 / n_i)^alpha (1 / n_u)^alpha``, where n counts positives; the
    weight of j is the sum over all walks from the user's items, divided by ``n_j^beta``. (The step from the user to an
    item is the same for all items, and left out.) For each item j the ``k`` items from which most walks arrive are
    kept; on Steam-200k and ML-1M that is better than to keep the k that most walks from an item lead to.

    Parameters
    ----------
    k
        Items kept per item.
    alpha
        Power of the probability of a step; 1 is a plain random walk.
    beta
        How much popular items are penalised; 0 is P3alpha. The default suits Steam-200k and ML-1M; sparser
        data may want less (0.3 on CiteULike-T).

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> RP3Beta(k=2, alpha=1.0, beta=0.5).fit(likes).recommend(3, n=1)[0]
    array([1])
    """

    k: int = 400
    alpha: float = 0.5
    beta: float = 0.55

    def _check(self) -> None:
        at_least("k", self.k, 1)
        positive("alpha", self.alpha, or_zero=True)
        positive("beta", self.beta, or_zero=True)

    def _find(self, train: Interactions, by_item: sparse.csr_array, neighbours: IntArray, weights: FloatArray) -> None:
        pairs = train.indptr, train.indices, by_item.indptr, by_item.indices
        users, items = np.maximum(train.per_user, 1.0), np.maximum(train.per_item, 1.0)
        factors = users**-self.alpha, items**-self.alpha, items**-self.beta
        over_rows(lambda a, b: walk_sources(*pairs, *factors, neighbours, weights, a, b), train.n_items)
