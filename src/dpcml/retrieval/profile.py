"""A user's items by interest: each liked item is assigned to the nearest of the user's vectors, once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcml.data.items import ItemTable
from dpcml.retrieval.naming import distinctive_categories, interest_names
from dpcml.utils.arrays import Array, FloatArray, IntArray, repeats_first

CATEGORIES = 5  # kept of an interest
AROUND = 10  # nearest items that name an interest without liked items


@dataclass(frozen=True, eq=False)
class Interest:
    """One of a user's vectors, with the liked items that are nearer to it than to the user's other vectors.

    Parameters
    ----------
    number
        Index of the vector among the user's vectors.
    share
        Share of the user's liked items.
    name
        The category that distinguishes it from what everybody likes and from the user's other interests, or two; its
        most typical items if there is none. No two interests of a user have the same name.
    items
        External ids of its liked items, nearest first.
    categories
        Categories and their shares of the items, most frequent first; empty if they are unknown.
    vector
        Shape (d,).
    distinctive
        The categories that distinguish it, the strongest first; see `dpcml.retrieval.naming`.

    Examples
    --------
    >>> Interest(1, 0.25, "Horror", np.array([7]), (("Horror", 1.0),), np.zeros(2, np.float32)).to_dict()
    {'number': 1, 'share': 0.25, 'name': 'Horror', 'items': [7], 'categories': [['Horror', 1.0]]}
    """

    number: int
    share: float
    name: str
    items: Array
    categories: tuple[tuple[str, float], ...]
    vector: FloatArray
    distinctive: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON, without the vector."""
        return {
            "number": self.number,
            "share": self.share,
            "name": self.name,
            "items": self.items.tolist(),
            "categories": [list(pair) for pair in self.categories],
        }


@dataclass(frozen=True, eq=False)
class UserProfile:
    """A user's vectors and liked items; mixed lists, interests and reasons all read it.

    Parameters
    ----------
    vectors
        The user's vectors, shape (C, d); the last ones that repeat the first are not used.
    items
        Vectors of all items, shape (items, d).
    liked
        Positions of the user's items.

    Examples
    --------
    >>> films = np.array([[0, 1], [4, 4], [0, 2]], dtype=np.float32)
    >>> ann = UserProfile(np.array([[0, 0], [4, 4]], dtype=np.float32), films, np.arange(3))
    >>> ann.owner.tolist(), ann.shares.round(2).tolist()
    ([0, 1, 0], [0.67, 0.33])
    """

    vectors: FloatArray
    items: FloatArray
    liked: IntArray

    @cached_property
    def used(self) -> FloatArray:
        """The vectors that are used; shape (used, d)."""
        return np.asarray(self.vectors[~repeats_first(self.vectors[None])[0]])

    @cached_property
    def distances(self) -> FloatArray:
        """Squared distances of the used vectors to the liked items; shape (used, liked)."""
        return distances(self.used, self.items[self.liked])

    @cached_property
    def owner(self) -> IntArray:
        """The nearest vector of each liked item; shape (liked,)."""
        return np.asarray(self.distances.argmin(axis=0))

    @cached_property
    def shares(self) -> FloatArray:
        """Share of the liked items that each vector owns, 0 for vectors that are not used; shape (C,)."""
        counts = np.bincount(self.owner, minlength=len(self.vectors))
        return np.asarray(counts / max(len(self.liked), 1))

    def interests(self, table: ItemTable, usual: FloatArray | None = None) -> list[Interest]:
        """Return the user's interests, one for each used vector, largest share first.

        Parameters
        ----------
        table
            Ids, titles and attributes of all items.
        usual
            Usual share of each category, from `dpcml.retrieval.naming.usual_shares`; None takes that of the catalogue.

        Examples
        --------
        >>> films = np.array([[0, 1], [4, 4], [0, 2]], dtype=np.float32)
        >>> ann = UserProfile(np.array([[0, 0], [4, 4]], dtype=np.float32), films, np.arange(3))
        >>> titles = np.array(["Emma", "Alien", "Persuasion"], dtype=object)
        >>> [(one.name, one.items.tolist()) for one in ann.interests(ItemTable([5, 6, 7], titles))]
        [('Emma and Persuasion', [5, 7]), ('Alien', [6])]
        """
        order = np.argsort(-self.shares[: len(self.used)], kind="stable").tolist()
        members = [self._members(c) for c in order]
        # An interest without liked items gets its name from the nearest items of the catalogue.
        around = [
            own if len(own) else _nearest(self.vectors[c], self.items) for c, own in zip(order, members, strict=True)
        ]
        distinctive = distinctive_categories(around, table, usual)
        names = interest_names(around, distinctive, table)
        return [
            Interest(
                c,
                float(self.shares[c]),
                names[k],
                table.ids[members[k]],
                top_categories(around[k], table),
                self.vectors[c],
                tuple(distinctive[k]),
            )
            for k, c in enumerate(order)
        ]

    def _members(self, c: int) -> IntArray:
        """Return the liked items of a vector, nearest first."""
        own = self.owner == c
        return np.asarray(self.liked[own][np.argsort(self.distances[c, own], kind="stable")])


def distances(vectors: FloatArray, items: FloatArray) -> FloatArray:
    """Return the squared distances of some vectors to some items; shape (vectors, items).

    Examples
    --------
    >>> distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[25.,  1.]])
    """
    squares = (vectors**2).sum(axis=1)[:, None] + (items**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * vectors @ items.T, 0))


def top_categories(items: IntArray, table: ItemTable) -> tuple[tuple[str, float], ...]:
    """Return the most frequent categories of some items with their shares; an item's categories share its weight.

    Examples
    --------
    >>> from dpcml.data.items import Attributes
    >>> films = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"War"}, {"War", "Crime"}, set()]))
    >>> top_categories(np.arange(3), films)
    (('War', 0.75), ('Crime', 0.25))
    """
    if table.attributes is None:
        return ()
    weights: Counter[str] = Counter()
    for item in items.tolist():
        names = table.attributes.of(item)
        for name in names:
            weights[name] += 1 / len(names)  # type: ignore[assignment]
    whole = sum(weights.values())
    ordered = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple((name, weight / whole) for name, weight in ordered[:CATEGORIES])


def _nearest(vector: FloatArray, items: FloatArray) -> IntArray:
    near = distances(vector[None], items)[0]
    return np.argsort(near, kind="stable")[:AROUND]
