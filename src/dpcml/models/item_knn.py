"""Item-based nearest neighbours: items liked by the same people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.arrays import FloatArray, IntArray
from dpcml.data.interactions import Interactions
from dpcml.errors import ParameterError
from dpcml.kernels.neighbours import cosine_neighbours
from dpcml.models.base import MODELS, Recommender
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
        if not isinstance(self.k, int) or self.k < 1:
            raise ParameterError(f"k={self.k!r}: must be a whole number of at least 1")
        if not 0 <= self.shrink < np.inf:
            raise ParameterError(f"shrink={self.shrink!r}: must be a finite number of at least 0")

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
        self.similarity_ = sparse.coo_array((similarities[kept], pairs), shape=(n, n)).tocsr()
        self._columns = self.similarity_.T.tocsr()  # row j: the items that have j among their neighbours

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return, for every item, the summed similarity of its neighbours that the user likes; shape (users, items)."""
        rows = self._rows(users)
        return np.asarray((self._fitted().csr[rows] @ self._columns).toarray(), dtype=np.float32)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return np.asarray(self.similarity_[columns].toarray(), dtype=np.float32)
