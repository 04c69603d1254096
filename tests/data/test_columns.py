"""Columns: which plays which role, and their values as arrays."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcml.data.columns import COMMON_NAMES, assign_columns, encode_ids, normalized, numbers, seconds
from dpcml.utils.errors import DataError


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["userId", "movieId", "rating", "timestamp"], ("userId", "movieId", "rating", "timestamp")),
        (["USER ID", "Item-Id"], ("USER ID", "Item-Id", None, None)),
        (["asin", "reviewerID", "overall", "unixReviewTime"], ("reviewerID", "asin", "overall", "unixReviewTime")),
        (["item", "item_id", "user", "user_id"], ("user_id", "item_id", None, None)),
        (["title", "uid", "iid", "date"], ("uid", "iid", None, "date")),
    ],
)
def test_common_names(names: list[str], found: tuple[str | None, ...]) -> None:
    columns, notes = assign_columns(names, {})
    every = (*found, None)  # weights are never guessed
    assert columns == {role: name for role, name in zip(COMMON_NAMES, every, strict=True) if name}
    assert notes[0].startswith(f"guessed: user = {found[0]!r}, item = {found[1]!r}")


def test_of_names_that_differ_in_marks_only_the_first_counts() -> None:
    assert assign_columns(["user_id", "userId", "item"], {})[0]["user"] == "user_id"


def test_given_names_come_first() -> None:
    columns, notes = assign_columns(["user", "item", "other"], {"item": "other"})
    assert columns == {"user": "user", "item": "other"}
    assert notes == ("guessed: user = 'user'",)


def test_a_given_column_is_not_guessed_for_another_role() -> None:
    with pytest.raises(DataError, match="which column holds the item"):
        assign_columns(["user", "item"], {"user": "item"})


def test_all_given() -> None:
    assert assign_columns(["a", "b"], {"user": "a", "item": "b"}) == ({"user": "a", "item": "b"}, ())


def test_wrong_name_lists_the_columns() -> None:
    with pytest.raises(DataError, match=r"likes\.csv: no column 'c' for the rating; the columns are 'a', 'b'"):
        assign_columns(["a", "b"], {"user": "a", "item": "b", "rating": "c"}, "likes.csv")


def test_one_column_for_two_roles() -> None:
    with pytest.raises(DataError, match="column 'a' is named as user and as item"):
        assign_columns(["a", "b"], {"user": "a", "item": "a"})


@pytest.mark.parametrize("given", [{}, {"user": "user"}])
def test_name_that_stands_twice(given: dict[str, str]) -> None:
    with pytest.raises(DataError, match="column 'user' for the user occurs twice"):
        assign_columns(["user", "item", "user"], given)


def test_unused_names_may_stand_twice() -> None:
    assert assign_columns(["user", "item", "x", "x"], {})[0] == {"user": "user", "item": "item"}


def test_optional_columns_can_be_left_out() -> None:
    columns, _ = assign_columns(["user", "item", "rating", "time"], {"rating": "", "time": ""})
    assert columns == {"user": "user", "item": "item"}
    with pytest.raises(DataError, match="no column '' for the user"):
        assign_columns(["user", "item"], {"user": ""})


def test_nothing_common() -> None:
    with pytest.raises(
        DataError, match=r"which column holds the user\? None of 'a', 'b' has a common name; pass user='...' \(--user\)"
    ):
        assign_columns(["a", "b"], {})


def test_plain() -> None:
    assert [normalized(name) for name in ("User_ID", " user id ", "user-id", "")] == ["userid"] * 3 + [""]


def where(row: int) -> str:
    return f"line {row + 1}"


def ids(values: list[object], **options: object) -> list[object]:
    codes, distinct = encode_ids(pl.Series(values, strict=False), "user", where, **options)  # type: ignore[arg-type]
    return distinct[codes].tolist()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([3, 1, 3], [3, 1, 3]),
        (["10", "9", "10"], [10, 9, 10]),
        ([" 7", "8 "], [7, 8]),
        ([1.0, 2.0], [1, 2]),
        ([1.5, 2.0], ["1.5", "2.0"]),
        (["007", "8"], ["007", "8"]),
        (["-0", "1"], ["-0", "1"]),
        (["1.0", "2"], ["1.0", "2"]),
        (["a ", "a"], ["a ", "a"]),
        (["٣", "4"], ["٣", "4"]),
        (["-5", "x"], ["-5", "x"]),
        ([True, False], ["true", "false"]),
        ([Decimal("1.5")], ["1.5"]),
        ([date(2020, 1, 2)], ["2020-01-02"]),
    ],
)
def test_ids(given: list[object], expected: list[object]) -> None:
    assert ids(given) == expected


def test_kinds_of_integers_give_the_same_ids() -> None:
    for kind in (pl.Int8, pl.UInt16, pl.Int32, pl.UInt64, pl.Float32):
        codes, distinct = encode_ids(pl.Series([5, 3], dtype=kind), "user", where)
        assert (codes.tolist(), distinct.tolist(), distinct.dtype) == ([1, 0], [3, 5], np.int64)


def test_text_on_request() -> None:
    assert ids([10, 9], text=True) == ["10", "9"]
    assert ids(["-5"], text=True) == ["-5"]


@pytest.mark.parametrize("given", [["a", None], ["a", ""], ["a", " \t"], [1, None], [1.0, float("nan")]])
def test_missing_ids(given: list[object]) -> None:
    with pytest.raises(DataError, match="line 2: the user id is missing"):
        ids(given)


@pytest.mark.parametrize("value", [-1, 2**63, "-1", str(2**63), "-" + "9" * 50])
def test_ids_out_of_range(value: object) -> None:
    kind = pl.String if isinstance(value, str) else pl.Int128
    column = pl.Series([1, value] if kind != pl.String else ["1", value], dtype=kind)
    with pytest.raises(DataError, match=f"line 2: user id '{value}': whole-number ids must lie between 0 and"):
        encode_ids(column, "user", where)


def test_unsigned_ids_beyond_the_largest() -> None:
    with pytest.raises(DataError, match=f"line 1: user id '{2**64 - 1}'"):
        encode_ids(pl.Series([2**64 - 1], dtype=pl.UInt64), "user", where)


def test_infinite_ids() -> None:
    with pytest.raises(DataError, match="line 2: user id inf: must be finite"):
        ids([1.0, float("inf")])


def test_floats_that_are_not_exact() -> None:
    with pytest.raises(DataError, match=r"line 1: user id .*: floats this large are not exact"):
        ids([2.0**60])


@pytest.mark.parametrize("column", [pl.Series([[1]]), pl.Series([{"a": 1}]), pl.Series([object()])])
def test_ids_of_other_types(column: pl.Series) -> None:
    with pytest.raises(DataError, match="line 1: user ids of type"):
        encode_ids(column, "user", where)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=1))
def test_text_ids_come_back_in_order(words: list[str]) -> None:
    codes, distinct = encode_ids(pl.Series(words), "user", where, text=True)
    assert distinct[codes].tolist() == words
    assert distinct.tolist() == sorted(set(words))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pl.Series(["1", " 2.5 ", "1e3"]), [1.0, 2.5, 1000.0]),
        (pl.Series([True, False]), [1.0, 0.0]),
        (pl.Series([1, 2], dtype=pl.UInt8), [1.0, 2.0]),
        (pl.Series([Decimal("1.5")]), [1.5]),
    ],
)
def test_numbers(column: pl.Series, expected: list[float]) -> None:
    assert numbers(column, "rating", where).tolist() == expected


@pytest.mark.parametrize("value", ["x", "", "nan", "inf", "-Infinity", "1,5", None, float("nan"), float("inf")])
def test_what_is_no_finite_number(value: object) -> None:
    first = "1" if isinstance(value, str) or value is None else 1.0
    with pytest.raises(DataError, match=r"line 2: rating .*: must be a finite number"):
        numbers(pl.Series([first, value]), "rating", where)


def test_dates_are_no_ratings() -> None:
    with pytest.raises(DataError, match="line 1: rating of type Date: must be numbers"):
        numbers(pl.Series([date(2020, 1, 1)]), "rating", where)


HOUR = 3600.0
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("881250949", 881250949.0),
        ("1.5e9", 1.5e9),
        ("2020-01-01", NOON - 12 * HOUR),
        ("2020-01-01T12:00", NOON),
        ("2020-01-01 12:00:00", NOON),
        (" 2020-01-01T12:00:00.250 ", NOON + 0.25),
        ("2020-01-01T12:00:00Z", NOON),
        ("2020-01-01T12:00:00+02:00", NOON - 2 * HOUR),
        ("2020-01-01 12:00-0100", NOON + HOUR),
        ("2020-01-01T12:00:00.123456789Z", NOON + 0.123456),
    ],
)
def test_times_as_text(text: str, expected: float) -> None:
    assert seconds(pl.Series([text]), where).tolist() == pytest.approx([expected], abs=1e-6)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([date(1970, 1, 2)]),
        pl.Series([datetime(1970, 1, 2)]),
        pl.Series([datetime(1970, 1, 2)]).dt.cast_time_unit("ns"),
        pl.Series([datetime(1970, 1, 2)]).dt.cast_time_unit("ms").dt.replace_time_zone("UTC"),
        pl.Series([86400]),
    ],
)
def test_times_with_types(column: pl.Series) -> None:
    assert seconds(column, where).tolist() == [86400.0]


@pytest.mark.parametrize("text", ["soon", "", "nan", "inf", "2020-13-01", "2020-01-01T25:00", "01/02/2020"])
def test_bad_times_name_their_line(text: str) -> None:
    with pytest.raises(DataError, match=r"line 2: time .*must be a number of seconds or an ISO date"):
        seconds(pl.Series(["5", text]), where)


@pytest.mark.parametrize("column", [pl.Series([timedelta(1)]), pl.Series([[1]])])
def test_times_of_other_types(column: pl.Series) -> None:
    with pytest.raises(DataError, match="line 1: time of type"):
        seconds(column, where)
