"""What is known of items beside who likes them: ids, titles and attribute sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from dpcml.data.ids import id_array
from dpcml.data.ids import positions as positions
from dpcml.utils.arrays import Array, BoolArray, IntArray, frozen
from dpcml.utils.errors import DataError


@dataclass(frozen=True, eq=False)
class Attributes:
    """A set of named attributes (genres, tags) for each item.

    Parameters
    ----------
    names
        The attributes' names.
    matrix
        Boolean CSR of shape (items, names).

    Examples
    --------
    >>> genres = Attributes.from_sets([{"Horror", "Comedy"}, {"Horror"}, set()])
    >>> list(genres.names), genres.of(1)
    (['Comedy', 'Horror'], ['Horror'])
    """

    names: Array
    matrix: sparse.csr_array

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[str]]) -> Attributes:
        """Build from one collection of names per item."""
        rows = [sorted(set(names)) for names in sets]
        return cls.from_pairs(
            np.repeat(np.arange(len(rows)), [len(row) for row in rows]),
            [name for row in rows for name in row],
            n_items=len(rows),
        )

    @classmethod
    def from_pairs(cls, items: IntArray, names: Sequence[str], n_items: int) -> Attributes:
        """Build from parallel item positions and attribute names."""
        vocabulary, codes = np.unique(np.asarray(names, dtype=object), return_inverse=True)
        pairs = (np.ones(len(codes), dtype=bool), (np.asarray(items), codes))
        matrix = sparse.coo_array(pairs, shape=(n_items, len(vocabulary))).tocsr()
        matrix.sum_duplicates()
        return cls(frozen(vocabulary), matrix)

    def of(self, item: int) -> list[str]:
        """Return the names of one item's attributes."""
        start, stop = self.matrix.indptr[item : item + 2]
        return [str(name) for name in self.names[np.sort(self.matrix.indices[start:stop])]]

    def take(self, rows: IntArray) -> Attributes:
        """Return the attributes of some rows, in that order; a row of -1 has none."""
        padded = sparse.vstack([self.matrix, sparse.csr_array((1, len(self.names)), dtype=bool)]).tocsr()
        return Attributes(self.names, padded[np.where(rows < 0, self.matrix.shape[0], rows)])


@dataclass(frozen=True, eq=False)
class ItemTable:
    """A catalogue: one row per item.

    Parameters
    ----------
    ids
        External ids, integers or strings, each once.
    titles
        A readable name per item, if known.
    attributes
        Attribute sets per item, if known.

    Examples
    --------
    >>> films = ItemTable(np.array([10, 20]), titles=np.array(["Alien", "Heat"], dtype=object))
    >>> films.title(1)
    'Heat'
    >>> [str(title) for title in films.take(np.array([20, 30])).titles]
    ['Heat', '30']
    """

    ids: Array
    titles: Array | None = None
    attributes: Attributes | None = None
    order: IntArray = field(init=False, repr=False)  # positions by ascending id

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", frozen(id_array(self.ids)))
        object.__setattr__(self, "order", frozen(np.argsort(self.ids, kind="stable")))
        ordered = self.ids[self.order]
        twice = ordered[1:][ordered[1:] == ordered[:-1]].tolist()
        if twice:
            raise DataError(f"item id {twice[0]!r} stands twice in the catalogue: ids must be unique")
        if self.titles is not None:
            object.__setattr__(self, "titles", frozen(np.asarray(self.titles, dtype=object)))
        for name, rows in (("titles", self.titles), ("attribute sets", self.attributes)):
            if rows is not None and len(rows) != len(self):
                raise DataError(f"{len(rows)} {name} for {len(self)} items: each item needs one")

    def __len__(self) -> int:
        return len(self.ids)

    def title(self, item: int) -> str:
        """Return the title of the item at a position, or its id where titles are unknown."""
        return str(self.ids[item] if self.titles is None else self.titles[item])

    def find(self, ids: Array) -> IntArray:
        """Return the position of each id, -1 for unknown ones."""
        return positions(self.ids, ids, self.order)

    def take(self, ids: Array) -> ItemTable:
        """Return the table of exactly these ids, in that order; unknown ones get their id as title."""
        rows = self.find(ids)
        titles = None
        if self.titles is not None:
            titles = np.where(rows < 0, id_array(ids).astype(str).astype(object), self.titles[rows])
        return ItemTable(ids, titles, None if self.attributes is None else self.attributes.take(rows))

    def select(self, keep: BoolArray | IntArray) -> ItemTable:
        """Return the table of some positions."""
        rows = np.arange(len(self))[keep]
        return ItemTable(
            self.ids[rows],
            None if self.titles is None else self.titles[rows],
            None if self.attributes is None else self.attributes.take(rows),
        )
