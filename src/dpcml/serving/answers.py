"""From what models say to what is sent: ids with titles and categories, plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpcml.arrays import Array
from dpcml.serving.failures import PlainJson
from dpcml.serving.served import Served

EXACT = 2**53  # integers up to it survive JSON readers that know floating point numbers only


def answer(served: Served, content: dict[str, Any]) -> PlainJson:
    """Return what is sent, marked with the model that it comes from."""
    return PlainJson(content, headers={"x-dpcml-model": served.mark})


def plain_id(one: Any) -> int | str:
    """Return an id as JSON: a number that every reader keeps exactly, otherwise text; both are understood.

    Examples
    --------
    >>> plain_id(np.int64(7)), plain_id("ann"), plain_id(2**60)
    (7, 'ann', '1152921504606846976')
    """
    if isinstance(one, (int, np.integer)) and abs(int(one)) <= EXACT:
        return int(one)
    return str(one)


def item(served: Served, column: int) -> dict[str, Any]:
    """Return an item by its position: id, title, categories."""
    table = served.model.train_.items
    categories = [] if table.attributes is None else table.attributes.of(column)
    return {"id": plain_id(table.ids[column]), "title": table.title(column), "categories": categories}


def items(served: Served, ids: Array | Sequence[Any]) -> list[dict[str, Any]]:
    """Return items by their external ids."""
    if not len(ids):
        return []
    return [item(served, int(column)) for column in served.model.train_.item_columns(ids)]


def listed(served: Served, ids: Array, scores: Array, reasons: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return a list of recommendations; the padding of short lists is left out."""
    kept = np.flatnonzero(np.isfinite(scores))
    found = [
        {**one, "score": _number(score)} for one, score in zip(items(served, ids[kept]), scores[kept], strict=True)
    ]
    if reasons is not None:
        for place, one in zip(kept.tolist(), found, strict=True):
            one["reason"] = why(served, reasons[place])
    return found


def why(served: Served, reason: Any) -> dict[str, Any]:
    """Return a reason, with the titles of the liked items that it names."""
    liked = items(served, list(reason.liked))
    return {
        "interest": reason.interest,
        "share": _number(reason.share),
        "name": reason.name,
        "liked": [{"id": one["id"], "title": one["title"]} for one in liked],
        "categories": list(reason.categories),
        "text": reason.text,
    }


def interests(served: Served, found: Iterable[Any]) -> list[dict[str, Any]]:
    """Return interests with their items and their places on the map."""
    groups = list(found)
    places = served.map.place(np.stack([one.vector for one in groups])) if groups else None
    return [
        {
            "number": int(one.number),
            "share": _number(one.share),
            "name": one.name,
            "items": items(served, one.items),
            "categories": [{"name": name, "share": _number(share)} for name, share in one.categories],
            "place": None if places is None else [round(float(part), 5) for part in places[k]],
        }
        for k, one in enumerate(groups)
    ]


def _number(value: Any) -> float:
    number = float(value)
    return round(number, 6) if math.isfinite(number) else 0.0
