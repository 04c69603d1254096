"""Recommendations: for a user, for many, for somebody new; and what is like what."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from dpcml.serving import schemas
from dpcml.serving.access import Chosen
from dpcml.serving.answers import answer, items, listed
from dpcml.serving.failures import Refused, nothing_left
from dpcml.serving.served import Served, plain_id

router = APIRouter()

AnyId = Annotated[str, Query(min_length=1, max_length=schemas.LONGEST_ID, pattern=r"^[^\x00]+$")]
Count = Annotated[int, Query(ge=1, le=schemas.MAX_N)]


def _options(asked: schemas.Options) -> dict[str, Any]:
    return asked.model_dump(include=set(schemas.Options.model_fields))


@router.post("/recommend", response_model=schemas.OneList, summary="A list for one user")
def recommend(served: Chosen, asked: schemas.RecommendOne) -> Response:
    """Return the best items for a user of the training data."""
    return _one_list(served, *served.model.recommend(asked.user, **_options(asked)))


@router.post("/recommend/batch", response_model=schemas.ManyLists, summary="Lists for many users")
def recommend_many(served: Chosen, asked: schemas.RecommendMany) -> Response:
    """Return the best items for each of several users; n times users is limited."""
    if asked.n * len(asked.users) > schemas.MAX_LISTED:
        raise Refused(
            422, "invalid", f"n={asked.n} for {len(asked.users)} users: at most {schemas.MAX_LISTED:,} items at a time",
            "send fewer users at a time",
        )  # fmt: skip
    parts = served.model.recommend(asked.users, **_options(asked))  # ids, scores, perhaps reasons
    lists = [
        {"user": plain_id(user), "items": listed(served, *(part[k] for part in parts))}
        for k, user in enumerate(asked.users)
    ]
    if not any(one["items"] for one in lists):
        raise nothing_left()
    return answer(served, {"lists": lists})


@router.post("/recommend/new", response_model=schemas.OneList, summary="A list for somebody new")
def recommend_new(served: Chosen, asked: schemas.RecommendNew) -> Response:
    """Return the best items for somebody who was not in the training data, from the items that they like."""
    return _one_list(served, *served.model.recommend_new(asked.history, **_options(asked)))


@router.get("/similar/items", response_model=schemas.SimilarItems, summary="Items like an item")
def similar_items(served: Chosen, item: AnyId, n: Count = 10) -> Response:
    """Return the items most like one item."""
    ids, alike = served.model.similar_items(item, n=n)
    found = [{**one, "similarity": float(how)} for one, how in zip(items(served, ids), alike, strict=True)]
    return answer(served, {"items": found})


@router.get("/similar/users", response_model=schemas.SimilarUsers, summary="Users like a user")
def similar_users(served: Chosen, user: AnyId, n: Count = 10) -> Response:
    """Return the users most like one user."""
    ids, alike = served.model.similar_users(user, n=n)
    found = [{"id": plain_id(one), "similarity": float(how)} for one, how in zip(ids, alike, strict=True)]
    return answer(served, {"users": found})


def _one_list(served: Served, *parts: Any) -> Response:
    found = listed(served, *parts)
    if not found:
        raise nothing_left()
    return answer(served, {"items": found})
