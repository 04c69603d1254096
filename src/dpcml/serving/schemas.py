"""What requests and answers look like, with examples; FastAPI checks requests against them and describes both."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr

MAX_N = 1000  # items of one list
MAX_USERS = 1000  # users of one request
MAX_HISTORY = 5000  # items that somebody likes
MAX_CHOICE = 100_000  # items to choose from
MAX_LISTED = 100_000  # items of all lists of one request
LONGEST_ID = 512  # characters


def _no_other_kind(value: Any) -> Any:
    if isinstance(value, (bool, str)):
        raise ValueError("should be a whole number")
    return value


TextId = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_ID, pattern=r"^[^\x00]+$")]
Whole = Annotated[int, BeforeValidator(_no_other_kind)]  # 10.0 is a whole number in JSON, "10" and true are none
Id = Whole | TextId
N = Annotated[int, Field(ge=1, le=MAX_N, description="How many items at most."), BeforeValidator(_no_other_kind)]
History = Annotated[
    list[Id],
    Field(min_length=1, max_length=MAX_HISTORY, description="Ids of the items that somebody likes.", examples=[[1, 7]]),
]


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [values]})


class Options(BaseModel):
    """What lists are made of."""

    model_config = ConfigDict(extra="forbid")

    n: N = 10
    exclude_seen: StrictBool = Field(True, description="Leave out what the person likes already.")
    items: Annotated[list[Id], Field(min_length=1, max_length=MAX_CHOICE)] | None = Field(
        None, description="Ids of the only items to choose from; all by default."
    )
    where: dict[StrictStr, StrictStr | list[StrictStr]] | None = Field(
        None, description="Attributes that items must have, such as {'category': 'Horror'}.", max_length=20
    )
    mix: float = Field(
        0.0, ge=0, le=1, description="0: pure relevance; 0.5: as the history's shares; 1: equal service of interests."
    )
    explain: StrictBool = Field(False, description="Say why each item is recommended.")


class RecommendOne(Options):
    """A list for one user."""

    model_config = _example(user=7, n=5, explain=True)

    user: Id


class RecommendMany(Options):
    """A list for each of several users."""

    model_config = _example(users=[7, 8], n=5)

    users: Annotated[list[Id], Field(min_length=1, max_length=MAX_USERS)]


class RecommendNew(Options):
    """A list for somebody who was not in the training data."""

    model_config = _example(history=[1, 2, 3], n=5, mix=0.5)

    history: History


class NewHistory(BaseModel):
    """What somebody likes who was not in the training data."""

    model_config = _example(history=[1, 2, 3])

    history: History


class Item(BaseModel):
    """An item of the catalogue."""

    id: Id
    title: str
    categories: list[str] = []


class Named(BaseModel):
    """An item by id and title."""

    id: Id
    title: str


class Why(BaseModel):
    """Why an item stands in a list."""

    interest: int | None = Field(description="Number of the interest that it serves, if the model knows interests.")
    share: float = Field(description="Share of that interest in the history.")
    name: str
    liked: list[Named] = Field(description="Liked items that are most like it.")
    categories: list[str]
    text: str


class Recommended(Item):
    """An item of a list."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": 12, "title": "Alien", "categories": ["Horror"], "score": -0.31}]}
    )

    score: float
    reason: Why | None = None


class OneList(BaseModel):
    """A list, best first."""

    items: list[Recommended]


class UserList(OneList):
    """A user's list, best first."""

    user: Id


class ManyLists(BaseModel):
    """A list for each user, in the order of the request."""

    lists: list[UserList]


class SimilarItem(Item):
    """An item and how similar it is."""

    similarity: float


class SimilarItems(BaseModel):
    """Items like one item, most similar first."""

    items: list[SimilarItem]


class SimilarUser(BaseModel):
    """A user and how similar they are."""

    id: Id
    similarity: float


class SimilarUsers(BaseModel):
    """Users like one user, most similar first."""

    users: list[SimilarUser]


class Category(BaseModel):
    """A category and its share."""

    name: str
    share: float


class OneInterest(BaseModel):
    """One of a person's interests: a group of what they like."""

    number: int
    share: float = Field(description="Of the history.")
    name: str
    items: list[Item] = Field(description="Liked items of this interest, nearest first.")
    categories: list[Category] = Field(description="Dominant first.")
    place: list[float] | None = Field(description="Where the interest lies on the map of items: x, y in -1..1.")


class Interests(BaseModel):
    """A person's interests, largest first."""

    interests: list[OneInterest]


class Items(BaseModel):
    """Items, best found first."""

    items: list[Item]


class KnownUser(BaseModel):
    """A user of the training data."""

    id: Id
    likes: int = Field(description="How many items they like.")


class Users(BaseModel):
    """Users, best found first."""

    users: list[KnownUser]


class MapItem(Item):
    """An item on the map."""

    x: float
    y: float
    likes: int


class Map(BaseModel):
    """The most liked items in two dimensions, from -1 to 1."""

    items: list[MapItem]


class ModelInfo(BaseModel):
    """What is served."""

    name: str = Field(description="main or compare.")
    model: str
    model_class: str
    mark: str = Field(description="Start of a checksum of model, data and texts: two with the same mark are the same.")
    version: str = Field(description="The dpcml that trained it.")
    created: str
    loaded: str
    users: int
    items: int
    positives: int
    has_titles: bool
    categories: list[str]
    parameters: dict[str, Any]
    able: dict[str, bool] = Field(description="What the model can do beside recommending to users it knows.")


class Models(BaseModel):
    """All models that are served."""

    models: list[ModelInfo]


class Reloaded(BaseModel):
    """The models after a reload, by name, with their marks."""

    models: dict[str, str]


class Alive(BaseModel):
    """Whether the server lives."""

    status: str


class Ready(Alive):
    """Whether the server takes requests."""

    workers: int = Field(description="Processes that take requests.")
    workers_wanted: int = Field(description="Processes that there should be; with fewer, the log tells why.")


class Problem(BaseModel):
    """Why a request was not met."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"error": "unknown_id", "reason": "unknown user 'x'", "hint": "find ids with /api/v1/users"}]
        }
    )

    error: str
    reason: str
    hint: str
