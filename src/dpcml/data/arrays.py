"""`Interactions` as plain arrays and texts for saving, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, Preparation
from dpcml.data.items import Attributes, ItemTable
from dpcml.utils.arrays import Array
from dpcml.utils.checks import check_array, check_positions, csr_from_arrays, csr_to_arrays
from dpcml.utils.errors import DataError


def to_arrays(train: Interactions) -> tuple[dict[str, Array], dict[str, list[str | None]]]:
    """Return the arrays and the texts that make up a data set; `from_arrays` takes them back.

    Examples
    --------
    >>> likes = Interactions.from_csr(np.eye(2), user_ids=["ann", "bob"])
    >>> numbers, texts = to_arrays(likes)
    >>> list(numbers), texts
    (['seen.indptr', 'seen.indices', 'item_ids'], {'user_ids': ['ann', 'bob']})
    >>> from_arrays(numbers, texts, metadata(likes)).content_hash == likes.content_hash
    True
    """
    items = train.items
    numbers: dict[str, Array] = {"seen.indptr": train.indptr, "seen.indices": train.indices}
    texts: dict[str, list[str | None]] = {}
    if train.timestamps is not None:
        numbers["seen.timestamps"] = train.timestamps
    if train.weights is not None:
        numbers["seen.weights"] = train.weights
    if train.low_rated is not None:
        numbers["low_rated.indptr"] = train.low_rated.indptr
        numbers["low_rated.indices"] = train.low_rated.indices
    for name, ids in (("user_ids", train.user_ids), ("item_ids", items.ids)):
        if ids.dtype.kind == "i":
            numbers[name] = ids
        else:
            texts[name] = ids.tolist()
    if items.titles is not None:
        texts["titles"] = [None if title is None else str(title) for title in items.titles]
    if items.attributes is not None:
        matrix = items.attributes.matrix.astype(bool, copy=True)
        matrix.eliminate_zeros()
        numbers |= csr_to_arrays("attributes", matrix)
        texts["attributes"] = [str(name) for name in items.attributes.names]
    return numbers, texts


def metadata(train: Interactions) -> dict[str, Any]:
    """Return counts, hashes and the preparation report of a data set as plain data.

    Examples
    --------
    >>> said = metadata(Interactions.from_csr(np.eye(2)))
    >>> said["users"], said["items"], said["positives"]
    (2, 2, 2)
    """
    return {
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "data_hash": train.content_hash,
        "split_hash": train.split_hash,
        "catalogue_size": train.catalogue_size,
        "preparation": asdict(train.preparation),
    }


def from_arrays(numbers: Mapping[str, Array], texts: Mapping[str, Any], said: Mapping[str, Any]) -> Interactions:
    """Return the data set that `to_arrays` and `metadata` gave, checked and without copies of its arrays."""
    n_users, n_items = int(said["users"]), int(said["items"])
    indptr = check_array(numbers, "seen.indptr", (n_users + 1,), "iu")
    indices = check_array(numbers, "seen.indices", (int(said["positives"]),), "iu")
    user_ids, item_ids = (
        _text(texts, name, count) if name in texts else check_array(numbers, name, (count,), "i")
        for name, count in (("user_ids", n_users), ("item_ids", n_items))
    )
    attributes = None
    if "attributes" in texts:
        names = _text(texts, "attributes", len(texts["attributes"]))
        attributes = Attributes(names, csr_from_arrays(numbers, "attributes", (n_items, len(names)), "b"))
    return Interactions(
        indptr,
        indices,
        user_ids,
        ItemTable(item_ids, _text(texts, "titles", n_items) if "titles" in texts else None, attributes),
        _of_positives(numbers, "timestamps", indices),
        said["catalogue_size"],
        Preparation(**{**said["preparation"], "notes": tuple(said["preparation"]["notes"])}),
        said["split_hash"],
        _low_rated(numbers, n_users, n_items),
        _of_positives(numbers, "weights", indices),
    )


def _of_positives(numbers: Mapping[str, Array], name: str, indices: Array) -> Array | None:
    """Return an array with a number for each positive, None if the data set has none."""
    return check_array(numbers, f"seen.{name}", indices.shape, "fiu") if f"seen.{name}" in numbers else None


def _low_rated(numbers: Mapping[str, Array], n_users: int, n_items: int) -> sparse.csr_array | None:
    """Return the pairs that are known and no positives; files of older versions have none."""
    if "low_rated.indices" not in numbers:
        return None
    indptr = check_array(numbers, "low_rated.indptr", (n_users + 1,), "iu")
    indices = check_array(numbers, "low_rated.indices", (int(indptr[-1]),), "iu")
    check_positions("low_rated", indptr, indices, n_items)
    return sparse.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(n_users, n_items))


def _text(texts: Mapping[str, Any], name: str, count: int) -> Array:
    values = texts[name]
    if not isinstance(values, list) or len(values) != count:
        raise DataError(f"{name} has not one text for each of {count:,}")
    array = np.empty(count, dtype=object)
    array[:] = values
    return array
