"""Items and users by what a person types."""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Sequence

from dpcml.utils.arrays import Array, IntArray


def folded(text: str) -> str:
    """Return a text without case and accents, for comparison.

    Examples
    --------
    >>> folded("Amélie")
    'amelie'
    """
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()


class Finder:
    """Finds rows by id or name: the very id first, then names that begin with the text, then those with it inside.

    Parameters
    ----------
    ids
        External ids.
    names
        A name per row, or None where ids are all there is.
    weight
        How much a row matters: of equally good finds, the heavier come first.

    Examples
    --------
    >>> import numpy as np
    >>> finder = Finder(np.array([1, 2, 3]), ["Alien", "Heat", "The Alienist"], np.array([5, 9, 7]))
    >>> finder.find("alien", 5), finder.find("2", 5), finder.find("", 2)
    ([0, 2], [1], [1, 2])
    """

    def __init__(self, ids: Array, names: Sequence[str] | Array | None, weight: IntArray) -> None:
        self._ids = [folded(str(one)) for one in ids.tolist()]
        self._names = self._ids if names is None else [folded(str(name)) for name in names]
        self._weight = weight.tolist()

    def find(self, text: str, limit: int) -> list[int]:
        """Return up to ``limit`` positions, best first; the heaviest for an empty text."""
        wanted = folded(text.strip())
        found = (
            (_grade(wanted, one, name), -weight, row)
            for row, (one, name, weight) in enumerate(zip(self._ids, self._names, self._weight, strict=True))
            if wanted in name or wanted == one
        )
        return [row for _, _, row in heapq.nsmallest(limit, found)]


def _grade(wanted: str, one: str, name: str) -> int:
    """Return how good a find is, 0 for the best."""
    if not wanted:
        return 0
    marks = (wanted == one, wanted == name, name.startswith(wanted), f" {wanted}" in name, True)
    return marks.index(True)
