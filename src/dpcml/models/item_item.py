"""Item-item models: scores are sums of weights from the items that the user likes to other items."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from dpcml.data.interactions import Interactions
from dpcml.kernels.item_item import cosine_neighbours, walk_sources
from dpcml.models.base import Recommender
from dpcml.models.parameters import register
from dpcml.training.trainer import FitOptions
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least, positive
from dpcml.utils.errors import DataError, ParameterError
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
    both; the ``k`` largest of each item are kept.

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

    def _check(self) -> None:
        at_least("k", self.k, 1)
        positive("shrink", self.shrink, or_zero=True)

    def _find(self, train: Interactions, by_item: sparse.csr_array, neighbours: IntArray, weights: FloatArray) -> None:
        pairs = train.indptr, train.indices, by_item.indptr, by_item.indices
        shrink = float(self.shrink)
        over_rows(lambda a, b: cosine_neighbours(*pairs, shrink, neighbours, weights, a, b), train.n_items)


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


@register("ease")
@dataclass(eq=False)
class EASE(Recommender):
    """Predict a user's row of the matrix from itself, with a zero diagonal and a ridge penalty (Steck, 2019).

    With ``P = (X^T X + l2 I)^-1`` the weights are ``B_ij = -P_ij / P_jj`` off the diagonal; scores are ``X B``. The
    fit needs ``16 items^2`` bytes and time that grows with ``items^3``.

    Parameters
    ----------
    l2
        Ridge penalty; larger for denser data.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> EASE(l2=1.0).fit(likes).recommend(3, n=1)[0]
    array([1])
    """

    l2: float = 100.0

    def _check(self) -> None:
        positive("l2", self.l2)

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        n = train.n_items
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if 16 * n * n > memory:
            raise DataError(
                f"EASE on {n:,} items needs about {16 * n * n / 2**30:.0f} GiB, this machine has {memory / 2**30:.0f}:"
                " drop rare items (core=...) or use itemknn"
            )
        gram = np.asfortranarray((train.csr.T @ train.csr).toarray(), dtype=np.float64)
        gram[np.diag_indices(n)] += self.l2
        factor, failed = lapack.dpotrf(gram, lower=0, overwrite_a=1)
        inverse, broken = lapack.dpotri(factor, lower=0, overwrite_c=1)
        if failed or broken:
            raise ParameterError(f"l2={self.l2!r}: too small for this data, the system cannot be solved; raise it")
        self.weights_ = _weights(inverse)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weights_": (self.check_fitted().n_items,) * 2}

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return np.asarray(likes @ self.weights_)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return np.asarray(self.weights_[columns])


def _weights(inverse: FloatArray) -> FloatArray:
    """Return ``-P_ij / P_jj`` off the diagonal from the upper triangle of P; row: liked item, column: scored item."""
    n = len(inverse)
    diagonal = np.diag(inverse).copy()
    weights = np.empty((n, n), dtype=np.float32)
    for first in range(0, n, 1024):
        rows = slice(first, min(first + 1024, n))
        block = inverse[rows].copy()  # (1024, n), right of the diagonal only
        block[:, : rows.stop] = inverse[: rows.stop, rows].T
        corner = inverse[rows, rows]
        block[:, rows] = np.triu(corner) + np.triu(corner, 1).T
        weights[rows] = block / -diagonal
    weights[np.diag_indices(n)] = 0
    return weights
