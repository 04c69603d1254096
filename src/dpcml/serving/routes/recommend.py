"""Routes for recommendations, for feedback, and for similar items and users."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dpcml.feedback import Feedback, JournalFullError
from dpcml.serving import lists, schemas
from dpcml.serving.errors import APIError, FastJSONResponse
from dpcml.serving.feedback import check_user
from dpcml.serving.model_store import LoadedModel, json_id
from dpcml.serving.routes.responses import (
    Count,
    QueryId,
    SelectedModel,
    WithFeedback,
    items_json,
    respond,
    respond_json,
    unknown_items,
)
from dpcml.serving.work import check_client, in_pool
from dpcml.utils.arrays import Array, FloatArray
from dpcml.utils.errors import DataError

router = APIRouter()


@router.post("/recommend", response_model=schemas.RecommendationList, summary="Recommend to a user")
@in_pool
def recommend(loaded: SelectedModel, feedback: WithFeedback, body: schemas.RecommendRequest) -> Response:
    """Return the best items for a user of the training data, or for one who has given feedback."""
    return respond_json(loaded, lists.one_list(loaded, body, feedback))


@router.post("/recommend/batch", response_model=schemas.BatchRecommendations, summary="Recommend to many users")
@in_pool
def recommend_batch(loaded: SelectedModel, feedback: WithFeedback, body: schemas.BatchRecommendRequest) -> Response:
    """Return the best items for each of several users; users that are not known are listed, or get popular items."""
    return respond_json(loaded, lists.batch_lists(loaded, body, feedback))


@router.post("/recommend/new", response_model=schemas.RecommendationList, summary="Recommend to a new user")
@in_pool
def recommend_new(loaded: SelectedModel, body: schemas.NewUserRecommendRequest) -> Response:
    """Return the best items for a user who is not in the training data, from the items that they like."""
    return respond_json(loaded, lists.new_list(loaded, body))


@router.post(
    "/feedback",
    response_model=schemas.FeedbackResponse,
    responses={507: {"model": schemas.ErrorResponse, "description": "The journal is full, or the disk."}},
    summary="Say something about an item",
)
@in_pool
def feedback(loaded: SelectedModel, feedback: WithFeedback, body: schemas.FeedbackRequest) -> Response:
    """Keep what a person says about an item; their lists follow it from now on. Off unless --feedback is given."""
    if feedback is None:
        raise APIError(404, "feedback_off", "this server takes no feedback", "start it with --feedback JOURNAL")
    loaded.model.train_.item_columns([body.item])  # an unknown item is refused
    check_user(loaded, body.user)
    try:
        person = feedback.add(Feedback(body.user, body.item, body.action))
    except JournalFullError as error:
        raise APIError(507, "journal_full", str(error), "ask the operator of the server") from None
    except DataError as error:
        hint = "nothing was kept: ask the operator of the server to make room on its disk, then send it again"
        raise APIError(507, "not_written", str(error), hint) from None
    counts = {f"{action}s": len(person.ids(action)) for action in ("like", "dislike", "hide")}
    return FastJSONResponse({"user": json_id(body.user), **counts})


@router.get("/similar/items", response_model=schemas.SimilarItems, summary="Similar items")
@in_pool
def similar_items(loaded: SelectedModel, item: QueryId, n: Count = 10) -> Response:
    """Return the items that are most similar to an item."""
    return respond(loaded, {"items": _similar_json(loaded, *loaded.model.similar_items(item, n=n))})


@router.post("/similar/items", response_model=schemas.BatchSimilarItems, summary="Similar items of several items")
@in_pool
def similar_items_batch(loaded: SelectedModel, body: schemas.SimilarItemsRequest) -> Response:
    """Return the items that are most similar to each of several items; unknown ones are left out and listed."""
    if body.n * len(body.items) > schemas.MAX_LISTED:
        raise APIError(
            422, "invalid", f"n={body.n} for {len(body.items)} items: at most {schemas.MAX_LISTED:,} per request",
            "send fewer items per request",
        )  # fmt: skip
    columns, unknown = lists.item_columns(loaded, body.items, body.on_unknown, need_one=True)
    found = []
    for one in loaded.model.train_.item_ids[columns].tolist():
        check_client()
        similar = _similar_json(loaded, *loaded.model.similar_items(one, n=body.n))
        found.append({"item": json_id(one), "items": similar})
    return respond(loaded, {"lists": found, **unknown_items(unknown)})


@router.get("/similar/users", response_model=schemas.SimilarUsers, summary="Similar users")
@in_pool
def similar_users(loaded: SelectedModel, user: QueryId, n: Count = 10) -> Response:
    """Return the users who are most similar to a user."""
    ids, similarities = loaded.model.similar_users(user, n=n)
    found = [
        {"id": json_id(one), "similarity": float(similarity)} for one, similarity in zip(ids, similarities, strict=True)
    ]
    return respond(loaded, {"users": found})


def _similar_json(loaded: LoadedModel, ids: Array, similarities: FloatArray) -> list[dict[str, Any]]:
    pairs = zip(items_json(loaded, ids), similarities.tolist(), strict=True)
    return [{**one, "similarity": similarity} for one, similarity in pairs]
