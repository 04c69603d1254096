"""Search of items and users by id or title."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache, partial

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
        own = pl.Series([normalise(str(given[row])) for row in order], dtype=pl.String)
        texts = own
        if names is not None:
            texts = pl.Series([normalise(str(names[row])) for row in order], dtype=pl.String)
        self._search = lru_cache(CACHED_SEARCHES)(partial(_find, own, texts, self._rows))

    def search(self, text: str, limit: int) -> list[int]:
        """Return up to ``limit`` row numbers, best match first; for an empty text the most popular rows."""
        query = normalise(text.strip())
        if not query:
            return [int(row) for row in self._rows[:limit]]
        return list(self._search(query, limit))


def _find(ids: pl.Series, names: pl.Series, rows: IntArray, query: str, limit: int) -> tuple[int, ...]:
    """Return the best rows; a function, not a method, because a cache of a method would keep its search alive."""
    same_id = (ids == query).to_numpy()
    found = np.flatnonzero(names.str.contains(query, literal=True).to_numpy() | same_id)
    texts = names.gather(found)
    ranks = np.select(
        [
            same_id[found],
            (texts == query).to_numpy(),
            texts.str.starts_with(query).to_numpy(),
            texts.str.contains(f" {query}", literal=True).to_numpy(),
        ],
        [0, 1, 2, 3],
        default=4,
    )
    best = found[np.argsort(ranks, kind="stable")[:limit]]  # in the order of popularity within a rank
    return tuple(rows[best].tolist())
