"""Items: external ids and how to look them up, titles and attribute sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpcml.utils.arrays import Array, BoolArray, IntArray, frozen
from dpcml.utils.errors import DataError, UnknownIdError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

_LARGEST = 2**63 - 1  # of an int64
_LOOKED_THROUGH = 2000  # ids that a misspelt one is compared with


def positions(ids: Array, wanted: Array, order: IntArray | None = None) -> IntArray:
    """Return the position of each wanted id in ``ids``, -1 for ids that are not there.

    Ids of the other kind are converted where that is plain: ``"12"`` finds 12 and 12 finds ``"12"``.

    Examples
    --------
    >>> positions(np.array([30, 10, 20]), np.array([20, 99])).tolist()
    [2, -1]
    >>> positions(np.array([30, 10]), np.array(["10", "x"])).tolist()
    [1, -1]
    """
    wanted = id_array(wanted)
    if not len(ids):
        return np.full(wanted.shape, -1)
    possible: BoolArray | bool = True
    if ids.dtype.kind in "iu" and wanted.dtype.kind == "O":
        numbers = [as_integer(value) for value in wanted.ravel().tolist()]
        possible = np.array([number is not None for number in numbers], dtype=bool).reshape(wanted.shape)
        wanted = np.array([number or 0 for number in numbers], dtype=np.int64).reshape(wanted.shape)
    elif ids.dtype.kind == "O" and wanted.dtype.kind != "O":
        wanted = np.array([str(value) for value in wanted.ravel().tolist()], dtype=object).reshape(wanted.shape)
    if order is None:
        order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    found = order[place]
    return np.where((ids[found] == wanted) & possible, found, -1)


def id_array(ids: Sequence[Any] | Array) -> Array:
    """Return ids as int64 where all are integers, as an object array of strings otherwise.

    Examples
    --------
    >>> id_array([3, 1]), id_array(["a", 7])
    (array([3, 1]), array(['a', '7'], dtype=object))
    """
    try:
        array = np.asarray(ids)
    except ValueError:  # NumPy's word on nested sequences of different lengths
        raise DataError(f"{_some(ids)}: ids must be single values, not sequences of different lengths") from None
    if array.dtype.kind in "iu" and not (array.dtype.itemsize == 8 and (array > _LARGEST).any()):
        return array.astype(np.int64, copy=False)
    if not array.size and array.dtype.kind == "f":  # an empty list
        return array.astype(np.int64)
    values = array.ravel().tolist()
    if array.dtype == object and all(type(value) is str for value in values):
        return array
    return np.array([str(value) for value in values], dtype=object).reshape(array.shape)


def id_row(ids: Any, kind: str) -> Array:
    """Return one id or a sequence of ids as an array of one dimension.

    Examples
    --------
    >>> id_row("ann", "user"), id_row([3, 1], "item")
    (array(['ann'], dtype=object), array([3, 1]))
    >>> id_row([[3, 1]], "item")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: [[3, 1]]: item ids of 2 dimensions; pass one id, or a sequence of ids
    """
    if isinstance(ids, (Set, Mapping, Iterator)):  # without an order, or read only once
        raise DataError(f"{_some(ids)}: a {type(ids).__name__} of {kind} ids; pass one id, or a list of ids")
    array = np.atleast_1d(id_array(ids))
    if array.ndim != 1:
        raise DataError(f"{_some(ids)}: {kind} ids of {array.ndim} dimensions; pass one id, or a sequence of ids")
    return array


def _some(ids: Any) -> str:
    text = repr(ids)
    return text if len(text) < 100 else f"{text[:100]} ..."


def as_integer(value: str) -> int | None:
    """Return the integer id that a text spells plainly, if it does and 64 bits hold it.

    Examples
    --------
    >>> as_integer("12"), as_integer("012"), as_integer("ann")
    (12, None, None)
    """
    try:
        number = int(value)
    except ValueError:
        return None
    return number if str(number) == value and abs(number) <= _LARGEST else None


def unique_ids(given: Sequence[Any] | Array | None, count: int, name: str) -> Array:
    """Return the ids of ``count`` rows or columns, positions where none are given.

    Examples
    --------
    >>> unique_ids(None, 3, "user_ids").tolist()
    [0, 1, 2]
    >>> unique_ids(["ann", "ann"], 2, "user_ids")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: user_ids holds 'ann' more than once: each row or column needs an id of its own
    """
    if given is None:
        return np.arange(count)
    ids = id_array(given).copy()  # what the caller does to an array later must not reach us
    if ids.shape != (count,):
        raise DataError(f"{name} has shape {ids.shape}: the matrix needs ({count},)")
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < count:
        twice = distinct[counts > 1].tolist()[0]
        raise DataError(f"{name} holds {twice!r} more than once: each row or column needs an id of its own")
    return ids


def known(ids: Array, wanted: Array, kind: str, order: IntArray | None = None) -> IntArray:
    """Return the position of each wanted id, or raise an error that names an unknown one.

    Examples
    --------
    >>> known(np.array(["ann", "bob"], dtype=object), np.array(["anne"]), "user")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.UnknownIdError: unknown user 'anne': not among the 2 users of the data; did you mean 'ann'?
    """
    found = positions(ids, wanted, order)
    if (found < 0).any():
        missing = str(wanted[found < 0][0])
        some = [str(value) for value in ids[:_LOOKED_THROUGH]]
        hint = did_you_mean(missing, some) if len(ids) <= _LOOKED_THROUGH and ids.dtype.kind == "O" else ""
        hint = hint if hint.startswith("did") else f"ids look like {', '.join(some[:3])}"
        raise UnknownIdError(f"unknown {kind} {missing!r}: not among the {len(ids):,} {kind}s of the data; {hint}")
    return found


def fold(text: str) -> str:
    r"""Return a text without case, for comparison; lone surrogates, which UTF-8 has no bytes for, are spelled out.

    Examples
    --------
    >>> fold("STRASSE") == fold("Straße"), fold("\ud800")
    (True, '\\ud800')
    """
    return text.casefold().encode("utf-8", "backslashreplace").decode()


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
    def from_pairs(cls, items: IntArray, names: Sequence[str] | Array, n_items: int) -> Attributes:
        """Build from parallel item positions and attribute names."""
        vocabulary, codes = np.unique(np.asarray(names, dtype=object), return_inverse=True)
        pairs = (np.ones(len(codes), dtype=bool), (np.asarray(items), codes))
        matrix = sparse.coo_array(pairs, shape=(n_items, len(vocabulary))).tocsr()
        matrix.sum_duplicates()
        return cls(frozen(vocabulary), matrix)

    def of(self, item: int) -> list[str]:
        """Return the names of one item's attributes."""
        start, stop = self.matrix.indptr[item : item + 2].tolist()
        return [self._texts[code] for code in sorted(self.matrix.indices[start:stop].tolist())]

    @cached_property
    def _texts(self) -> list[str]:
        """The names as plain texts: reading them one by one from an array takes longer."""
        return [str(name) for name in self.names.tolist()]

    @cached_property
    def weights(self) -> sparse.csr_array:
        """One divided by the number of an item's attributes, for each of them; shape (items, names)."""
        sizes = np.maximum(np.diff(self.matrix.indptr), 1)
        shares = np.repeat(1 / sizes, np.diff(self.matrix.indptr))
        return sparse.csr_array((shares, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape)

    def codes(self, items: IntArray) -> tuple[IntArray, IntArray]:
        """Return how many attributes each of some items has, and the columns of all of them, item by item.

        Examples
        --------
        >>> genres = Attributes.from_sets([{"Horror", "Comedy"}, set(), {"Horror"}])
        >>> [part.tolist() for part in genres.codes(np.array([2, 1, 0]))]
        [[1, 0, 2], [1, 0, 1]]
        """
        starts, stops = self.matrix.indptr[items], self.matrix.indptr[items + 1]
        counts = stops - starts
        places = np.arange(counts.sum()) + np.repeat(stops - np.cumsum(counts), counts)
        return counts, self.matrix.indices[places]

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
        object.__setattr__(self, "ids", frozen(id_row(self.ids, "item")))
        object.__setattr__(self, "order", frozen(np.argsort(self.ids, kind="stable")))
        ordered = self.ids[self.order]
        twice = ordered[1:][ordered[1:] == ordered[:-1]].tolist()
        if twice:
            raise DataError(f"item id {twice[0]!r} occurs twice in the catalogue: ids must be unique")
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

    @cached_property
    def folded_titles(self) -> pl.Series:
        """The titles without case, in a polars column: many words are looked for in one pass, outside of Python."""
        import polars as pl

        return pl.Series([fold(self.title(item)) for item in range(len(self))], dtype=pl.String)

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
