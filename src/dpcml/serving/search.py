"""Search of items and users by id or title."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import polars as pl

from dpcml.utils.arrays import Array, IntArray

CACHED_SEARCHES = 1024  # answers that are kept: many people type the same first letters


def normalise(text: str) -> str:
    """Return a text without case and accents, for comparison.

    Examples
    --------
    >>> normalise("Amélie")
    'amelie'
    """
    if text.isascii():
        return text.lower()
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()
    return plain.encode("utf-8", "replace").decode()  # lone surrogates are no text


class TextSearch:
    """Searches rows by id or name: an equal id ranks first, then names that start with the text, then any match.

    The texts lie in a polars column, which is searched outside of Python: a search of a million titles takes
    milliseconds, and other threads run meanwhile.

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
    >>> titles = TextSearch(np.array([1, 2, 3]), ["Alien", "Heat", "The Alienist"], np.array([5, 9, 7]))
    >>> titles.search("alien", 5), titles.search("2", 5), titles.search("", 2)
    ([0, 2], [1], [1, 2])
    """

    def __init__(self, ids: Array, names: Sequence[str] | Array | None, weight: IntArray) -> None:
        self._rows = np.argsort(-weight, kind="stable")  # the most popular first
        order = self._rows.tolist()
        given = ids.tolist()
        self._ids = pl.Series([normalise(str(given[row])) for row in order], dtype=pl.String)
        self._names = self._ids
        if names is not None:
            self._names = pl.Series([normalise(str(names[row])) for row in order], dtype=pl.String)
        self._search = lru_cache(CACHED_SEARCHES)(self._find)

    def search(self, text: str, limit: int) -> list[int]:
        """Return up to ``limit`` row numbers, best match first; for an empty text the most popular rows."""
        query = normalise(text.strip())
        if not query:
            return [int(row) for row in self._rows[:limit]]
        return list(self._search(query, limit))

    def _find(self, query: str, limit: int) -> tuple[int, ...]:
        same_id = (self._ids == query).to_numpy()
        found = np.flatnonzero(self._names.str.contains(query, literal=True).to_numpy() | same_id)
        names = self._names.gather(found)
        ranks = np.select(
            [
                same_id[found],
                (names == query).to_numpy(),
                names.str.starts_with(query).to_numpy(),
                names.str.contains(f" {query}", literal=True).to_numpy(),
            ],
            [0, 1, 2, 3],
            default=4,
        )
        best = found[np.argsort(ranks, kind="stable")[:limit]]  # in the order of popularity within a rank
        return tuple(self._rows[best].tolist())
