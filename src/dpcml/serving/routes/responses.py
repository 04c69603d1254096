"""What the routes share: the model of a request, and JSON forms of items, lists and interests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Query, Request
from starlette.responses import Response

from dpcml.serving.errors import SHOWN_ERRORS, APIError, FastJSONResponse
from dpcml.serving.feedback import FeedbackStore
from dpcml.serving.model_store import LoadedModel
from dpcml.serving.schemas import MAX_ID_LENGTH, MAX_N
from dpcml.utils.arrays import Array


async def _selected_model(
    request: Request,
    model: Annotated[str, Query(description="main, or compare if there is a second model.")] = "main",
) -> LoadedModel:
    loaded: LoadedModel = request.app.state.models.get(model)
    return loaded


async def _feedback(request: Request) -> FeedbackStore | None:
    found: FeedbackStore | None = request.app.state.feedback
    return found


async def known_parameters(request: Request) -> None:
    """Refuse a request with a parameter in its address that the description of its path does not have."""
    if not request.query_params:
        return
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    described = request.app.openapi()["paths"][path][request.method.lower()]
    known = sorted(one["name"] for one in described.get("parameters", ()))
    unknown = sorted(set(request.query_params) - set(known))
    if unknown:
        names = f"known: {', '.join(known)}" if known else "this path has none"
        reason = f"{', '.join(unknown[:SHOWN_ERRORS])}: no such parameter in the address; {names}"
        raise APIError(422, "invalid", reason, "see /openapi.json for the parameters of each path")


SelectedModel = Annotated[LoadedModel, Depends(_selected_model)]
WithFeedback = Annotated[FeedbackStore | None, Depends(_feedback)]
QueryId = Annotated[str, Query(min_length=1, max_length=MAX_ID_LENGTH, pattern=r"^[^\x00]+$")]
Count = Annotated[int, Query(ge=1, le=MAX_N)]
Limit = Annotated[int, Query(ge=1, le=100)]


def respond(loaded: LoadedModel, content: dict[str, Any]) -> FastJSONResponse:
    """Return a response whose header names the model that it comes from."""
    return FastJSONResponse(content, headers={"x-dpcml-model": loaded.fingerprint})


def respond_json(loaded: LoadedModel, content: bytes) -> Response:
    """Return a response of written JSON whose header names the model that it comes from."""
    return Response(content, media_type="application/json", headers={"x-dpcml-model": loaded.fingerprint})


def unknown_items(ids: Sequence[Any]) -> dict[str, Any]:
    """Return the part of a response that lists items which the model does not know; nothing if there are none."""
    return {"unknown": {"items": list(ids)}} if len(ids) else {}


def items_json(loaded: LoadedModel, ids: Array | Sequence[Any]) -> list[dict[str, Any]]:
    """Return the id, title and categories of items with external ids."""
    if not len(ids):
        return []
    return [loaded.item(column) for column in loaded.model.train_.item_columns(ids).tolist()]


def reasons_json(loaded: LoadedModel, reasons: Sequence[Any]) -> list[dict[str, Any]]:
    """Return reasons with the titles of their liked items."""
    return [
        {
            "interest": reason.interest,
            "share": _finite(reason.share),
            "name": reason.name,
            "liked": [loaded.reference(one) for one in reason.liked],
            "categories": list(reason.categories),
            "text": reason.text,
        }
        for reason in reasons
    ]


def interests_json(loaded: LoadedModel, interests: Iterable[Any]) -> list[dict[str, Any]]:
    """Return interests with their items and their places on the item map."""
    groups = list(interests)
    places = loaded.places(np.stack([one.vector for one in groups])) if groups else None
    return [
        {
            "number": int(one.number),
            "share": _finite(one.share),
            "name": one.name,
            "items": items_json(loaded, one.items),
            "categories": [{"name": name, "share": _finite(share)} for name, share in one.categories],
            "place": None if places is None else [round(float(part), 5) for part in places[k]],
        }
        for k, one in enumerate(groups)
    ]


def _finite(value: Any) -> float:
    number = float(value)
    return round(number, 6) if math.isfinite(number) else 0.0
