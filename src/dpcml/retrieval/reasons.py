"""Why an item is recommended: the interest that it serves, and the liked items that it is like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.items import ItemTable
from dpcml.retrieval.interests import Interest, categories_of, distances
from dpcml.utils.arrays import FloatArray, IntArray

NAMED = 3  # liked items that a reason names
CATEGORIES = 3


@dataclass(frozen=True)
class Reason:
    """Why an item stands in a list.

    Parameters
    ----------
    interest
        Number of the user's vector that won, as in `Interest`; None for models without interests.
    share
        Share of that interest in the user's history; of models without interests, 1.
    name
        Name of the interest, or of what the liked items have in common.
    liked
        External ids of up to three liked items of that interest, those most like the item first.
    categories
        Dominant ones of the interest.
    text
        All of that in a line; of the interest's categories it names the one that the item has too.

    Examples
    --------
    >>> Reason(0, 0.4, "Horror", (7, 9), ("Horror",), "because of your interest in Horror: Alien, The Thing").text
    'because of your interest in Horror: Alien, The Thing'
    """

    interest: int | None
    share: float
    name: str
    liked: tuple[Any, ...]
    categories: tuple[str, ...]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "liked": list(self.liked), "categories": list(self.categories)}


def by_interest(
    best: IntArray,
    vectors: FloatArray,
    items: FloatArray,
    liked: IntArray,
    interests: Sequence[Interest],
    table: ItemTable,
) -> list[Reason]:
    """Return a reason for each item of one user's list, from the user's vectors.

    Parameters
    ----------
    best
        Positions of the recommended items.
    vectors, items
        The user's vectors of shape (C, d), and all items' of shape (items, d).
    liked
        Positions of the user's items.
    interests
        What `interests_of` gives for the same user.
    table
        Ids, titles and attributes.
    """
    if not len(best):
        return []
    winners = distances(vectors, items[best]).argmin(axis=0)
    owner = distances(vectors, items[liked]).argmin(axis=0)
    apart = distances(items[best], items[liked])  # (list, liked)
    by_number = {interest.number: interest for interest in interests}
    found = []
    for place, winner in enumerate(winners.tolist()):
        others = liked != best[place]  # an item that is liked already is no reason for itself
        mine = np.flatnonzero((owner == winner) & others)
        members = mine if len(mine) else np.flatnonzero(others)
        nearest = liked[members[np.argsort(apart[place, members], kind="stable")[:NAMED]]]
        interest = by_number[winner]
        categories = tuple(name for name, _ in interest.categories[:CATEGORIES])
        text = _text(_common(int(best[place]), categories, table) if len(mine) else "", nearest, table)
        ids = tuple(table.ids[nearest].tolist())
        found.append(Reason(winner, interest.share, interest.name, ids, categories, text))
    return found


def by_company(best: IntArray, liked: IntArray, users_of: sparse.csr_array, table: ItemTable) -> list[Reason]:
    """Return a reason for each item of one user's list: the liked items that the same people like.

    Parameters
    ----------
    best, liked
        Positions of the recommended and of the liked items.
    users_of
        Who likes what, of shape (items, users).
    table
        Ids, titles and attributes.

    Examples
    --------
    >>> users_of = sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1]]))
    >>> films = ItemTable(np.arange(3), np.array(["Alien", "Emma", "The Thing"], dtype=object))
    >>> by_company(np.array([2]), np.array([0, 1]), users_of, films)[0].text
    'because you like Alien, Emma'
    """
    if not len(best):
        return []
    fans = users_of[liked]
    together = (users_of[best] @ fans.T).toarray()  # (list, liked)
    alike = together / np.sqrt(np.maximum(np.diff(fans.indptr), 1))
    found = []
    for row in np.where(best[:, None] == liked, 0, alike):  # a liked item is no reason for itself
        order = np.argsort(-row, kind="stable")[:NAMED]
        nearest = liked[order[row[order] > 0]]
        categories = tuple(name for name, _ in categories_of(nearest, table)[:CATEGORIES])
        titles = [table.title(item) for item in nearest.tolist()]
        name = (*categories, *titles, "popular")[0]
        found.append(Reason(None, 1.0, name, tuple(table.ids[nearest].tolist()), categories, _text("", nearest, table)))
    return found


def _common(item: int, categories: tuple[str, ...], table: ItemTable) -> str:
    """Return the first of an interest's categories that the item has too, else the first; nothing without any."""
    own = [] if table.attributes is None else table.attributes.of(item)
    return next((name for name in categories if name in own), (*categories, "")[0])


def _text(name: str, liked: IntArray, table: ItemTable) -> str:
    titles = ", ".join(table.title(item) for item in liked.tolist())
    if not titles:
        return "because others like it"
    return f"because of your interest in {name}: {titles}" if name else f"because you like {titles}"
