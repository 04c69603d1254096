"""A user's liked items by interest, and what the interests are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count as count_from
from typing import TYPE_CHECKING

import numpy as np

from dpcml.data.items import Attributes, ItemTable
from dpcml.utils.arrays import Array, FloatArray, IntArray, repeats_first

if TYPE_CHECKING:
    import polars as pl

PRIOR = 2.0  # items with the usual categories that are added to each interest: a single item proves little
LEAST = 2  # items of an interest that must have a category, for the category to be in its name
TYPICAL = 0.3  # and this share of its items, of the nearer ones and of all
USUAL_LIFT = 1.1  # lift over all likes that a category needs at least: what everybody likes is no name
LIFT = 1.5  # product of the lifts over all likes and over the other interests that it needs
CORE = 10  # an interest gets its name from the nearer half of its items, and from all if they are this few
RARE = 0.005  # share below which a category counts as that frequent: one rare item is not a large lift
LEADING = 0.6  # a second category is part of the name if it distinguishes the interest this much as the first does
TITLES = 2  # typical items in a name without categories
AROUND = 10  # items of an interest among which different titles are sought, or that name one without liked items
CATEGORIES = 5  # kept of an interest


def usual_shares(table: ItemTable, likes: IntArray | None = None) -> FloatArray:
    """Return how usual each category is: the share of all likes that goes to items with it; shape (categories,).

    Parameters
    ----------
    table
        Ids, titles and attributes of all items.
    likes
        Number of likes of each item; None counts each item once.

    Examples
    --------
    >>> from dpcml.data.items import Attributes
    >>> films = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"War"}, {"War", "Crime"}, {"Crime"}]))
    >>> usual_shares(films, np.array([6, 2, 2])).tolist()  # Crime, War
    [0.4, 0.8]
    """
    if table.attributes is None:
        return np.zeros(0)
    weights = np.ones(len(table)) if likes is None else np.asarray(likes, dtype=np.float64)
    return np.asarray(table.attributes.matrix.T @ weights / max(weights.sum(), 1.0))


def distinctive_categories(
    groups: Sequence[IntArray], table: ItemTable, usual: FloatArray | None = None
) -> list[dict[str, float]]:
    """Return for each group of items the categories that distinguish it with their strengths, the strongest first.

    A category distinguishes a group if several of its most typical items have it, and more of them than among all
    likes. Its strength is its share of them times the logarithms of its lifts over all likes and over the other groups.
    It distinguishes one group only, so that names have nothing in common: each group first gets one category, the
    strongest pair of group and category first; the others then go where they are strongest.

    Parameters
    ----------
    groups
        Positions of the items of each interest of one user, the most typical first.
    table
        Ids, titles and attributes of all items.
    usual
        What `usual_shares` returns; None takes that of the catalogue.

    Examples
    --------
    >>> from dpcml.data.items import Attributes
    >>> kinds = [{"Drama", "War"}] * 3 + [{"Drama", "Crime"}] * 3 + [{"Drama"}] * 4
    >>> films = ItemTable(np.arange(10), attributes=Attributes.from_sets(kinds))
    >>> [list(found) for found in distinctive_categories([np.arange(3), np.arange(3, 6), np.arange(6, 10)], films)]
    [['War'], ['Crime'], []]

    Both groups below are full of war films; it is the second one's only category.

    >>> kinds = [{"Crime", "War"}] * 4 + [{"War"}] * 4 + [{"Drama"}] * 8
    >>> films = ItemTable(np.arange(16), attributes=Attributes.from_sets(kinds))
    >>> [list(found) for found in distinctive_categories([np.arange(4), np.arange(4, 8), np.arange(8, 16)], films)]
    [['Crime'], ['War'], ['Drama']]
    """
    attributes = table.attributes
    if attributes is None or not len(attributes.names) or not groups:
        return [{} for _ in groups]
    usual = np.maximum(usual_shares(table) if usual is None else usual, RARE)
    frequent = _counts(groups, attributes) >= TYPICAL * np.array([[len(group)] for group in groups])
    groups = [group[: max(CORE, len(group) // 2)] for group in groups]
    counts = _counts(groups, attributes)  # (groups, categories)
    sizes = np.array([[len(group)] for group in groups])
    share = (counts + PRIOR * usual) / (sizes + PRIOR)
    others = (counts.sum(axis=0) - counts + PRIOR * usual) / (sizes.sum() - sizes + PRIOR)
    lifts = share / usual * (share / others)
    strength = np.round(share * np.log(lifts), 9)  # equal ones keep the order of the alphabet
    kept = frequent & (counts >= LEAST) & (counts >= TYPICAL * sizes) & (share >= USUAL_LIFT * usual) & (lifts >= LIFT)
    return [
        {str(attributes.names[k]): float(strength[group, k]) for k in own}
        for group, own in enumerate(_shared_out(np.where(kept, strength, -np.inf)))
    ]


def _shared_out(strength: FloatArray) -> list[list[int]]:
    """Return the categories that each group gets, the strongest first; minus infinity where it cannot have one."""
    order = np.argsort(-strength, axis=None, kind="stable")[: np.count_nonzero(np.isfinite(strength))]
    pairs = [divmod(pair, strength.shape[1]) for pair in order.tolist()]
    found: list[list[int]] = [[] for _ in strength]
    taken = set[int]()
    for most in (1, strength.shape[1]):
        for group, k in pairs:
            if k not in taken and len(found[group]) < most:
                found[group].append(k)
                taken.add(k)
    return found


def interest_names(
    groups: Sequence[IntArray], distinctive: Sequence[Mapping[str, float]], table: ItemTable
) -> list[str]:
    """Return a name for each interest of a user, no two alike.

    A name is the category that distinguishes the interest, or two that do so nearly alike; the titles of its most
    typical items if there is no such category.

    Parameters
    ----------
    groups
        Positions of the items of each interest, the most typical first.
    distinctive
        What `distinctive_categories` returns.
    table
        Ids, titles and attributes of all items.

    Examples
    --------
    >>> films = ItemTable(np.arange(4), np.array(["Alien", "Emma", "Emma", "Persuasion"], dtype=object))
    >>> interest_names([np.array([0]), np.array([1, 3]), np.array([2, 3])], [{"Horror": 1.0}, {}, {}], films)
    ['Horror', 'Emma and Persuasion', 'Emma and Persuasion (2)']
    """
    found = list[str]()
    for group, categories in zip(groups, distinctive, strict=True):
        name = _name(group, categories, table)
        names = (name if number == 1 else f"{name} ({number})" for number in count_from(1))
        found.append(next(one for one in names if one not in found))
    return found


def _name(group: IntArray, categories: Mapping[str, float], table: ItemTable) -> str:
    if categories:
        strengths = list(categories.values())
        leading = sum(strength >= LEADING * strengths[0] for strength in strengths[:2])
        return " / ".join(list(categories)[:leading])
    titles = list(dict.fromkeys(table.title(item) for item in group[:AROUND].tolist()))
    return " and ".join(titles[:TITLES])


def _counts(groups: Sequence[IntArray], attributes: Attributes) -> IntArray:
    """Return how many items of each group have each attribute; shape (groups, attributes)."""
    per_item, codes = attributes.codes(np.concatenate(groups))
    group = np.repeat(np.repeat(np.arange(len(groups)), [len(one) for one in groups]), per_item)
    n_names = len(attributes.names)
    return np.bincount(group * n_names + codes, minlength=len(groups) * n_names).reshape(len(groups), n_names)


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
        most typical items if there is none. No two interests of a user have a category of their names in common.
    items
        External ids of its liked items, nearest first.
    categories
        Categories and their shares of the items, most frequent first; empty if they are unknown.
    vector
        Shape (d,).
    distinctive
        The categories that distinguish it, the strongest first; see `dpcml.retrieval.profile`.

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
            Usual share of each category, from `dpcml.retrieval.profile.usual_shares`; None takes that of the catalogue.

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
