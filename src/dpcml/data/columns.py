"""Which column holds what: by name where the caller says so, by common names otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from dpcml.utils.errors import DataError

# Common names, without case, spaces and underscores; earlier ones win.
COMMON_NAMES = {
    "user": ("userid", "user", "uid", "userno", "customerid", "customer", "clientid", "memberid", "visitorid",
             "accountid", "reviewerid", "sessionid", "session", "useridx"),
    "item": ("itemid", "item", "iid", "movieid", "movie", "productid", "product", "articleid", "article",
             "trackid", "songid", "artistid", "bookid", "isbn", "gameid", "game", "asin", "sku", "parentasin",
             "businessid", "venueid", "contentid", "documentid", "docid", "adid", "itemidx"),
    "rating": ("rating", "ratings", "stars", "score", "overall", "weight", "value", "ratingge4", "count",
               "plays"),
    "time": ("timestamp", "time", "ts", "unixtime", "unixreviewtime", "datetime", "date", "createdat",
             "eventtime"),
}  # fmt: skip
OPTIONAL = ("rating", "time")


@dataclass(frozen=True)
class Columns:
    """Names of the columns that play a role; ``None`` where there is no such column."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None

    def named(self) -> dict[str, str]:
        """Return role and column name of the roles that have one."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {role: name for role, name in pairs if name is not None}


def plain(name: str) -> str:
    """Return a column name without case, spaces, underscores and other marks.

    Examples
    --------
    >>> plain("User_ID"), plain("movieId")
    ('userid', 'movieid')
    """
    return "".join(letter for letter in name.lower() if letter.isalnum())


def assign_columns(
    available: Sequence[str], given: Columns, source: str = "the frame"
) -> tuple[Columns, tuple[str, ...]]:
    """Find the columns for user, item, rating and time, and say what was guessed.

    Parameters
    ----------
    available
        The names of all columns.
    given
        Names the caller chose; each must exist once. An empty name for rating or time means no such column.
    source
        What to call the data in an error.

    Examples
    --------
    >>> assign_columns(["userId", "movieId", "stars"], Columns())[0]
    Columns(user='userId', item='movieId', rating='stars', time=None)
    >>> assign_columns(["userId", "movieId", "stars"], Columns(rating=""))[0]
    Columns(user='userId', item='movieId', rating=None, time=None)
    >>> assign_columns(["a", "b"], Columns(user="a"), "likes.csv")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: likes.csv: which column holds the item? None of 'a', 'b' has a
    common name; pass item='...'
    """
    unwanted = {role: None for role in OPTIONAL if getattr(given, role) == ""}
    chosen = replace(given, **unwanted)
    _check_given(available, chosen, source)
    taken = set(chosen.named().values())
    guessed: dict[str, str] = {}
    for role, common in COMMON_NAMES.items():
        if getattr(chosen, role) is not None or role in unwanted:
            continue
        candidates = {plain(name): name for name in reversed(available) if name not in taken}
        found = next((candidates[name] for name in common if name in candidates), None)
        if found is not None:
            guessed[role] = found
            taken.add(found)
        elif role not in OPTIONAL:
            raise DataError(
                f"{source}: which column holds the {role}? None of {_listed(available)} has a common name;"
                f" pass {role}='...'"
            )
    said = ", ".join(f"{role} = {name!r}" for role, name in guessed.items())
    _check_once(available, guessed, source)
    return replace(chosen, **guessed), (f"guessed: {said}",) if said else ()


def _check_given(available: Sequence[str], given: Columns, source: str) -> None:
    roles: dict[str, str] = {}
    for role, name in given.named().items():
        if name not in available:
            raise DataError(f"{source}: no column {name!r} for the {role}; the columns are {_listed(available)}")
        if name in roles:
            raise DataError(f"{source}: column {name!r} is named as {roles[name]} and as {role}; name two columns")
        roles[name] = role
    _check_once(available, given.named(), source)


def _check_once(available: Sequence[str], chosen: Mapping[str, str], source: str) -> None:
    for role, name in chosen.items():
        if list(available).count(name) > 1:
            raise DataError(f"{source}: column {name!r} for the {role} stands twice; rename one of them")


def _listed(available: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in available)
