"""The interests that candidates belong to: a user's vectors, or the items' categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from dpcml.data.items import Attributes
from dpcml.retrieval.rerank import FAMILIAR, CandidateLists, rerank
from dpcml.utils.arrays import FloatArray, IntArray

AFFINITY_BYTES = 64 * 2**20  # affinities or shares held at once
WIDTH = 0.05  # difference of squared distances by which an affinity falls to 1/e of another


class Aspects(Protocol):
    """The interests of some users, by which lists are mixed."""

    @property
    def shares(self) -> FloatArray:
        """Shares of the interests in the histories; shape (users, interests)."""

    def affinity(self, users: slice, candidates: IntArray) -> FloatArray:
        """Return how much candidates of some of the users belong to each interest; shape (users, m, interests)."""


@dataclass(frozen=True, eq=False)
class VectorAspects:
    """Each of a user's vectors is an interest.

    Parameters
    ----------
    vectors, shares, items
        As for `vector_affinity`.

    Examples
    --------
    >>> ann = np.array([[[0, 0], [1, 1]]], dtype=np.float32)
    >>> interests = VectorAspects(ann, np.array([[0.7, 0.3]]), np.array([[1, 1]], dtype=np.float32))
    >>> interests.affinity(slice(0, 1), np.array([[0]])).round(2).tolist()
    [[[0.0, 1.0]]]
    """

    vectors: FloatArray
    shares: FloatArray
    items: FloatArray

    def affinity(self, users: slice, candidates: IntArray) -> FloatArray:
        """Return `vector_affinity` of some users' candidates."""
        return vector_affinity(self.vectors[users], self.shares[users], self.items, candidates)


@dataclass(frozen=True, eq=False)
class CategoryAspects:
    """Each category is an interest.

    Parameters
    ----------
    attributes
        The items' categories.
    likes
        Ones of shape (users, items).

    Examples
    --------
    >>> genres = Attributes.from_sets([{"War"}, {"War", "Crime"}])
    >>> CategoryAspects(genres, sparse.csr_array(np.ones((1, 2)))).shares.tolist()
    [[0.25, 0.75]]
    """

    attributes: Attributes
    likes: sparse.csr_array

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of the categories in the likes; shape (users, categories)."""
        return category_shares(self.attributes, self.likes)

    def affinity(self, users: slice, candidates: IntArray) -> FloatArray:
        """Return `category_affinity` of some users' candidates."""
        return category_affinity(self.attributes, candidates)


def mixed_lists(
    aspects: Aspects, items: IntArray, scores: FloatArray, n: int, mix: float, reranker: str = "minority"
) -> tuple[IntArray, FloatArray]:
    """Return lists of some of each user's best items, re-ranked in blocks of users of bounded memory.

    Parameters
    ----------
    aspects
        The users' interests.
    items, scores
        CandidateLists, best first, shape (users, m); -1 and minus infinity where they run out.
    n, mix
        Length of the lists, and the weight of small interests from 0 to 1.
    reranker
        A name in `dpcml.retrieval.rerank.RERANKERS`.

    Examples
    --------
    >>> genres = Attributes.from_sets([{"War"}, {"War"}, {"Crime"}, {"War"}, {"War"}, {"Crime"}])
    >>> ann = CategoryAspects(genres, sparse.csr_array(np.array([[1, 1, 1, 0, 0, 0]])))
    >>> mixed_lists(ann, np.array([[3, 4, 5]]), np.array([[0.9, 0.8, 0.7]]), 2, mix=1.0)[0].tolist()
    [[3, 5]]
    """
    shares = aspects.shares
    step = max(1, AFFINITY_BYTES // (8 * max(items.shape[1] * shares.shape[1], 1)))
    lists, values = np.empty((len(items), n), np.int64), np.empty((len(items), n), scores.dtype)
    for first in range(0, len(items), step):
        some = slice(first, first + step)
        candidates = CandidateLists(items[some], scores[some], aspects.affinity(some, items[some]), shares[some])
        lists[some], values[some] = rerank(reranker, candidates, n, mix)
    return lists, values


def vector_affinity(vectors: FloatArray, shares: FloatArray, items: FloatArray, candidates: IntArray) -> FloatArray:
    """Return how much candidates belong to each of a user's vectors: a softmax of minus their squared distances.

    Vectors without a share are no interests: nothing belongs to them, unless no vector has one.

    Parameters
    ----------
    vectors
        Shape (users, C, d).
    shares
        Share of the liked items that each vector owns; shape (users, C).
    items
        Vectors of all items; shape (items, d).
    candidates
        Positions of items, -1 for none; shape (users, m).

    Returns
    -------
    FloatArray
        Shape (users, m, C); rows add up to 1.

    Examples
    --------
    >>> ann = np.array([[[0, 0], [1, 1], [1, 1]]], dtype=np.float32)
    >>> films = np.array([[0, 0.1], [0.5, 0.5]], dtype=np.float32)
    >>> vector_affinity(ann, np.array([[0.7, 0.3, 0]]), films, np.array([[0, 1]])).round(2).tolist()
    [[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]]
    """
    chosen = items[candidates]  # (users, m, d)
    squares = np.einsum("ucd,ucd->uc", vectors, vectors)[:, None]  # the item's own square cancels out
    closeness = (2 * np.einsum("umd,ucd->umc", chosen, vectors, optimize=True) - squares).astype(np.float64) / WIDTH
    counts = (shares > 0) | ~(shares > 0).any(axis=1, keepdims=True)
    closeness = np.where(counts[:, None], closeness, -np.inf)
    weights = np.exp(closeness - closeness.max(axis=2, keepdims=True))
    return np.asarray(weights / weights.sum(axis=2, keepdims=True))


def category_affinity(attributes: Attributes, candidates: IntArray) -> FloatArray:
    """Return the categories of candidates, each with the same weight; shape (users, m, categories).

    Examples
    --------
    >>> genres = Attributes.from_sets([{"War"}, {"War", "Crime"}])
    >>> category_affinity(genres, np.array([[1, 0]])).tolist()
    [[[0.5, 0.5], [0.0, 1.0]]]
    """
    rows = attributes.weights[candidates.ravel()].toarray()
    return np.asarray(rows.reshape(*candidates.shape, -1))


def category_shares(attributes: Attributes, likes: sparse.csr_array) -> FloatArray:
    """Return the shares of the categories in users' likes; shape (users, categories).

    Examples
    --------
    >>> genres = Attributes.from_sets([{"War"}, {"War", "Crime"}])
    >>> category_shares(genres, sparse.csr_array(np.ones((1, 2)))).tolist()
    [[0.25, 0.75]]
    """
    n_users, n_names = likes.shape[0], attributes.matrix.shape[1]
    sizes, columns = attributes.codes(likes.indices)
    users = np.repeat(np.repeat(np.arange(n_users), np.diff(likes.indptr)), sizes)
    parts = np.repeat(1 / np.maximum(sizes, 1), sizes)  # for one user, a product of sparse matrices takes longer
    counts = np.bincount(users * n_names + columns, parts, n_users * n_names).reshape(n_users, n_names)
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.where(total > 0, total, 1))


def minority_scores(attributes: Attributes, likes: sparse.csr_array) -> FloatArray:
    """Return how much each item belongs to its user's smaller categories: `minority_weight` of all items.

    It is 0 for items of the user's largest category, and for items of none of the user's categories.

    Parameters
    ----------
    attributes, likes
        As for `CategoryAspects`.

    Returns
    -------
    FloatArray
        Shape (users, items), from 0 to 1.

    Examples
    --------
    >>> genres = Attributes.from_sets([{"War"}, {"War", "Crime"}, {"Crime"}, {"Musical"}, set()])
    >>> ann = sparse.csr_array(np.array([[1, 1, 0, 0, 0]]))
    >>> minority_scores(genres, ann).round(2)
    array([[0.  , 0.  , 0.56, 0.  , 0.  ]], dtype=float32)
    """
    matrix, n_users = attributes.matrix, likes.shape[0]
    found = np.zeros((n_users, len(attributes)), dtype=np.float32)
    named = np.flatnonzero(np.diff(matrix.indptr))  # items with categories
    step = max(1, AFFINITY_BYTES // (8 * max(matrix.shape[1], 1)))
    for first in range(0, n_users if len(named) else 0, step):
        some = likes if n_users <= step else likes[first : first + step]  # slicing costs as much as one user's scores
        for user, shares in enumerate(category_shares(attributes, some), first):
            own = np.maximum.reduceat(shares[matrix.indices], matrix.indptr[named])  # the largest of an item's shares
            found[user, named] = own / (own + FAMILIAR) * (1 - own / (shares.max() or 1))
    return found
