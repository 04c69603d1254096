"""Search of items and users by id or title."""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Sequence

from dpcml.utils.arrays import Array, IntArray


def normalise(text: str) -> str:
    """Return a text without case and accents, for comparison.

    Examples
    --------
    >>> normalise("Amélie")
    'amelie'
    """
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()


class TextSearch:
    """Searches rows by id or name: an equal id ranks first, then names that start with the text, then any match.

    Parameters
    ----------
    ids
        External ids.
    names
        One name per row; None searches ids only.
    weight
        Popularity of each row: equally good matches are sorted by it.

    Examples
    --------
    >>> import numpy as np
    >>> titles = TextSearch(np.array([1, 2, 3]), ["Alien", "Heat", "The Alienist"], np.array([5, 9, 7]))
    >>> titles.search("alien", 5), titles.search("2", 5), titles.search("", 2)
    ([0, 2], [1], [1, 2])
    """

    def __init__(self, ids: Array, names: Sequence[str] | Array | None, weight: IntArray) -> None:
        self._ids = [normalise(str(one)) for one in ids.tolist()]
        self._names = self._ids if names is None else [normalise(str(name)) for name in names]
        self._weight = weight.tolist()

    def search(self, text: str, limit: int) -> list[int]:
        """Return up to ``limit`` row numbers, best match first; for an empty text the most popular rows."""
        query = normalise(text.strip())
        matches = (
            (_match_rank(query, one, name), -weight, row)
            for row, (one, name, weight) in enumerate(zip(self._ids, self._names, self._weight, strict=True))
            if query in name or query == one
        )
        return [row for _, _, row in heapq.nsmallest(limit, matches)]


def _match_rank(query: str, one: str, name: str) -> int:
    """Return how well a row matches a query, 0 for the best match."""
    if not query:
        return 0
    return (query == one, query == name, name.startswith(query), f" {query}" in name, True).index(True)
