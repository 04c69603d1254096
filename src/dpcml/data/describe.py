"""What is in a data set: counts, density, spread over users, and the preference diversity of users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.errors import DataError

BINS = 20  # bars of the preference diversity histogram
LISTED = 100  # categories that `Description.to_dict` lists
BLOCK = 20_000_000  # pairs of a user block that may be in memory at once


@dataclass(frozen=True)
class Spread:
    """How a count spreads over users."""

    min: int
    median: float
    mean: float
    max: int


@dataclass(frozen=True)
class Histogram:
    """Shares between 0 and 1, counted in bins of equal width."""

    mean: float
    users: int  # users with a value; those with a single positive have none
    edges: tuple[float, ...]  # (bins + 1,)
    counts: tuple[int, ...]  # (bins,)


@dataclass(frozen=True)
class Category:
    """One attribute: a genre, a tag."""

    name: str
    items: int  # items that have it
    positives: int  # positives on those items


@dataclass(frozen=True)
class Description:
    """The figures of a data set; build one with `describe`."""

    users: int
    items: int  # distinct items with at least one positive
    item_id_space: int  # largest integer item id plus one, as the paper counts items
    positives: int
    density_percent: float  # of users x item id space
    density_percent_distinct: float  # of users x distinct items
    catalogue_items: int | None  # items in the source's catalogue, liked or not, where it has one
    positives_per_user: Spread
    preparation: tuple[str, ...]  # what was done to the rows before they became positives
    content_hash: str
    preference_diversity: Histogram | None = None  # None where items have no attributes
    categories: tuple[Category, ...] | None = None  # most positives first

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain types for JSON, with the most frequent categories and their number.

        Examples
        --------
        >>> figures = describe(Interactions.from_csr([[1, 0, 1], [0, 0, 1]])).to_dict()
        >>> figures["users"], figures["items"], figures["item_id_space"], figures["density_percent"]
        (2, 2, 3, 50.0)
        """
        figures = asdict(self)
        figures["category_count"] = None if self.categories is None else len(self.categories)
        figures["categories"] = None if self.categories is None else list(figures["categories"][:LISTED])
        return figures


def describe(data: Interactions) -> Description:
    """Count what is in a data set.

    Parameters
    ----------
    data
        Any interactions; preference diversity and categories need items with attributes.

    Examples
    --------
    >>> from dpcml.data.items import Attributes, ItemTable
    >>> genres = Attributes.from_sets([{"Horror"}, {"Comedy"}, {"Comedy", "Horror"}])
    >>> films = ItemTable(np.arange(3), attributes=genres)
    >>> shown = describe(Interactions.from_csr([[1, 1, 1], [1, 1, 0]], items=films))
    >>> shown.users, shown.items, shown.positives, round(shown.preference_diversity.mean, 3)
    (2, 3, 5, 0.667)
    >>> shown.categories[0]
    Category(name='Comedy', items=2, positives=3)
    """
    if not data.n_users or not data.n_items:
        raise DataError(f"{data!r}: nothing to describe; at least one user and one item are needed")
    per_user = data.per_user
    items = int((data.per_item > 0).sum())
    known = data.items.attributes is not None
    return Description(
        users=data.n_users,
        items=items,
        item_id_space=data.item_id_space,
        positives=data.n_positives,
        density_percent=100 * data.n_positives / (data.n_users * data.item_id_space),
        density_percent_distinct=100 * data.n_positives / (data.n_users * max(items, 1)),
        catalogue_items=data.catalogue_size,
        positives_per_user=Spread(
            min=int(per_user.min()),
            median=float(np.median(per_user)),
            mean=float(per_user.mean()),
            max=int(per_user.max()),
        ),
        preparation=tuple(data.preparation.lines()),
        content_hash=data.content_hash,
        preference_diversity=_histogram(preference_diversity(data)) if known else None,
        categories=categories(data) if known else None,
    )


def categories(data: Interactions) -> tuple[Category, ...]:
    """Count liked items and positives of each attribute that has any, most positives first.

    Examples
    --------
    >>> from dpcml.data.items import Attributes, ItemTable
    >>> films = ItemTable(np.arange(2), attributes=Attributes.from_sets([{"Drama"}, {"Drama", "War"}]))
    >>> [category.name for category in categories(Interactions.from_csr([[1, 1], [1, 0]], items=films))]
    ['Drama', 'War']
    """
    names, has = _attributes(data)
    per_item = data.per_item
    items = np.bincount(has.indices, weights=np.repeat(per_item > 0, np.diff(has.indptr)), minlength=len(names))
    positives = np.bincount(has.indices, weights=np.repeat(per_item, np.diff(has.indptr)), minlength=len(names))
    order = np.lexsort((np.arange(len(names)), -items, -positives))
    return tuple(Category(str(names[at]), int(items[at]), int(positives[at])) for at in order if items[at])


def preference_diversity(data: Interactions) -> FloatArray:
    """Return Div(u) of each user: the share of ordered pairs of the user's items without a common attribute.

    Items without attributes have nothing in common with any other. A user with fewer than two items has no
    pairs, and NaN as value.

    Parameters
    ----------
    data
        Interactions on items with attributes.

    Examples
    --------
    >>> from dpcml.data.items import Attributes, ItemTable
    >>> genres = Attributes.from_sets([{"Horror"}, {"Comedy"}, {"Comedy", "Horror"}])
    >>> films = ItemTable(np.arange(3), attributes=genres)
    >>> data = Interactions.from_csr([[1, 1, 1], [1, 1, 0], [1, 0, 0]], items=films)
    >>> preference_diversity(data).round(3).tolist()
    [0.333, 1.0, nan]
    """
    kinds, patterns = _patterns(_attributes(data)[1])
    # Many items share one set of attributes: work on each user's distinct sets, with how often each occurs.
    ones = np.ones(data.n_positives)
    sets = sparse.csr_array((ones, kinds[data.indices], data.indptr.copy()), shape=(data.n_users, patterns.shape[0]))
    sets.sum_duplicates()
    meeting = np.zeros(data.n_users)
    for first, last in _blocks(np.diff(sets.indptr)):
        meeting[first:last] = _meeting(sets[first:last], patterns)
    filled = (np.diff(patterns.indptr) > 0).astype(float)
    meeting -= sets @ filled  # an item meets itself, which is no pair
    pairs = data.per_user * (data.per_user - 1.0)
    shares = np.full(data.n_users, np.nan)
    np.divide(meeting, pairs, out=shares, where=pairs > 0)
    return 1.0 - shares


def _meeting(sets: sparse.csr_array, patterns: sparse.csr_array) -> FloatArray:
    """Count the ordered pairs of each user's items that share an attribute, an item with itself included."""
    rows = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))  # (entries,)
    held = patterns[sets.indices]  # (entries, attributes)
    # A column per user and attribute makes the product below block-diagonal: sets of two users never meet.
    columns = np.repeat(rows, np.diff(held.indptr)).astype(np.int64) * patterns.shape[1] + held.indices
    distinct, columns = np.unique(columns, return_inverse=True)
    own = sparse.csr_array(
        (np.ones(len(columns), dtype=np.float32), columns, held.indptr), shape=(len(rows), len(distinct))
    )
    shared = own @ own.T  # (entries, entries): attributes in common
    shared.data[:] = 1
    together = sets.data * (shared @ sets.data)
    return np.bincount(rows, weights=together, minlength=sets.shape[0]).astype(np.float64)


def _patterns(has: sparse.csr_array) -> tuple[IntArray, sparse.csr_array]:
    """Return for each item the number of its attribute set, and the distinct sets as rows."""
    numbers: dict[bytes, int] = {}
    kinds = np.zeros(has.shape[0], dtype=np.int64)
    first: list[int] = []
    for item in range(has.shape[0]):
        key = has.indices[has.indptr[item] : has.indptr[item + 1]].tobytes()
        if key not in numbers:
            numbers[key] = len(first)
            first.append(item)
        kinds[item] = numbers[key]
    return kinds, has[np.array(first, dtype=np.int64)]


def _blocks(per_user: IntArray) -> Iterator[tuple[int, int]]:
    """Cut the users into runs whose pairs fit into memory."""
    cost = np.cumsum(per_user.astype(np.int64) ** 2)
    first = 0
    while first < len(cost):
        spent = cost[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(cost, spent + BLOCK, side="right")))
        yield first, last
        first = last


def _attributes(data: Interactions) -> tuple[Array, sparse.csr_array]:
    if data.items.attributes is None:
        raise DataError("the items have no attributes: pass a catalogue with genres or tags (items=..., --items)")
    has = data.items.attributes.matrix.tocsr().copy()
    has.sort_indices()
    return data.items.attributes.names, has


def _histogram(values: FloatArray) -> Histogram | None:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    edges = np.arange(BINS + 1) / BINS
    counts, _ = np.histogram(known.round(12), bins=edges)  # rounded: 1 - 0.85 belongs where 0.15 does
    return Histogram(float(known.mean()), len(known), tuple(edges.tolist()), tuple(counts.tolist()))
