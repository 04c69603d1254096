"""Groups of held-out items: by category, and those outside a user's majority category."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes
from dpcml.evaluation import metrics
from dpcml.evaluation.ranks import Ranks
from dpcml.utils.arrays import BoolArray, IntArray
from dpcml.utils.errors import DataError


def majority_category(train: Interactions) -> IntArray:
    """Return each user's most frequent category in training, -1 for users without any.

    An item with c categories adds 1/c to each of them. Of equally frequent categories the first by name is taken.

    Examples
    --------
    >>> from dpcml.data.items import ItemTable
    >>> films = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"War"}, {"War"}, {"Crime"}]))
    >>> likes = Interactions.from_csr(np.array([[1, 1, 1], [0, 0, 1]]), items=films)
    >>> majority_category(likes).tolist()
    [1, 0]
    """
    matrix = attributes_of(train).matrix
    sizes = np.maximum(np.diff(matrix.indptr), 1)
    shares = sparse.diags_array(1 / sizes) @ matrix.astype(np.float64)
    weight = (train.csr @ shares).tocsr()  # (users, categories)
    if not weight.shape[1]:
        return np.full(train.n_users, -1)
    return np.where(np.diff(weight.indptr) > 0, np.asarray(weight.argmax(axis=1)).ravel(), -1)


def outside_majority(ranks: Ranks, train: Interactions) -> BoolArray:
    """Return which held-out items have categories, none of which is their user's majority category.

    Recall over these items is the metric ``minority_R``.

    Examples
    --------
    >>> from dpcml.data.items import ItemTable
    >>> films = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"War"}, {"War", "Crime"}, {"Crime"}]))
    >>> likes = Interactions.from_csr(np.array([[1, 0, 0]]), items=films)
    >>> outside_majority(Ranks.from_places([[1, 2]]), likes)  # items 1 and 2 at places 1 and 2
    array([False,  True])
    """
    matrix = attributes_of(train).matrix
    majority = majority_category(train)[ranks.users[ranks.owner]]
    n_names = max(matrix.shape[1], 1)
    known = np.sort(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * n_names + matrix.indices)
    wanted = ranks.items.astype(np.int64) * n_names + majority
    inside = np.append(known, -1)[np.searchsorted(known, wanted)] == wanted
    has_categories = np.diff(matrix.indptr)[ranks.items] > 0
    outside: BoolArray = has_categories & (majority >= 0) & ~inside
    return outside


def category_map(ranks: Ranks, train: Interactions, most: int = 30) -> dict[str, float]:
    """Return MAP of the held-out items of one category, for the ``most`` categories with the most held-out items.

    Examples
    --------
    >>> from dpcml.data.items import ItemTable
    >>> films = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"War"}, {"War"}, {"Crime"}]))
    >>> likes = Interactions.from_csr(np.array([[1, 0, 0]]), items=films)
    >>> category_map(Ranks.from_places([[1, 2]]), likes)
    {'Crime': 0.333..., 'War': 0.5}
    """
    attributes = attributes_of(train)
    held = attributes.matrix[ranks.items].tocsc()  # (held-out items, categories)
    counts = np.diff(held.indptr)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most])
    found = {}
    for category in chosen[counts[chosen] > 0]:
        relevant = np.zeros(len(ranks.items), dtype=bool)
        relevant[held.indices[held.indptr[category] : held.indptr[category + 1]]] = True
        found[str(attributes.names[category])] = float(np.nanmean(metrics.average_precision(ranks.only(relevant))))
    return found


def attributes_of(data: Interactions) -> Attributes:
    """Return the items' attributes, or raise an error that says how to get them."""
    if data.items.attributes is None:
        raise DataError("these items have no attributes: read the data with items=... to know their categories")
    return data.items.attributes
