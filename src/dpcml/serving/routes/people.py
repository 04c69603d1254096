"""What is known of people: their history and their interests, and finding them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from dpcml.models.multi_interest import MultiInterest
from dpcml.serving import schemas
from dpcml.serving.access import Chosen
from dpcml.serving.answers import answer, interests
from dpcml.serving.failures import Refused
from dpcml.serving.routes.lists import AnyId
from dpcml.serving.served import Served, plain_id

router = APIRouter()

Text = Annotated[str, Query(max_length=200, description="Part of an id or a name; nothing for the most active.")]
Limit = Annotated[int, Query(ge=1, le=100)]


def _with_interests(served: Served) -> MultiInterest:
    if not isinstance(served.model, MultiInterest):
        raise Refused(
            422, "cannot", f"{served.card['class']} knows no interests", "serve a model such as dpcml, cml or gfja"
        )
    return served.model


@router.get("/interests", response_model=schemas.Interests, summary="A user's interests")
def user_interests(served: Chosen, user: AnyId) -> Response:
    """Return what a user likes as named groups, largest first."""
    found = _with_interests(served).interests(user)
    return answer(served, {"interests": interests(served, found)})


@router.post("/interests/new", response_model=schemas.Interests, summary="Somebody new's interests")
def new_interests(served: Chosen, asked: schemas.NewHistory) -> Response:
    """Return what somebody new likes as named groups, largest first."""
    found = _with_interests(served).interests_new(asked.history)
    return answer(served, {"interests": interests(served, found)})


@router.get("/history", response_model=schemas.Items, summary="What a user likes")
def history(served: Chosen, user: AnyId) -> Response:
    """Return the items that a user likes, as far as the model was trained on them."""
    train = served.model.train_
    row = int(train.user_rows([user])[0])
    return answer(served, {"items": [served.described(column) for column in train.of(row).tolist()]})


@router.get("/users", response_model=schemas.Users, summary="Find users")
def users(served: Chosen, q: Text = "", limit: Limit = 20) -> Response:
    """Return users whose id holds a text, with how much they like."""
    train = served.model.train_
    likes = train.per_user
    found = [{"id": plain_id(train.user_ids[row]), "likes": int(likes[row])} for row in served.users.find(q, limit)]
    return answer(served, {"users": found})
