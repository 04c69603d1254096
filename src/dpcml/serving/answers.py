"""From what models say to what is sent: ids with titles and categories, plain numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dpcml.serving.failures import PlainJson
from dpcml.serving.served import Served
from dpcml.utils.arrays import Array


def answer(served: Served, content: dict[str, Any]) -> PlainJson:
    """Return what is sent, marked with the model that it comes from."""
    return PlainJson(content, headers={"x-dpcml-model": served.mark})


def items(served: Served, ids: Array | Sequence[Any]) -> list[dict[str, Any]]:
    """Return items by their external ids: id, title, categories."""
    if not len(ids):
        return []
    return [served.described(column) for column in served.model.train_.item_columns(ids).tolist()]


def listed(served: Served, ids: Array, scores: Array, reasons: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    """Return a list of recommendations; the padding of short lists is left out."""
    kept = np.isfinite(scores)
    found = [
        {**one, "score": _number(score)}
        for one, score in zip(items(served, ids[kept]), scores[kept].tolist(), strict=True)
    ]
    if reasons is not None:
        for one, why in zip(found, _reasons(served, reasons), strict=True):
            one["reason"] = why
    return found


def _reasons(served: Served, reasons: Sequence[Any]) -> list[dict[str, Any]]:
    """Return reasons with the titles of the liked items that they name, all looked up at once."""
    named = iter(items(served, [one for reason in reasons for one in reason.liked]))
    return [
        {
            "interest": reason.interest,
            "share": _number(reason.share),
            "name": reason.name,
            "liked": [{"id": one["id"], "title": one["title"]} for one in islice(named, len(reason.liked))],
            "categories": list(reason.categories),
            "text": reason.text,
        }
        for reason in reasons
    ]


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
