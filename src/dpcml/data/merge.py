"""Merge newer interactions into older ones; the positions of known users and items do not change."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes, ItemTable, as_integer, positions
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.errors import DataError


def merge(known: Interactions, more: Interactions) -> Interactions:
    """Return the positives of both; new users and items come after the old ones.

    Titles and attributes of items that are known already stay; times and weights are kept where both parts have them.
    A pair that is a positive in one part is one, even if it has a low rating in the other.

    Examples
    --------
    >>> old = Interactions.from_csr(np.eye(2), user_ids=["ann", "bob"], item_ids=["dune", "emma"])
    >>> new = Interactions.from_csr(np.ones((1, 2)), user_ids=["eve"], item_ids=["emma", "ulysses"])
    >>> both = merge(old, new)
    >>> both.user_ids.tolist(), both.item_ids.tolist(), both.csr.toarray().astype(int).tolist()
    (['ann', 'bob', 'eve'], ['dune', 'emma', 'ulysses'], [[1, 0, 0], [0, 1, 0], [0, 1, 1]])
    """
    user_ids, user_at = _joined(known.user_ids, more.user_ids, "user")
    item_ids, item_at = _joined(known.item_ids, more.item_ids, "item")
    new_items = np.sort(np.flatnonzero(item_at >= known.n_items))
    return Interactions.from_codes(
        np.concatenate([known.rows, user_at[more.rows]]),
        np.concatenate([known.indices, item_at[more.indices]]),
        user_ids,
        _table(known.items, more.items.select(new_items), item_ids),
        timestamps=_both(known.timestamps, more.timestamps),
        weights=_both(known.weights, more.weights),
        low_rated=_low_rated(known, more, user_at, item_at),
    )


def _both(old: FloatArray | None, new: FloatArray | None) -> FloatArray | None:
    return None if old is None or new is None else np.concatenate([old, new])


def _low_rated(
    known: Interactions, more: Interactions, user_at: IntArray, item_at: IntArray
) -> tuple[IntArray, IntArray] | None:
    """Return the pairs of both that are known and no positives, by the positions of the merged data."""
    parts: list[tuple[IntArray, ...]] = []
    if known.low_rated is not None:
        parts.append(known.low_rated.tocoo().coords)
    if more.low_rated is not None:
        rows, columns = more.low_rated.tocoo().coords
        parts.append((user_at[rows], item_at[columns]))
    if not parts:
        return None
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([columns for _, columns in parts])


def _joined(old: Array, new: Array, kind: str) -> tuple[Array, IntArray]:
    """Return old ids, then new ones, of the old kind; and the position of each of ``new`` among them."""
    at = positions(old, new)
    unknown = at < 0
    fresh = new[unknown]
    if old.dtype.kind == "i" and fresh.dtype.kind == "O" and len(fresh):
        numbers = {value: as_integer(value) for value in fresh.tolist()}
        for value, number in numbers.items():
            if number is None:
                raise DataError(f"{kind} {value!r} is a text, but the known {kind} ids are numbers: use one kind")
        fresh = np.array(list(numbers.values()), dtype=np.int64)
    elif old.dtype.kind == "O":
        fresh = np.array([str(value) for value in fresh.tolist()], dtype=object)
    at = at.copy()
    at[unknown] = len(old) + np.arange(len(fresh))
    return np.concatenate([old, fresh]), at


def _table(old: ItemTable, new: ItemTable, ids: Array) -> ItemTable:
    titles = None
    if old.titles is not None or new.titles is not None:
        both = [[table.title(k) for k in range(len(table))] for table in (old, new)]
        titles = np.array([*both[0], *both[1]], dtype=object)
    if old.attributes is None and new.attributes is None:
        return ItemTable(ids, titles)
    parts = [table.attributes or Attributes.from_sets([()] * len(table)) for table in (old, new)]
    names = list(dict.fromkeys([*parts[0].names, *parts[1].names]))
    place = {name: k for k, name in enumerate(names)}
    rows = np.concatenate([np.repeat(np.arange(len(part)), np.diff(part.matrix.indptr)) for part in parts])
    rows[parts[0].matrix.nnz :] += len(old)
    columns = np.array([place[part.names[k]] for part in parts for k in part.matrix.indices], dtype=np.int64)
    pairs = np.ones(len(rows), dtype=bool), (rows, columns)
    matrix = sparse.coo_array(pairs, shape=(len(ids), len(names))).tocsr()
    return ItemTable(ids, titles, Attributes(np.array(names, dtype=object), matrix))
