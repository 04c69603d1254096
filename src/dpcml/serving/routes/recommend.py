"""Routes for recommendations and for similar items and users."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from dpcml.serving import schemas
from dpcml.serving.errors import APIError, no_items_left
from dpcml.serving.model_store import LoadedModel, json_id
from dpcml.serving.routes.responses import Count, QueryId, SelectedModel, items_json, recommendations_json, respond

router = APIRouter()


def _options(body: schemas.RecommendOptions) -> dict[str, Any]:
    return body.model_dump(include=set(schemas.RecommendOptions.model_fields))


@router.post("/recommend", response_model=schemas.RecommendationList, summary="Recommend to a user")
def recommend(loaded: SelectedModel, body: schemas.RecommendRequest) -> Response:
    """Return the best items for a user of the training data."""
    return _one_list(loaded, *loaded.model.recommend(body.user, **_options(body)))


@router.post("/recommend/batch", response_model=schemas.BatchRecommendations, summary="Recommend to many users")
def recommend_batch(loaded: SelectedModel, body: schemas.BatchRecommendRequest) -> Response:
    """Return the best items for each of several users of the training data."""
    if body.n * len(body.users) > schemas.MAX_LISTED:
        raise APIError(
            422, "invalid", f"n={body.n} for {len(body.users)} users: at most {schemas.MAX_LISTED:,} items per request",
            "send fewer users per request",
        )  # fmt: skip
    parts = loaded.model.recommend(body.users, **_options(body))  # ids, scores, and reasons if explained
    lists = [
        {"user": json_id(user), "items": recommendations_json(loaded, *(part[k] for part in parts))}
        for k, user in enumerate(body.users)
    ]
    if not any(one["items"] for one in lists):
        raise no_items_left()
    return respond(loaded, {"lists": lists})


@router.post("/recommend/new", response_model=schemas.RecommendationList, summary="Recommend to a new user")
def recommend_new(loaded: SelectedModel, body: schemas.NewUserRecommendRequest) -> Response:
    """Return the best items for a user who is not in the training data, from the items that they like."""
    return _one_list(loaded, *loaded.model.recommend_new(body.history, **_options(body)))


@router.get("/similar/items", response_model=schemas.SimilarItems, summary="Similar items")
def similar_items(loaded: SelectedModel, item: QueryId, n: Count = 10) -> Response:
    """Return the items that are most similar to an item."""
    ids, similarities = loaded.model.similar_items(item, n=n)
    found = [
        {**one, "similarity": float(similarity)}
        for one, similarity in zip(items_json(loaded, ids), similarities, strict=True)
    ]
    return respond(loaded, {"items": found})


@router.get("/similar/users", response_model=schemas.SimilarUsers, summary="Similar users")
def similar_users(loaded: SelectedModel, user: QueryId, n: Count = 10) -> Response:
    """Return the users who are most similar to a user."""
    ids, similarities = loaded.model.similar_users(user, n=n)
    found = [
        {"id": json_id(one), "similarity": float(similarity)} for one, similarity in zip(ids, similarities, strict=True)
    ]
    return respond(loaded, {"users": found})


def _one_list(loaded: LoadedModel, *parts: Any) -> Response:
    found = recommendations_json(loaded, *parts)
    if not found:
        raise no_items_left()
    return respond(loaded, {"items": found})
