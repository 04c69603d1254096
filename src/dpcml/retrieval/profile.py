"""A user's items by interest: each liked item is assigned to the nearest of the user's vectors, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dpcml.data.items import ItemTable
from dpcml.retrieval.naming import distinctive_categories, interest_names
from dpcml.utils.arrays import Array, FloatArray, IntArray, repeats_first

if TYPE_CHECKING:
    import polars as pl

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


def interest_frame(interests: Sequence[Interest]) -> pl.DataFrame:
    """Return interests as a polars frame with one row for each.

    Examples
    --------
    >>> one = Interest(1, 0.25, "Horror", np.array([7]), (("Horror", 1.0),), np.zeros(2, np.float32))
    >>> interest_frame([one]).rows()
    [(1, 0.25, 'Horror', [7], ['Horror'])]
    """
    import polars as pl

    return pl.DataFrame(
        {
            "number": pl.Series([one.number for one in interests], dtype=pl.Int32),
            "share": pl.Series([one.share for one in interests], dtype=pl.Float64),
            "name": pl.Series([one.name for one in interests], dtype=pl.String),
            "items": [one.items.tolist() for one in interests],
            "categories": pl.Series(
                [[name for name, _ in one.categories] for one in interests], dtype=pl.List(pl.String)
            ),
        }
    )


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
        groups = self._groups()
        around = list(groups.values())
        distinctive = distinctive_categories(around, table, usual)
        names = interest_names(around, distinctive, table)
        return [
            Interest(
                c,
                float(self.shares[c]),
                names[k],
                table.ids[self._members(c)],
                top_categories(around[k], table),
                self.vectors[c],
                tuple(distinctive[k]),
            )
            for k, c in enumerate(groups)
        ]

    def similarity(self, others: FloatArray) -> FloatArray:
        """Return minus the distance from each vector to the nearest of other users', weighted by share.

        Parameters
        ----------
        others
            Vectors of shape (users, C, d).
        """
        weights = self.shares if self.shares.any() else np.full(len(self.vectors), 1 / len(self.vectors))
        apart = distances(self.vectors, others.reshape(-1, self.vectors.shape[1]))
        nearest = apart.reshape(len(self.vectors), len(others), -1).min(axis=2)  # (C, users)
        return np.asarray(-np.einsum("c,cu->u", weights, nearest))

    def typical_categories(
        self, table: ItemTable, usual: FloatArray | None = None
    ) -> dict[int, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return the categories of each interest by its number: those that distinguish it, and the most frequent.

        Parameters
        ----------
        table, usual
            As for `interests`, which gives the same categories and takes longer.
        """
        if table.attributes is None:
            return dict.fromkeys(range(len(self.used)), ((), ()))
        groups = self._groups()
        distinctive = distinctive_categories(list(groups.values()), table, usual)
        return {
            c: (tuple(own), tuple(name for name, _ in top_categories(items, table)))
            for (c, items), own in zip(groups.items(), distinctive, strict=True)
        }

    def _groups(self) -> dict[int, IntArray]:
        """Return the items that an interest gets its name from, by number, the interest with the largest share first.

        They are its liked items, or the nearest items of the catalogue if it has none.
        """
        order = np.argsort(-self.shares[: len(self.used)], kind="stable").tolist()
        members = {c: self._members(c) for c in order}
        return {c: own if len(own) else _nearest(self.vectors[c], self.items) for c, own in members.items()}

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
    counts, codes = table.attributes.codes(items)
    weights = np.bincount(codes, np.repeat(1 / np.maximum(counts, 1), counts), len(table.attributes.names))
    there = np.flatnonzero(weights).tolist()
    ordered = sorted((-float(weights[code]), str(table.attributes.names[code])) for code in there)
    return tuple((name, -weight / float(weights.sum())) for weight, name in ordered[:CATEGORIES])


def _nearest(vector: FloatArray, items: FloatArray) -> IntArray:
    near = distances(vector[None], items)[0]
    return np.argsort(near, kind="stable")[:AROUND]
