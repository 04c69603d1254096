"""Metrics of recommended lists: diversity within a list, coverage of the catalogue, novelty.

Lists are arrays of item positions, best first, of shape (users, n), padded with -1.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes
from dpcml.kernels.item_item import count_together
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.threads import over_rows

USERS_AT_ONCE = 4096  # bounds the memory of vectors gathered for lists


def max_div(lists: IntArray, vectors: FloatArray) -> FloatArray:
    """Return the summed squared distances over ordered pairs of each list's items, in the model's own space.

    It grows with the scale of the vectors, so figures of different models are hard to compare.

    Examples
    --------
    >>> max_div(np.array([[0, 1]]), np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([50.])
    """
    total = np.zeros(len(lists))
    for first in range(0, len(lists), USERS_AT_ONCE):
        some = lists[first : first + USERS_AT_ONCE]
        there = some >= 0
        chosen = np.where(there[..., None], vectors[some], 0).astype(np.float64)  # (users, n, d)
        squares, mean = (chosen**2).sum(axis=(1, 2)), chosen.sum(axis=1)
        total[first : first + len(some)] = 2 * (there.sum(axis=1) * squares - (mean**2).sum(axis=1))
    return total


def attribute_dissimilarity(lists: IntArray, attributes: Attributes) -> FloatArray:
    """Return one minus the Jaccard similarity of attribute sets, averaged over the pairs of each list.

    An item without attributes has similarity 0 with every other.

    Returns
    -------
    FloatArray
        Shape (users, n): column j is the mean over the first j + 1 items; NaN where these have no pair.

    Examples
    --------
    >>> genres = Attributes.from_sets([{"a"}, {"a", "b"}, {"c"}])
    >>> attribute_dissimilarity(np.array([[0, 1, 2]]), genres).round(3)
    array([[ nan, 0.5 , 0.833]])
    """
    first, second, place = _pairs(lists)
    shared = _shared(attributes.matrix, first, second)
    sizes = np.diff(attributes.matrix.indptr)
    union = np.maximum(sizes[first] + sizes[second] - shared, 1)
    return _mean_by_length(lists, 1 - shared / union, place)


def cooccurrence_dissimilarity(lists: IntArray, train: Interactions) -> FloatArray:
    """Return one minus the cosine of the items' user sets, averaged over the pairs of each list.

    Needs neither attributes nor vectors. The result has the shape that `attribute_dissimilarity` returns.

    Examples
    --------
    >>> likes = Interactions.from_csr(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
    >>> cooccurrence_dissimilarity(np.array([[0, 1, 2]]), likes).round(3)
    array([[ nan, 0.   , 0.667]])
    """
    first, second, place = _pairs(lists)
    shared = _shared(train.csr.T.tocsr(), first, second)
    counts = train.per_item
    return _mean_by_length(lists, 1 - shared / np.sqrt(np.maximum(counts[first] * counts[second], 1)), place)


def coverage(lists: IntArray, n_items: int) -> float:
    """Return the share of all items that are in at least one list.

    Examples
    --------
    >>> coverage(np.array([[0, 1], [1, -1]]), n_items=4)
    0.5
    """
    return len(np.unique(lists[lists >= 0])) / n_items


def gini(lists: IntArray, n_items: int) -> float:
    """Return the Gini index of how often items are recommended: 0 if all equally often, near 1 if only few are.

    Examples
    --------
    >>> gini(np.array([[0], [1]]), n_items=2), gini(np.array([[0], [0]]), n_items=2)
    (0.0, 0.5)
    """
    exposure = np.sort(np.bincount(lists[lists >= 0], minlength=n_items))
    if not exposure.any():
        return float("nan")
    place = np.arange(1, n_items + 1)
    return float(((2 * place - n_items - 1) * exposure).sum() / (n_items * exposure.sum()))


def novelty(lists: IntArray, train: Interactions) -> FloatArray:
    """Return the mean of ``-log2(share of users who like the item)`` over each list, in bits.

    An item without training positives counts as having one.

    Examples
    --------
    >>> likes = Interactions.from_csr(np.array([[1, 1], [1, 0]]))
    >>> novelty(np.array([[0, 1], [0, -1]]), likes)
    array([0.5, 0. ])
    """
    surprise = np.log2(train.n_users) - np.log2(np.maximum(train.per_item, 1))
    there = lists >= 0
    total = np.where(there, surprise[lists], 0).sum(axis=1)
    mean: FloatArray = np.divide(total, there.sum(axis=1), out=np.full(len(lists), np.nan), where=there.any(axis=1))
    return mean


def _pairs(lists: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct pairs of items within lists, and for each list the positions of its pairs among them.

    The pairs of a list's first k items are the first k (k - 1) / 2 columns of ``place``; padding gives -1.
    """
    later, earlier = np.tril_indices(lists.shape[1], -1)  # ordered by the later item's place
    a, b = lists[:, earlier], lists[:, later]
    n = int(lists.max(initial=0)) + 1
    keys = np.where(b >= 0, np.minimum(a, b) * n + np.maximum(a, b), -1)
    distinct, place = np.unique(keys, return_inverse=True)
    missing = int(len(distinct) > 0 and distinct[0] < 0)
    first, second = np.divmod(distinct[missing:], n)
    return first, second, place.reshape(keys.shape) - missing


def _shared(sets: sparse.csr_array, first: IntArray, second: IntArray) -> IntArray:
    """Return how many members the sets (rows of a CSR) of each pair have in common."""
    sets.sort_indices()
    shared = np.zeros(len(first), dtype=np.int64)
    indptr, indices = sets.indptr, sets.indices
    over_rows(lambda start, stop: count_together(indptr, indices, first, second, shared, start, stop), len(first))
    return shared


def _mean_by_length(lists: IntArray, values: FloatArray, place: IntArray) -> FloatArray:
    """Return the mean over the pairs of the first k items for every k; shape (users, n)."""
    there = place >= 0
    sums = np.where(there, np.append(values, 0)[place], 0).cumsum(axis=1)
    counts = there.cumsum(axis=1)
    lengths = np.arange(lists.shape[1] + 1)
    last = (lengths * (lengths - 1) // 2)[2:] - 1  # column of the last pair of the first k items, k >= 2
    mean = np.full(lists.shape, np.nan)
    mean[:, 1:] = np.divide(sums[:, last], counts[:, last], out=mean[:, 1:].copy(), where=counts[:, last] > 0)
    return mean
