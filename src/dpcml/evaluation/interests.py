"""Interest agreement: whether the vectors of a user separate the categories of the user's items.

Each item of a user belongs to the nearest of the user's vectors. The agreement of these groups with the categories of
the items is their adjusted mutual information (AMI): 1 where the groups are the categories, 0 on average where items
are assigned at random. An item's category is its first one by name; items without a category do not count.

A user counts where the categories are a real partition of the items: at least two categories, and one of them with at
least two items. For other users AMI is fixed by convention, whatever the vectors are. A user whose items all belong to
one vector counts, with an agreement of 0: one vector for several categories is what the metric is to find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes
from dpcml.evaluation.groups import attributes_of
from dpcml.kernels import agreement as kernel
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.packages import gammaln
from dpcml.utils.threads import over_rows

NearestInterest = Callable[[Array, Array], IntArray]  # external ids of users and items to the index of a vector


def nearest_interest_of(model: Any) -> NearestInterest | None:
    """Return the method ``nearest_interest`` of a model with several vectors per user, None for other models.

    Examples
    --------
    >>> from dpcml import CML, EASE
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> cml = CML(dim=4, epochs=1, n_candidates=3).fit(likes)
    >>> nearest_interest_of(EASE().fit(likes)), nearest_interest_of(cml)  # CML has one vector per user
    (None, None)
    """
    vectors = getattr(model, "user_vectors_", None)
    if vectors is not None and vectors.ndim == 3 and vectors.shape[1] == 1:
        return None
    found: NearestInterest | None = getattr(model, "nearest_interest", None)
    return found


def first_category(attributes: Attributes) -> IntArray:
    """Return the first category of each item by name, -1 for items without any.

    Examples
    --------
    >>> films = Attributes.from_sets([{"War"}, {"War", "Crime"}, set()])
    >>> first_category(films).tolist()
    [1, 0, -1]
    """
    matrix = attributes.matrix
    found = np.full(matrix.shape[0], -1)
    some = np.diff(matrix.indptr) > 0
    if some.any():
        found[some] = np.minimum.reduceat(matrix.indices, matrix.indptr[:-1][some])
    return found


def interest_agreement(
    nearest: NearestInterest, data: Interactions, users: IntArray, owner: IntArray, items: IntArray
) -> FloatArray:
    """Return the interest agreement of each user on some of their items, NaN for users who do not count.

    Parameters
    ----------
    nearest
        The model's ``nearest_interest``.
    data
        Ids and categories of users and items.
    users
        Rows of the users; shape (users,).
    owner, items
        Position in ``users`` and column of each item; shape (items,).

    Examples
    --------
    >>> from dpcml.data.items import ItemTable
    >>> films = ItemTable(np.arange(4), attributes=Attributes.from_sets([{"War"}, {"War"}, {"Crime"}, {"Crime"}]))
    >>> likes = Interactions.from_csr(np.array([[1, 1, 1, 1], [1, 0, 1, 0]]), items=films)
    >>> by_category = lambda users, items: items // 2
    >>> interest_agreement(by_category, likes, np.arange(2), likes.rows, likes.indices)
    array([ 1., nan])
    """
    category = first_category(attributes_of(data))[items]
    counted = _partitioned(owner, category, len(users))
    kept = (category >= 0) & counted[owner]
    owner, items, category = owner[kept], items[kept], category[kept]
    vector = np.asarray(nearest(data.user_ids[users[owner]], data.item_ids[items]))
    if vector.shape != owner.shape or vector.dtype.kind not in "iu" or vector.min(initial=0) < 0:
        raise DataError(
            f"nearest_interest gave shape {vector.shape} of {vector.dtype} for {len(owner)} pairs: it must give the"
            " index of a vector for each, 0 or more"
        )
    return np.where(counted, adjusted_mutual_information(owner, category, vector.astype(np.int64), len(users)), np.nan)


def _partitioned(owner: IntArray, category: IntArray, n: int) -> BoolArray:
    """Return which users have at least two categories, one of them with at least two items."""
    known = category >= 0
    n_items = np.bincount(owner[known], minlength=n)
    width = int(category.max(initial=0)) + 1
    n_categories = np.bincount(np.unique(owner[known] * width + category[known]) // width, minlength=n)
    partitioned: BoolArray = (n_categories > 1) & (n_categories < n_items)
    return partitioned


def adjusted_mutual_information(owner: IntArray, first: IntArray, second: IntArray, n: int) -> FloatArray:
    """Return the adjusted mutual information of two labelings of the items of each of n owners.

    It is (MI - E) / (H - E) with the mutual information MI, its expectation E over all permutations of the labels, and
    the mean H of the two entropies (Vinh et al. 2010). It is 1 where both labelings are constant or both give every
    item a label of its own, and 0 where only one is constant.

    Parameters
    ----------
    owner
        Owner of each item, from 0 to n - 1, in any order.
    first, second
        The two labels of each item, integers of at least 0.
    n
        Number of owners; those without items have 1.

    Examples
    --------
    >>> owner = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> adjusted_mutual_information(owner, np.array([0, 0, 1, 1] * 2), np.array([1, 1, 0, 0, 0, 1, 0, 1]), 2)
    array([ 1. , -0.5])
    """
    order = np.argsort(owner, kind="stable")
    first, second = first[order], second[order]
    sizes = np.bincount(owner, minlength=n)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    factorial = gammaln(np.arange(sizes.max(initial=0) + 1) + 1.0)  # logarithms
    n_first, n_second = int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1
    found = np.empty(n)
    over_rows(
        lambda a, b: kernel.adjusted_mutual_information(
            indptr, first, second, n_first, n_second, factorial, found, a, b
        ),
        n,
    )
    return found
