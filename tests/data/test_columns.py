"""Which column plays which role."""

from __future__ import annotations

import pytest

from dpcml.data.columns import Columns, assign_columns, plain
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
    columns, notes = assign_columns(names, Columns())
    assert columns == Columns(*found)
    assert notes[0].startswith(f"guessed: user = {found[0]!r}, item = {found[1]!r}")


def test_of_names_that_differ_in_marks_only_the_first_counts() -> None:
    assert assign_columns(["user_id", "userId", "item"], Columns())[0].user == "user_id"


def test_given_names_come_first() -> None:
    columns, notes = assign_columns(["user", "item", "other"], Columns(item="other"))
    assert columns == Columns("user", "other")
    assert notes == ("guessed: user = 'user'",)


def test_a_given_column_is_not_guessed_for_another_role() -> None:
    with pytest.raises(DataError, match="which column holds the item"):
        assign_columns(["user", "item"], Columns(user="item"))


def test_all_given() -> None:
    assert assign_columns(["a", "b"], Columns("a", "b")) == (Columns("a", "b"), ())


def test_wrong_name_lists_the_columns() -> None:
    with pytest.raises(DataError, match=r"likes\.csv: no column 'c' for the rating; the columns are 'a', 'b'"):
        assign_columns(["a", "b"], Columns("a", "b", "c"), "likes.csv")


def test_one_column_for_two_roles() -> None:
    with pytest.raises(DataError, match="column 'a' is named as user and as item"):
        assign_columns(["a", "b"], Columns("a", "a"))


@pytest.mark.parametrize("given", [Columns(), Columns(user="user")])
def test_name_that_stands_twice(given: Columns) -> None:
    with pytest.raises(DataError, match="column 'user' for the user stands twice"):
        assign_columns(["user", "item", "user"], given)


def test_unused_names_may_stand_twice() -> None:
    assert assign_columns(["user", "item", "x", "x"], Columns())[0] == Columns("user", "item")


def test_optional_columns_can_be_left_out() -> None:
    columns, _ = assign_columns(["user", "item", "rating", "time"], Columns(rating="", time=""))
    assert columns == Columns("user", "item")
    with pytest.raises(DataError, match="no column '' for the user"):
        assign_columns(["user", "item"], Columns(user=""))


def test_nothing_common() -> None:
    with pytest.raises(
        DataError, match=r"which column holds the user\? None of 'a', 'b' has a common name; pass user="
    ):
        assign_columns(["a", "b"], Columns())


def test_plain() -> None:
    assert [plain(name) for name in ("User_ID", " user id ", "user-id", "")] == ["userid"] * 3 + [""]
