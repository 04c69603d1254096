"""What is known of items and of the models themselves."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dpcml.serving import schemas
from dpcml.serving.access import Chosen
from dpcml.serving.answers import answer
from dpcml.serving.failures import PlainJson
from dpcml.serving.routes.people import Limit
from dpcml.serving.served import Served, Shelf

router = APIRouter()

Text = Annotated[str, Query(max_length=200, description="Part of a title, or an id; nothing for the most liked.")]


@router.get("/items", response_model=schemas.Items, summary="Find items")
def find_items(served: Chosen, q: Text = "", limit: Limit = 20) -> Response:
    """Return items by id or title: beginnings first, then any part; case and accents do not matter."""
    return answer(served, {"items": [served.described(column) for column in served.items.find(q, limit)]})


@router.get("/map", response_model=schemas.Map, summary="The map of items")
def item_map(served: Chosen) -> Response:
    """Return the most liked items in two dimensions; interests say where they lie on the same map."""
    likes = served.model.train_.per_item
    found = [
        {**served.described(column), "x": round(x, 4), "y": round(y, 4), "likes": int(likes[column])}
        for column, (x, y) in zip(served.map.rows.tolist(), served.map.places.tolist(), strict=True)
    ]
    return answer(served, {"items": found})


@router.get("/model", response_model=schemas.Models, summary="What is served")
def models(request: Request) -> Response:
    """Return what is served: model, data, parameters, abilities."""
    shelf: Shelf = request.app.state.shelf
    return PlainJson({"models": [_info(name, served) for name, served in shelf.all().items()]})


@router.post(
    "/reload",
    response_model=schemas.Reloaded,
    responses={409: {"model": schemas.Problem, "description": "The folder is damaged; the old model stays."}},
    summary="Load the model anew",
)
def reload(request: Request) -> Response:
    """Load the model directory anew and put it in place; requests under way end with the model they began with."""
    shelf: Shelf = request.app.state.shelf
    models = shelf.reload()
    request.app.state.tell_others()
    return PlainJson({"models": {name: served.mark for name, served in models.items()}})


def _info(name: str, served: Served) -> dict[str, Any]:
    train, card = served.model.train_, served.card
    attributes = train.items.attributes
    return {
        "name": name,
        "model": card["model"],
        "model_class": card["class"],
        "mark": served.mark,
        "version": card["version"],
        "created": card["created"],
        "loaded": served.loaded,
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "has_titles": train.items.titles is not None,
        "categories": [] if attributes is None else [str(one) for one in attributes.names[:500]],
        "parameters": card["parameters"],
        "able": served.able,
    }
