"""Routes that show the data: interests and histories of users, search, the map of items."""

from __future__ import annotations

import asyncio
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query
from starlette.responses import Response

from dpcml.models.multi_interest import MultiInterest
from dpcml.serving import schemas
from dpcml.serving.errors import APIError
from dpcml.serving.feedback import FeedbackStore
from dpcml.serving.lists import batch_of, item_columns
from dpcml.serving.model_store import LoadedModel, json_id
from dpcml.serving.routes.responses import (
    Limit,
    QueryId,
    SelectedModel,
    WithFeedback,
    interests_json,
    respond,
    unknown_items,
)
from dpcml.serving.schemas import MAX_USERS
from dpcml.serving.work import in_pool, in_search_pool
from dpcml.utils.arrays import Array

router = APIRouter()

UserQuery = Annotated[str, Query(max_length=200, description="Part of an id; empty for the most active users.")]
ItemQuery = Annotated[
    str, Query(max_length=200, description="Part of a title, or an id; empty for the most popular items.")
]

ItemIds = Annotated[
    list[schemas.TextId] | None,
    Query(
        max_length=MAX_USERS,
        description="Ids of items to return, instead of a search; unknown ones are listed.",
    ),
]


def _with_interests(loaded: LoadedModel) -> MultiInterest:
    found = loaded.model.multi_interest
    if found is None:
        raise APIError(
            422, "cannot", f"{loaded.card['class']} has no interests", "serve a model such as dpcml, cml or gfja"
        )
    return found


def _changed_history(loaded: LoadedModel, feedback: FeedbackStore | None, user: str) -> Array | None:
    """Return the ids of what a user likes, if feedback has changed it."""
    batch = batch_of(loaded, user, feedback)
    return None if batch.rows is not None else loaded.model.train_.item_ids[batch.liked(0)]


@router.get("/interests", response_model=schemas.InterestList, summary="Interests of a user")
@in_pool
def interests(loaded: SelectedModel, feedback: WithFeedback, user: QueryId) -> Response:
    """Return the history of a user grouped by interest, the largest interest first; feedback counts."""
    model = _with_interests(loaded)
    history = _changed_history(loaded, feedback, user)
    found = model.interests(user) if history is None else model.interests_new(history)
    return respond(loaded, {"interests": interests_json(loaded, found)})


@router.post("/interests/new", response_model=schemas.InterestList, summary="Interests of a new user")
@in_pool
def interests_new(loaded: SelectedModel, body: schemas.NewUserRequest) -> Response:
    """Return the history of a user who is not in the training data, grouped by interest, largest first."""
    model = _with_interests(loaded)
    columns, unknown = item_columns(loaded, body.history, body.on_unknown, need_one=True)
    found = model.interests_new(loaded.model.train_.item_ids[columns])
    return respond(loaded, {"interests": interests_json(loaded, found), **unknown_items(unknown)})


@router.get("/history", response_model=schemas.ItemList, summary="History of a user")
@in_pool
def history(loaded: SelectedModel, feedback: WithFeedback, user: QueryId) -> Response:
    """Return the items that a user likes, in the training data and by feedback."""
    liked = batch_of(loaded, user, feedback).liked(0)
    return respond(loaded, {"items": [loaded.item(column) for column in liked.tolist()]})


@router.get("/users", response_model=schemas.UserList, summary="Search users")
@in_search_pool
def users(loaded: SelectedModel, q: UserQuery = "", limit: Limit = 20) -> Response:
    """Return users whose id contains a text, with the number of items that they like."""
    train = loaded.model.train_
    likes = train.per_user
    rows = loaded.user_search.search(q, limit)
    return respond(loaded, {"users": [{"id": json_id(train.user_ids[row]), "likes": int(likes[row])} for row in rows]})


@router.get("/likes", response_model=schemas.LikesOfItem, summary="Who likes an item")
@in_pool
def likes(loaded: SelectedModel, item: QueryId, limit: Limit = 20) -> Response:
    """Return the users who like an item in the training data, the most active first."""
    train = loaded.model.train_
    rows = train.by_item[train.item_columns([item])].indices
    most = rows[np.argsort(-train.per_user[rows], kind="stable")[:limit]].tolist()
    found = [{"id": json_id(train.user_ids[row]), "likes": int(train.per_user[row])} for row in most]
    return respond(loaded, {"users": found, "likes": len(rows)})


@router.get("/items", response_model=schemas.ItemList, summary="Search items")
@in_search_pool
def items(
    loaded: SelectedModel,
    id: ItemIds = None,  # noqa: A002
    q: ItemQuery = "",
    limit: Limit = 20,
) -> Response:
    """Return items by id or title, ignoring case and accents; titles that start with the text come first."""
    if id:
        columns, unknown = item_columns(loaded, id, "skip")
        return respond(loaded, {"items": [loaded.item(one) for one in columns.tolist()], **unknown_items(unknown)})
    return respond(loaded, {"items": [loaded.item(column) for column in loaded.item_search.search(q, limit)]})


@router.get("/map", response_model=schemas.ItemMapResponse, summary="Map of the items")
async def item_map(loaded: SelectedModel) -> Response:
    """Return the most popular items in two dimensions; the places of interests are on the same map."""
    await asyncio.shield(asyncio.wrap_future(loaded.drawn_map))  # no thread of the lists waits for it
    return await _map_json(loaded)


@in_pool
def _map_json(loaded: LoadedModel) -> Response:
    likes = loaded.model.train_.per_item
    found = [
        {**loaded.item(column), "x": round(x, 4), "y": round(y, 4), "likes": int(likes[column])}
        for column, (x, y) in zip(loaded.item_map.rows.tolist(), loaded.item_map.places.tolist(), strict=True)
    ]
    return respond(loaded, {"items": found})
