"""Item-based nearest neighbours: items liked by the same people."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.kernels.item_item import cosine_neighbours
from dpcml.models.base import FromHistory
from dpcml.models.parameters import register
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least, positive
from dpcml.utils.threads import over_rows


class Neighbours(FromHistory):
    """Scores an item by the weights of those of its neighbours that a user likes; subclasses say who the k are."""

    k: int
    similarity_: sparse.csr_array  # row: an item, columns: its neighbours

    @abstractmethod
    def _find(self, train: Interactions, by_item: sparse.csr_array, neighbours: IntArray, weights: FloatArray) -> None:
        """Fill in the neighbours of all items, -1 where there are fewer, and their weights; both (items, k)."""

    def _fit(self, train: Interactions, valid: Interactions | None) -> None:
        n, k = train.n_items, min(self.k, max(train.n_items - 1, 1))
        neighbours = np.full((n, k), -1, dtype=np.int32)
        weights = np.zeros((n, k), dtype=np.float32)
        self._find(train, train.csr.T.tocsr(), neighbours, weights)
        kept = neighbours >= 0
        pairs = np.nonzero(kept)[0], neighbours[kept]
        self._take(sparse.coo_array((weights[kept], pairs), shape=(n, n)).tocsr())

    def _take(self, similarity: sparse.csr_array) -> None:
        self.similarity_ = similarity
        self._columns = similarity.T.tocsr()  # row j: the items that have j among their neighbours

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"similarity_": (self.check_fitted().n_items,) * 2}

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        super()._set_arrays(arrays)
        self._take(self.similarity_)

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return np.asarray((likes @ self._columns).toarray(), dtype=np.float32)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return np.asarray(self.similarity_[columns].toarray(), dtype=np.float32)


@register("itemknn")
@dataclass(eq=False)
class ItemKNN(Neighbours):
    """Score an item by its similarity to the items that the user likes (Sarwar et al., 2001).

    The similarity of items i and j is ``together / (sqrt(n_i n_j) + shrink)``, kept for the ``k`` nearest of each item.

    Parameters
    ----------
    k
        Neighbours kept per item.
    shrink
        Damps similarities that few users back; 0 is plain cosine.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> model = ItemKNN(k=2, shrink=0).fit(likes)
    >>> model.recommend(3, n=1)[0]
    array([1])
    """

    k: int = 100
    shrink: float = 10.0

    def _check(self) -> None:
        at_least("k", self.k, 1)
        positive("shrink", self.shrink, or_zero=True)

    def _find(self, train: Interactions, by_item: sparse.csr_array, neighbours: IntArray, weights: FloatArray) -> None:
        pairs = train.indptr, train.indices, by_item.indptr, by_item.indices
        shrink = float(self.shrink)
        over_rows(lambda a, b: cosine_neighbours(*pairs, shrink, neighbours, weights, a, b), train.n_items)
