"""Item-based nearest neighbours: items liked by the same people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.arrays import Array, FloatArray, IntArray
from dpcml.data.fitting import csr_arrays, csr_of
from dpcml.data.interactions import Interactions
from dpcml.kernels.neighbours import cosine_neighbours
from dpcml.models.base import MODELS, Recommender
from dpcml.models.checks import at_least, positive
from dpcml.threads import over_rows


@MODELS.register("itemknn")
@dataclass(eq=False)
class ItemKNN(Recommender):
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

    name = "itemknn"

    def _check(self) -> None:
        at_least("k", self.k, 1)
        positive("shrink", self.shrink, or_zero=True)

    def _fit(self, train: Interactions, valid: Interactions | None) -> None:
        n, k = train.n_items, min(self.k, max(train.n_items - 1, 1))
        by_item = train.csr.T.tocsr()
        neighbours = np.full((n, k), -1, dtype=np.int32)
        similarities = np.zeros((n, k), dtype=np.float32)
        over_rows(
            lambda start, stop: cosine_neighbours(
                train.indptr, train.indices, by_item.indptr, by_item.indices,
                float(self.shrink), neighbours, similarities, start, stop,
            ),
            n,
        )  # fmt: skip
        kept = neighbours >= 0
        pairs = np.nonzero(kept)[0], neighbours[kept]
        self._take(sparse.coo_array((similarities[kept], pairs), shape=(n, n)).tocsr())

    def _take(self, similarity: sparse.csr_array) -> None:
        self.similarity_ = similarity
        self._columns = similarity.T.tocsr()  # row j: the items that have j among their neighbours

    def _arrays(self) -> dict[str, Array]:
        return csr_arrays("similarity_", self.similarity_)

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self._take(csr_of(arrays, "similarity_", (self._fitted().n_items,) * 2, "f"))

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return, for every item, the summed similarity of its neighbours that the user likes; shape (users, items)."""
        rows = self._rows(users)
        return np.asarray((self._fitted().csr[rows] @ self._columns).toarray(), dtype=np.float32)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return np.asarray(self.similarity_[columns].toarray(), dtype=np.float32)
