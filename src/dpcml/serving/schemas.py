"""Bodies of requests and responses. FastAPI validates requests against them and describes both in OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    StrictBool,
    StrictStr,
)
from pydantic_core import CoreSchema, PydanticCustomError

MAX_N = 1000  # items of one list
MAX_USERS = 1000  # users of one request
MAX_HISTORY = 5000  # items of a history
MAX_CANDIDATES = 100_000  # items to choose from
MAX_LISTED = 100_000  # items of all lists of one request
MAX_ID_LENGTH = 512  # characters
MAX_WHERE = 20  # attributes of one 'where'
MAX_VALUES = 100  # values of one of them


def _reject_other_types(value: Any) -> Any:
    if isinstance(value, (bool, str)):
        raise PydanticCustomError("whole_number", "should be a whole number")
    return value


def _one_reason(reason: str) -> GetPydanticSchema:
    """Give one reason for a value that fits none of several types; Pydantic gives one for each, by internal names."""

    def schema(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union: Any = handler(source)
        return cast(CoreSchema, {**union, "custom_error_type": "no_such_type", "custom_error_message": reason})

    return GetPydanticSchema(schema)


TextId = Annotated[StrictStr, Field(min_length=1, max_length=MAX_ID_LENGTH, pattern=r"^[^\x00]+$")]
WhereText = Annotated[StrictStr, Field(max_length=MAX_ID_LENGTH)]
WhereTexts = Annotated[list[WhereText], Field(max_length=MAX_VALUES, description="One of them must match.")]
WholeNumber = Annotated[int, BeforeValidator(_reject_other_types)]  # accepts 10.0, rejects "10" and true
Id = Annotated[
    WholeNumber | TextId, _one_reason(f"should be an id: a whole number, or a text of 1 to {MAX_ID_LENGTH} characters")
]
WhereValue = Annotated[
    WhereText | WhereTexts,
    _one_reason(f"should be a text of at most {MAX_ID_LENGTH} characters, or a list of at most {MAX_VALUES} of them"),
]
N = Annotated[int, Field(ge=1, le=MAX_N, description="Maximum number of items."), BeforeValidator(_reject_other_types)]
History = Annotated[
    list[Id],
    Field(min_length=1, max_length=MAX_HISTORY, description="Ids of the items that the user likes.", examples=[[1, 7]]),
]

OnUnknownItems = Annotated[
    Literal["error", "skip"],
    Field(description="What to do about items that the model does not know: leave them out and list them, or fail."),
]


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [values]})


class RecommendOptions(BaseModel):
    """Options of all recommendation requests."""

    model_config = ConfigDict(extra="forbid")

    n: N = 10
    exclude_seen: StrictBool = Field(True, description="Exclude the items of the user's history.")
    items: Annotated[list[Id], Field(min_length=1, max_length=MAX_CANDIDATES)] | None = Field(
        None, description="Ids of the candidate items; all items by default."
    )
    where: dict[WhereText, WhereValue] | None = Field(
        None, description="Attributes that items must have, such as {'category': 'Horror'}.", max_length=MAX_WHERE
    )
    mix: float = Field(
        0.0,
        ge=0,
        le=1,
        strict=True,  # no "0.5" and no true
        description="0: best scores only; the larger, the more items from outside the user's largest interest.",
    )
    mix_by: Literal["categories", "interests"] | None = Field(
        None,
        description="What an interest is: categories of the items, or interests, the vectors of a user, which the"
        " capabilities of a model tell of. By default categories where the items have them.",
    )
    explain: StrictBool = Field(False, description="Give a reason for each item.")
    exclude: Annotated[list[Id], Field(max_length=MAX_CANDIDATES)] | None = Field(
        None, description="Ids of items that must not be recommended."
    )
    on_unknown: Literal["error", "skip", "popular"] = Field(
        "skip",
        description="What to do about ids that the model does not know. skip: answer the rest and list them; popular:"
        " also give unknown users the most popular items; error: answer nothing.",
    )


class RecommendRequest(RecommendOptions):
    """A request of recommendations for one user."""

    model_config = _example(user=7, n=5, explain=True)

    user: Id


class BatchRecommendRequest(RecommendOptions):
    """A request of recommendations for several users."""

    model_config = _example(users=[7, 8], n=5)

    users: Annotated[list[Id], Field(min_length=1, max_length=MAX_USERS)]


class NewUserRecommendRequest(RecommendOptions):
    """A request of recommendations for a user who is not in the training data."""

    model_config = _example(history=[1, 2, 3], n=5, mix=0.5)

    history: Annotated[list[Id], Field(max_length=MAX_HISTORY, examples=[[1, 7]])] = Field(
        description="Ids of the items that the user likes; none gives the most popular items."
    )


class NewUserRequest(BaseModel):
    """The history of a user who is not in the training data."""

    model_config = _example(history=[1, 2, 3])

    history: History
    on_unknown: OnUnknownItems = "skip"


class SimilarItemsRequest(BaseModel):
    """A request of the items that are most similar to each of several items."""

    model_config = _example(items=[1, 7], n=5)

    items: Annotated[list[Id], Field(min_length=1, max_length=MAX_USERS)]
    n: N = 10
    on_unknown: OnUnknownItems = "skip"


class Item(BaseModel):
    """An item of the catalogue."""

    id: Id
    title: str
    categories: list[str] = []


class ItemReference(BaseModel):
    """An item by id and title."""

    id: Id
    title: str


class ItemReason(BaseModel):
    """Why an item is recommended."""

    interest: int | None = Field(description="Number of the interest that the item matches; null without interests.")
    share: float = Field(description="Share of that interest in the history.")
    name: str
    liked: list[ItemReference] = Field(description="The most similar items of the history.")
    categories: list[str]
    text: str


class RecommendedItem(Item):
    """An item of a recommendation list."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": 12, "title": "Alien", "categories": ["Horror"], "score": -0.31}]}
    )

    score: float
    reason: ItemReason | None = None


class UnknownIds(BaseModel):
    """Ids of a request that the model does not know; the answer is without them."""

    users: list[Id] = []
    items: list[Id] = []


class RecommendationList(BaseModel):
    """Recommended items, best first."""

    items: list[RecommendedItem]
    popular: bool = Field(False, description="These are the most popular items: nothing is known about the user.")
    unknown: UnknownIds | None = None


class UserRecommendations(BaseModel):
    """Recommended items of one user, best first."""

    user: Id
    items: list[RecommendedItem]
    popular: bool = Field(False, description="These are the most popular items: nothing is known about the user.")


class BatchRecommendations(BaseModel):
    """One list per known user, in the order of the request."""

    lists: list[UserRecommendations]
    unknown: UnknownIds | None = None


class FeedbackRequest(BaseModel):
    """What a person says about an item."""

    model_config = _example(user=7, item=12, action="like")

    user: Id = Field(
        description="A user of the training data, or somebody new: a whole number if the user ids of the model are"
        " whole numbers, else a text without control characters."
    )
    item: Id
    action: Literal["like", "dislike", "hide", "clear"] = Field(
        description="like: part of the history; dislike: no part of it, and not recommended; hide: not recommended;"
        " clear: take back what was said."
    )


class FeedbackResponse(BaseModel):
    """How many items a person has said something about."""

    user: Id
    likes: int
    dislikes: int
    hides: int


class SimilarItem(Item):
    """An item and its similarity."""

    similarity: float


class SimilarItems(BaseModel):
    """Similar items, most similar first."""

    items: list[SimilarItem]


class SimilarToItem(SimilarItems):
    """Items that are similar to one of several items."""

    item: Id


class BatchSimilarItems(BaseModel):
    """One list per known item, in the order of the request."""

    lists: list[SimilarToItem]
    unknown: UnknownIds | None = None


class SimilarUser(BaseModel):
    """A user and their similarity."""

    id: Id
    similarity: float


class SimilarUsers(BaseModel):
    """Similar users, most similar first."""

    users: list[SimilarUser]


class CategoryShare(BaseModel):
    """A category and its share."""

    name: str
    share: float


class InterestGroup(BaseModel):
    """One interest of a user: a part of the history."""

    number: int
    share: float = Field(description="Share of the history.")
    name: str
    items: list[Item] = Field(description="Liked items of this interest, closest first.")
    categories: list[CategoryShare] = Field(description="Most frequent first.")
    place: list[float] | None = Field(
        description="Place of the interest on the map of items: x and y in -1..1; null if there is none yet."
    )


class InterestList(BaseModel):
    """The interests of a user, largest first."""

    interests: list[InterestGroup]
    unknown: UnknownIds | None = None


class ItemList(BaseModel):
    """A list of items."""

    items: list[Item]
    unknown: UnknownIds | None = None


class UserSummary(BaseModel):
    """A user of the training data."""

    id: Id
    likes: int = Field(description="Number of items that the user likes.")


class UserList(BaseModel):
    """Users, best match first."""

    users: list[UserSummary]


class LikesOfItem(UserList):
    """Who likes an item, the most active users first."""

    likes: int = Field(description="Number of users who like it, in the training data.")


class MapItem(Item):
    """An item on the map."""

    x: float
    y: float
    likes: int


class ItemMapResponse(BaseModel):
    """The most popular items in two dimensions, from -1 to 1."""

    items: list[MapItem]


class ModelInfo(BaseModel):
    """A served model."""

    name: str = Field(description="main or compare.")
    model: str
    model_class: str
    fingerprint: str = Field(description="Start of a checksum of model, data and titles; equal for equal models.")
    mark: str = Field(description="Old name of fingerprint; the next version removes it.", deprecated=True)
    version: str = Field(description="Version of dpcml that trained the model.")
    created: str
    loaded: str
    users: int
    items: int
    positives: int
    has_titles: bool
    categories: list[str]
    parameters: dict[str, Any]
    example: Id = Field(description="A user with several interests, to begin with.")
    capabilities: dict[str, bool] = Field(description="For each kind of request, whether the model can answer it.")
    able: dict[str, bool] = Field(description="Old name of capabilities; the next version removes it.", deprecated=True)


class ModelList(BaseModel):
    """All served models."""

    models: list[ModelInfo]
    feedback: bool = Field(False, description="Whether the server takes feedback.")


class ReloadResponse(BaseModel):
    """The fingerprint of each model after a reload."""

    models: dict[str, str]


class HealthResponse(BaseModel):
    """Whether the server runs."""

    status: str


class ReadyResponse(HealthResponse):
    """Whether the server takes requests."""

    workers: int = Field(description="Workers that take requests.")
    workers_wanted: int = Field(description="Configured workers; the log says why some of them are missing.")


class ErrorResponse(BaseModel):
    """Why a request failed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"error": "unknown_id", "reason": "unknown user 'x'", "hint": "find ids with /api/v1/users"}]
        }
    )

    error: str
    reason: str
    hint: str
