"""Columns of a table: which holds what, and their values as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl

from dpcml.data.csr import distinct
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.errors import DataError

# Common names, without case, spaces and underscores; earlier ones win.
COMMON_NAMES = {
    "user": ("userid", "user", "uid", "userno", "customerid", "customer", "clientid", "memberid", "visitorid",
             "accountid", "reviewerid", "sessionid", "session", "useridx"),
    "item": ("itemid", "item", "iid", "movieid", "movie", "productid", "product", "articleid", "article",
             "trackid", "songid", "artistid", "bookid", "isbn", "gameid", "game", "asin", "sku", "parentasin",
             "businessid", "venueid", "contentid", "documentid", "docid", "adid", "itemidx"),
    "rating": ("rating", "ratings", "stars", "score", "overall", "weight", "value", "ratingge4", "count",
               "plays", "liked", "like", "islike", "label", "preference"),
    "time": ("timestamp", "time", "ts", "unixtime", "unixreviewtime", "datetime", "date", "createdat",
             "eventtime"),
    "weight": (),  # never guessed
}  # fmt: skip
OPTIONAL = ("rating", "time", "weight")


def normalized(name: str) -> str:
    """Return a column name without case, spaces, underscores and other marks.

    Examples
    --------
    >>> normalized("User_ID"), normalized("movieId")
    ('userid', 'movieid')
    """
    return "".join(letter for letter in name.lower() if letter.isalnum())


def assign_columns(
    available: Sequence[str], given: Mapping[str, str | None], source: str = "the frame"
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Find the columns for user, item, rating, time and weight, and say what was guessed.

    Parameters
    ----------
    available
        The names of all columns.
    given
        Names by role that the caller chose; each must exist once, and only the weight may be another role's column. An
        empty name for rating or time means no such column.
    source
        What to call the data in an error.

    Examples
    --------
    >>> assign_columns(["userId", "movieId", "stars"], {})[0]
    {'user': 'userId', 'item': 'movieId', 'rating': 'stars'}
    >>> assign_columns(["userId", "movieId", "stars"], {"rating": ""})[0]
    {'user': 'userId', 'item': 'movieId'}
    >>> assign_columns(["a", "b"], {"user": "a"}, "likes.csv")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: likes.csv: which column holds the item? None of 'a', 'b' has a
    common name; pass item='...' (--item)
    """
    listed = ", ".join(repr(name) for name in available)
    unwanted = [role for role in OPTIONAL if given.get(role) == ""]
    chosen: dict[str, str] = {}
    for role, name in given.items():
        if name is None or role in unwanted:
            continue
        if name not in available:
            raise DataError(f"{source}: no column {name!r} for the {role}; the columns are {listed}")
        other = next((other for other, taken in chosen.items() if taken == name), None)
        if other is not None and "weight" not in (role, other):
            raise DataError(f"{source}: column {name!r} is named as {other} and as {role}; name two columns")
        chosen[role] = name
    found = dict(chosen)
    for role, names in COMMON_NAMES.items():
        if role in chosen or role in unwanted:
            continue
        taken = {name for other, name in found.items() if other != "weight"}
        free = {normalized(name): name for name in reversed(available) if name not in taken}
        guess = next((free[name] for name in names if name in free), None)
        if guess is not None:
            found[role] = guess
        elif role not in OPTIONAL:
            raise DataError(
                f"{source}: which column holds the {role}? None of {listed} has a common name;"
                f" pass {role}='...' (--{role})"
            )
    for role, name in found.items():
        if list(available).count(name) > 1:
            raise DataError(f"{source}: column {name!r} for the {role} occurs twice; rename one of them")
    ordered = {role: found[role] for role in COMMON_NAMES if role in found}
    said = ", ".join(f"{role} = {name!r}" for role, name in ordered.items() if role not in chosen)
    return ordered, (f"guessed: {said}",) if said else ()


Where: TypeAlias = Callable[[int], str]  # file and line of a row: "likes.csv, line 7"
LARGEST_ID = 2**63 - 1
EXACT = 2**53  # floats above it skip whole numbers
WHOLE = r"^(?:0|-?[1-9][0-9]*)$"  # leading zeros are part of a code, not of a number


def reject(bad: pl.Series | BoolArray, where: Where, message: Callable[[int], str]) -> None:
    """Raise on the first row marked bad, with its file and line.

    Examples
    --------
    >>> reject(np.array([False, True]), lambda row: f"likes.csv, line {row + 1}", lambda row: "no user")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: likes.csv, line 2: no user
    """
    rows = np.flatnonzero(np.asarray(bad))
    if len(rows):
        row = int(rows[0])
        raise DataError(f"{where(row)}: {message(row)}")


def encode_ids(column: pl.Series, kind: str, where: Where, text: bool = False) -> tuple[IntArray, Array]:
    """Return the position of each row's id among the distinct ids in order, and those ids.

    Ids become integers where all of them are whole numbers, text otherwise.

    Parameters
    ----------
    column
        Integers, floats that are whole, or text. Text is kept to the letter, spaces around it too.
    kind
        ``"user"`` or ``"item"``, for errors.
    where
        Returns file and line of a row, for errors.
    text
        Keep ids as text, even where all of them are whole numbers.

    Examples
    --------
    >>> codes, ids = encode_ids(pl.Series(["9", "10", "9"]), "user", str)
    >>> codes.tolist(), ids.tolist()
    ([0, 1, 0], [9, 10])
    >>> encode_ids(pl.Series(["007", "10"]), "user", str)[1].tolist()
    ['007', '10']
    """
    column = _integers(column) if column.dtype == pl.String and not text else column
    column = _plain(column, kind, where)
    reject(column.is_null(), where, lambda row: f"the {kind} id is missing: every row needs one")
    column = column.cast(pl.String) if text else _whole(column, kind, where)
    if column.dtype.is_integer():
        return _encode_whole(column.to_numpy())
    words = column.unique().sort()
    places = column.cast(pl.Enum(words)).to_physical().to_numpy()
    return places.astype(np.int64), np.array(words.to_list(), dtype=object)


def _encode_whole(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return the position of each id among the distinct ones in order, and those."""
    size = int(values.max()) + 1 if len(values) else 0
    if size > 2 * len(values):
        ids = distinct(np.sort(values)).astype(np.int64)
        return np.searchsorted(ids, values), ids
    seen = np.zeros(size, dtype=bool)  # ids without many gaps: a table of all is smaller and faster than sorting
    seen[values] = True
    places: IntArray = np.cumsum(seen) - 1
    small = places.astype(np.int32) if size < 2**31 else places
    return small[values], np.flatnonzero(seen)


def _integers(words: pl.Series) -> pl.Series:
    """Return text as integers where all of it is whole numbers in their usual form; the fast way for most files."""
    values = words.cast(pl.Int64, strict=False)
    if values.null_count() or (values < 0).any():
        return words
    usual = len(values) + sum(int((values >= 10**digits).sum()) for digits in range(1, 19))
    return values if words.str.len_bytes().sum() == usual else words  # other forms ("007", "+7", " 7") are longer


def _plain(column: pl.Series, kind: str, where: Where) -> pl.Series:
    """Return ids as integers or text, missing ones as null."""
    if column.dtype.is_integer():
        return column
    if column.dtype.is_float():
        column = column.fill_nan(None)
        reject(
            column.is_infinite().fill_null(False),
            where,
            lambda row: f"{kind} id {column[row]}: must be finite",
        )
        if (column.drop_nulls() == column.drop_nulls().round()).all():
            message = "floats this large are not exact; convert the column to integers or text"
            reject(
                (column.abs() > EXACT).fill_null(False),
                where,
                lambda row: f"{kind} id {column[row]}: {message}",
            )
            return column.cast(pl.Int64)
    words = _text(column)
    if words is None:
        raise DataError(f"{where(0)}: {kind} ids of type {column.dtype}: must be whole numbers or text")
    blank = words.str.contains(r"^\s*$").fill_null(True)
    return words.set(blank, None) if blank.any() else words


def _text(column: pl.Series) -> pl.Series | None:
    """Return a column as text, None where its type has no written form."""
    if column.dtype.is_nested():
        return None
    try:
        return column.cast(pl.String)
    except pl.exceptions.PolarsError:
        return None


def _whole(column: pl.Series, kind: str, where: Where) -> pl.Series:
    """Return ids as integers where all are whole numbers written plainly, as text otherwise."""
    plain = column
    if column.dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64) and not (column < 0).any():
        return column
    if column.dtype == pl.String:
        plain = column.str.strip_chars()
        if not plain.str.contains(WHOLE).all():
            return column
    numbers = plain.cast(pl.Int64, strict=False)  # null outside of 64 bits
    outside = numbers.is_null() | (numbers < 0)
    rule = f"whole-number ids must lie between 0 and {LARGEST_ID}; pass text_ids=True (--text-ids) to treat ids as text"
    reject(outside, where, lambda row: f"{kind} id '{column[row]}': {rule}")
    return numbers


def amounts(column: pl.Series, where: Where) -> FloatArray:
    """Return a column of weights as numbers that are finite and at least 0, or report the first that is not.

    Examples
    --------
    >>> amounts(pl.Series(["1", "-2"]), lambda row: f"line {row + 2}")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: line 3: weight '-2': must be at least 0
    """
    values = numbers(column, "weight", where)
    reject(values < 0, where, lambda row: f"weight {column[row]!r}: must be at least 0")
    return values


def numbers(column: pl.Series, name: str, where: Where) -> FloatArray:
    """Return a column as finite numbers, or report the first value that is none.

    Examples
    --------
    >>> numbers(pl.Series(["1", " 2.5"]), "rating", str).tolist()
    [1.0, 2.5]
    >>> numbers(pl.Series(["1", "inf"]), "rating", lambda row: f"line {row + 2}")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: line 3: rating 'inf': must be a finite number
    """
    kind = column.dtype
    if kind == pl.String:
        values = _floats(column)
    elif kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        values = column.cast(pl.Float64, strict=False)
    else:
        raise DataError(f"{where(0)}: {name} of type {kind}: must be numbers")
    bad = values.is_null() | ~values.is_finite().fill_null(False)
    reject(bad, where, lambda row: f"{name} {column[row]!r}: must be a finite number")
    return values.to_numpy()


def _floats(words: pl.Series) -> pl.Series:
    """Return text as floats, null where it is none; spaces around numbers are cut off only where there are any."""
    values = words.cast(pl.Float64, strict=False)
    return values if not values.null_count() else words.str.strip_chars().cast(pl.Float64, strict=False)


def seconds(column: pl.Series, where: Where) -> FloatArray:
    """Return times as seconds since 1970: numbers as they are, dates and ISO texts converted.

    ISO texts without an offset are taken as UTC.

    Examples
    --------
    >>> seconds(pl.Series(["1970-01-02", "1970-01-01T00:00:05", "1970-01-01 02:00+02:00", "7"]), str).tolist()
    [86400.0, 5.0, 0.0, 7.0]
    """
    rule = "must be a number of seconds or an ISO date; pass time='' (--time '') to leave the column out"
    if column.dtype in (pl.Date, pl.Datetime):
        times = column.dt.timestamp("us") / 1e6
    elif column.dtype == pl.String:
        times = _floats(column)
        if times.null_count():
            times = times.fill_null(_iso_times(column.str.strip_chars()))
    elif column.dtype.is_numeric() or column.dtype == pl.Null:
        times = column.cast(pl.Float64)
    else:
        raise DataError(f"{where(0)}: time of type {column.dtype}: {rule}")
    bad = times.is_null() | ~times.is_finite().fill_null(False)
    reject(bad, where, lambda row: f"time {column[row]!r}: {rule}")
    return times.to_numpy()


def _iso_times(words: pl.Series) -> pl.Series:
    """Return ISO dates and times as seconds since 1970, null for other texts."""
    # One written form, so that one pattern reads all: seconds and offset are added where missing.
    full = (
        words.str.replace(r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$", "${1}T00:00")
        .str.replace(r"^([0-9]{4}-[0-9]{2}-[0-9]{2}) ", "${1}T")
        .str.replace(r"[zZ]$", "+00:00")
        .str.replace(r"(T[0-9:.]+)$", "${1}+00:00")
        .str.replace(r"(T[0-9]{2}:[0-9]{2})([+-])", "${1}:00${2}")
    )
    dates = full.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%#z", strict=False, time_unit="us")
    return dates.dt.timestamp("us") / 1e6
