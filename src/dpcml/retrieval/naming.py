"""Names of interests: what distinguishes each from what everybody likes and from the user's other interests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count as count_from

import numpy as np

from dpcml.data.items import Attributes, ItemTable
from dpcml.utils.arrays import FloatArray, IntArray

PRIOR = 2.0  # items with the usual categories that are added to each interest: a single item proves little
LEAST = 2  # items of an interest that must have a category, for the category to be in its name
TYPICAL = 0.3  # and this share of its items
USUAL_LIFT = 1.1  # lift over all likes that a category needs at least: what everybody likes is no name
LIFT = 1.5  # product of the lifts over all likes and over the other interests that it needs
CORE = 10  # an interest gets its name from the nearer half of its items, and from all if they are this few
RARE = 0.005  # share below which a category counts as that frequent: one rare item is not a large lift
LEADING = 0.6  # a second category is part of the name if it distinguishes the interest this much as the first does
TITLES = 2  # typical items in a name without categories
AROUND = 10  # items of an interest among which different titles are sought


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
    """
    attributes = table.attributes
    if attributes is None or not len(attributes.names) or not groups:
        return [{} for _ in groups]
    usual = np.maximum(usual_shares(table) if usual is None else usual, RARE)
    groups = [group[: max(CORE, len(group) // 2)] for group in groups]
    counts = _counts(groups, attributes)  # (groups, categories)
    sizes = np.array([[len(group)] for group in groups])
    share = (counts + PRIOR * usual) / (sizes + PRIOR)
    others = (counts.sum(axis=0) - counts + PRIOR * usual) / (sizes.sum() - sizes + PRIOR)
    lifts = share / usual * (share / others)
    strength = np.round(share * np.log(lifts), 9)  # equal ones keep the order of the alphabet
    kept = (counts >= LEAST) & (counts >= TYPICAL * sizes) & (share >= USUAL_LIFT * usual) & (lifts >= LIFT)
    found: list[dict[str, float]] = [{} for _ in groups]
    for group, k in zip(*(part.tolist() for part in np.nonzero(kept)), strict=True):
        found[group][str(attributes.names[k])] = float(strength[group, k])
    return [dict(sorted(one.items(), key=lambda pair: -pair[1])) for one in found]


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
    >>> films = ItemTable(np.arange(4), np.array(["Alien", "Emma", "Heat", "Persuasion"], dtype=object))
    >>> interest_names([np.array([0]), np.array([1, 3]), np.array([2])], [{"Horror": 1.0}, {}, {"Horror": 0.5}], films)
    ['Horror', 'Emma and Persuasion', 'Horror, like Heat']
    """
    found: dict[frozenset[str], str] = {}  # by the words in a name: another order of them is no other name
    for group, categories in zip(groups, distinctive, strict=True):
        names = ((frozenset(name.split(" / ")), name) for name in _candidates(group, categories, table))
        found.update([next((words, name) for words, name in names if words not in found)])
    return list(found.values())


def _candidates(group: IntArray, categories: Mapping[str, float], table: ItemTable) -> Iterator[str]:
    """Yield names for an interest, the best first, without end."""
    titles = list(dict.fromkeys(table.title(item) for item in group[:AROUND].tolist()))
    last = " and ".join(titles[:TITLES])
    if categories:
        words, strengths = list(categories), list(categories.values())
        leading = sum(strength >= LEADING * strengths[0] for strength in strengths[:2])
        yield from (" / ".join(words[:count]) for count in range(leading, min(3, len(words)) + 1))
        last = f"{words[0]}, like {_example(group, words[0], table)}"
    yield last
    yield from (f"{last} ({k})" for k in count_from(2))


def _example(group: IntArray, category: str, table: ItemTable) -> str:
    """Return the title of the most typical item that has a category; of the most typical one if none has it."""
    has = (item for item in group.tolist() if table.attributes is not None and category in table.attributes.of(item))
    return table.title(next(has, int(group[0])))


def _counts(groups: Sequence[IntArray], attributes: Attributes) -> IntArray:
    """Return how many items of each group have each attribute; shape (groups, attributes)."""
    per_item, codes = attributes.codes(np.concatenate(groups))
    group = np.repeat(np.repeat(np.arange(len(groups)), [len(one) for one in groups]), per_item)
    n_names = len(attributes.names)
    return np.bincount(group * n_names + codes, minlength=len(groups) * n_names).reshape(len(groups), n_names)
