"""Reasons for recommended items: the interest they belong to, and the most similar liked items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.items import ItemTable
from dpcml.retrieval.profile import UserProfile, distances, top_categories
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray

NAMED = 3  # liked items in a reason
CATEGORIES = 3
OTHERS, NEW = "because others like it", "because it is new"


@dataclass(frozen=True)
class Reason:
    """Why an item is in a list.

    Parameters
    ----------
    interest
        Number of the nearest of the user's vectors, as in `Interest`; None for models without interests.
    share
        Share of that interest in the user's history; 1 for models without interests.
    name
        A category that distinguishes the interest and that the item has; else the titles of the liked items.
    liked
        External ids of up to three liked items of that interest, the most similar first; where the text names a
        category, those that have it.
    categories
        Those that the item shares with the interest, what distinguishes the interest first.
    text
        One line of text; it names a category only where it distinguishes the interest and the item has it, so that
        reasons speak of the same interests as `dpcml.models.MultiInterest.interests` does.

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
    best: IntArray, profile: UserProfile, table: ItemTable, usual: FloatArray | None = None
) -> list[Reason]:
    """Return a reason for each item of one user's list: the interest of the nearest vector, and its liked items.

    Parameters
    ----------
    best
        Positions of the recommended items.
    profile
        The user's vectors and liked items.
    table
        Ids, titles and attributes of all items.
    usual
        Usual share of each category, from `dpcml.retrieval.profile.usual_shares`; None takes that of the catalogue.
    """
    if not len(best):
        return []
    items, liked = profile.items, profile.liked
    winners = distances(profile.used, items[best]).argmin(axis=0)
    apart = distances(items[best], items[liked])  # (list, liked)
    apart[best[:, None] == liked] = np.inf  # a liked item is no reason for itself
    own = np.where(profile.owner == winners[:, None], apart, np.inf)
    nearest = _nearest(own, liked)
    anywhere = nearest if all(map(len, nearest)) else _nearest(apart, liked)  # for interests without liked items
    typical, shares = profile.typical_categories(table, usual), profile.shares.tolist()
    found = []
    for place, (item, winner) in enumerate(zip(best.tolist(), winners.tolist(), strict=True)):
        reasons = nearest[place] or anywhere[place]
        distinctive, frequent = typical[winner] if nearest[place] else ((), ())
        categories = _shared(item, (*distinctive, *frequent), reasons, table)
        named = tuple(name for name in categories if name in distinctive)
        if named:  # the liked items that are shown have the category
            belongs = _with_category(named[0], liked, table)
            reasons = _nearest(np.where(belongs, own[place], np.inf)[None], liked)[0]
        ids, text = tuple(table.ids[reasons].tolist()), _text((*named, "")[0], reasons, table)
        found.append(Reason(winner, shares[winner], _name(named, reasons, table), ids, categories, text))
    return found


def _nearest(apart: FloatArray, liked: IntArray) -> list[list[int]]:
    """Return the nearest liked items of each item of a list; those at an infinite distance are left out."""
    order = np.argsort(apart, axis=1, kind="stable")[:, :NAMED]
    there = np.isfinite(np.take_along_axis(apart, order, axis=1)).sum(axis=1).tolist()
    return [row[:count] for row, count in zip(liked[order].tolist(), there, strict=True)]


def by_cooccurrence(best: IntArray, liked: IntArray, users_of: sparse.csr_array, table: ItemTable) -> list[Reason]:
    """Return a reason for each item of one user's list: the liked items that the same users like.

    For an item that nobody likes yet it is the liked items with which it has most categories in common.

    Parameters
    ----------
    best, liked
        Positions of the recommended and of the liked items.
    users_of
        Positives of shape (items, users).
    table
        Ids, titles and attributes of all items.

    Examples
    --------
    >>> users_of = sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1]]))
    >>> films = ItemTable(np.arange(3), np.array(["Alien", "Emma", "The Thing"], dtype=object))
    >>> by_cooccurrence(np.array([2]), np.array([0, 1]), users_of, films)[0].text
    'because you like Alien, Emma'
    """
    if not len(best):
        return []
    by_liked = users_of[liked]
    counts = (users_of[best] @ by_liked.T).toarray()  # (list, liked)
    similarity = counts / np.sqrt(np.maximum(np.diff(by_liked.indptr), 1))
    found = []
    new = np.diff(users_of[best].indptr) == 0
    if new.any() and table.attributes is not None:
        has = table.attributes.matrix.astype(np.float64)
        common = (has[best[new]] @ has[liked].T).toarray()
        similarity[new] = common / np.sqrt(np.maximum(np.diff(has[liked].indptr), 1))
    similarity = np.where(best[:, None] == liked, 0, similarity)  # a liked item is no reason for itself
    for item, row, is_new in zip(best.tolist(), similarity, new.tolist(), strict=True):
        order = np.argsort(-row, kind="stable")[:NAMED]
        nearest = liked[order[row[order] > 0]].tolist()
        typical = [name for name, _ in top_categories(np.array(nearest, dtype=np.int64), table)]
        categories = _shared(item, typical, nearest, table)
        name = (*categories, "")[0] if is_new else ""  # not what others like, but what it is
        ids, text = tuple(table.ids[nearest].tolist()), _text(name, nearest, table, NEW if is_new else OTHERS)
        found.append(Reason(None, 1.0, _name(categories, nearest, table), ids, categories, text))
    return found


def _shared(item: int, typical: Iterable[str], liked: Sequence[int], table: ItemTable) -> tuple[str, ...]:
    """Return those of an interest's typical categories that the item has, and at least half of the liked items."""
    if table.attributes is None:
        return ()
    own, of_liked = table.attributes.of(item), [table.attributes.of(one) for one in liked]
    usual = (name for name in dict.fromkeys(typical) if name in own)
    both = [name for name in usual if 2 * sum(name in names for names in of_liked) >= len(liked)]
    return tuple(both[:CATEGORIES])


def _with_category(name: str, items: IntArray, table: ItemTable) -> BoolArray:
    """Return which of some items have a category."""
    attributes = table.attributes
    assert attributes is not None
    sizes, columns = attributes.codes(items)
    found = np.repeat(np.arange(len(items)), sizes)[columns == list(attributes.names).index(name)]
    return np.isin(np.arange(len(items)), found)


def _name(categories: tuple[str, ...], liked: Sequence[int], table: ItemTable) -> str:
    titles = " and ".join(table.title(item) for item in liked[:2])
    return (*categories[:1], titles)[0] or "popular"


def _text(name: str, liked: Sequence[int], table: ItemTable, otherwise: str = OTHERS) -> str:
    titles = ", ".join(table.title(item) for item in liked)
    if not titles:
        return otherwise
    return f"because of your interest in {name}: {titles}" if name else f"because you like {titles}"
