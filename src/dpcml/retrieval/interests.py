"""A user's vectors as interests: which of the liked items belong to which, how large each is, what to call it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcml.data.items import ItemTable
from dpcml.utils.arrays import Array, FloatArray, IntArray

CATEGORIES = 5  # told of an interest
LEADING = 0.6  # of the dominant category's share: what has as much belongs to the name too
AROUND = 10  # items of the catalogue that name an interest without liked items


@dataclass(frozen=True, eq=False)
class Interest:
    """One of a user's vectors, as the group of liked items that are nearer to it than to the others.

    Parameters
    ----------
    number
        Which of the user's vectors it is.
    share
        Of the user's liked items.
    name
        Its dominant category, or two that are nearly as frequent; its nearest item where categories are unknown. No
        two interests of a user have the same name.
    items
        External ids of its liked items, nearest first.
    categories
        Names and their shares of the group, dominant first; nothing where they are unknown.
    vector
        Shape (d,).

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

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON, without the vector."""
        return {
            "number": self.number,
            "share": self.share,
            "name": self.name,
            "items": self.items.tolist(),
            "categories": [list(pair) for pair in self.categories],
        }


def distances(vectors: FloatArray, items: FloatArray) -> FloatArray:
    """Return the squared distances of some vectors to some items; shape (vectors, items).

    Examples
    --------
    >>> distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[25.,  1.]])
    """
    squares = (vectors**2).sum(axis=1)[:, None] + (items**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * vectors @ items.T, 0))


def group(vectors: FloatArray, items: FloatArray, liked: IntArray) -> tuple[IntArray, FloatArray]:
    """Return which vector each liked item belongs to, the nearest, and each vector's share of them.

    Examples
    --------
    >>> films = np.array([[0, 1], [4, 4], [0, 2]], dtype=np.float32)
    >>> owner, shares = group(np.array([[0, 0], [4, 4]], dtype=np.float32), films, np.array([0, 1, 2]))
    >>> owner.tolist(), shares.round(2).tolist()
    ([0, 1, 0], [0.67, 0.33])
    """
    owner = distances(vectors, items[liked]).argmin(axis=0)
    return owner, np.bincount(owner, minlength=len(vectors)) / max(len(liked), 1)


def interests_of(vectors: FloatArray, items: FloatArray, liked: IntArray, table: ItemTable) -> list[Interest]:
    """Return a user's interests, largest share first.

    Parameters
    ----------
    vectors
        The user's, of shape (C, d).
    items
        All items' vectors, of shape (items, d).
    liked
        Positions of the user's items.
    table
        Ids, titles and attributes.

    Examples
    --------
    >>> films = np.array([[0, 1], [4, 4], [0, 2]], dtype=np.float32)
    >>> ann = np.array([[0, 0], [4, 4]], dtype=np.float32)
    >>> titles = np.array(["Emma", "Alien", "Persuasion"], dtype=object)
    >>> [(one.name, one.items.tolist()) for one in interests_of(ann, films, np.arange(3), ItemTable([5, 6, 7], titles))]
    [('Emma', [5, 7]), ('Alien', [6])]
    """
    owner, shares = group(vectors, items, liked)
    found: list[Interest] = []
    for c in np.argsort(-shares, kind="stable").tolist():
        near = distances(vectors[c : c + 1], items[liked])[0]
        members = liked[owner == c][np.argsort(near[owner == c], kind="stable")]
        # A vector without liked items is named by what lies around it.
        around = members if len(members) else _nearest(vectors[c], items)
        categories = categories_of(around, table)
        name = _name(categories, table.title(int(around[0])), [one.name for one in found])
        found.append(Interest(c, float(shares[c]), name, table.ids[members], categories, vectors[c]))
    return found


def categories_of(items: IntArray, table: ItemTable) -> tuple[tuple[str, float], ...]:
    """Return the most frequent categories of some items with their shares; an item's categories share its weight.

    Examples
    --------
    >>> from dpcml.data.items import Attributes
    >>> films = ItemTable(np.arange(3), attributes=Attributes.from_sets([{"War"}, {"War", "Crime"}, set()]))
    >>> categories_of(np.arange(3), films)
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


def _name(categories: Sequence[tuple[str, float]], nearest: str, taken: Sequence[str]) -> str:
    """Return a name that tells an interest from the user's larger ones: categories, else with its nearest item."""
    words = [name for name, _ in categories]
    leading = sum(share >= LEADING * categories[0][1] for _, share in categories[:2])
    names = [" / ".join(words[:count]) for count in range(leading, min(3, len(words)) + 1) if count]
    names.append(f"{names[0]}, like {nearest}" if names else nearest)
    numbered = (f"{names[-1]} ({k})" for k in range(2, len(taken) + 3))
    return next(name for name in (*names, *numbered) if name not in taken)
