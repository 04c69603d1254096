"""Columns of whole numbers as integers: nothing of the text is lost."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcml.data.readers.compact import joined_compactly, joined_pieces


def column(*blocks: list[str | None]) -> pl.Series:
    return joined_compactly([pl.DataFrame({"0": block}, schema={"0": pl.String}) for block in blocks])["0"]


@pytest.mark.parametrize(
    ("blocks", "kind"),
    [
        ([["1", "0"], ["-7"]], pl.Int8),
        ([["1"], ["300"], ["2"]], pl.Int16),
        ([["1"], [str(2**63 - 1)]], pl.Int64),
        ([["1"], [str(2**63)]], pl.String),
        ([["007"], ["1"]], pl.String),
        ([["1"], [" 1"]], pl.String),
        ([["+1"]], pl.String),
        ([["-0"]], pl.String),
        ([["1.0"]], pl.String),
        ([["1", None]], pl.Int8),
        ([["1", ""]], pl.String),
        ([[], ["1"]], pl.Int8),
    ],
)
def test_kind(blocks: list[list[str | None]], kind: pl.DataType) -> None:
    assert column(*blocks).dtype == kind


cells = st.none() | st.text(st.sampled_from("01-+ 9"), max_size=4) | st.integers().map(str)


@given(st.lists(st.lists(cells), min_size=1))
def test_the_text_comes_back(blocks: list[list[str | None]]) -> None:
    assert column(*blocks).cast(pl.String).to_list() == [cell for block in blocks for cell in block]


def test_pieces_of_several_kinds() -> None:
    small, large = pl.Series([1], dtype=pl.Int8), pl.Series([2**40])
    assert joined_pieces([small, large]).to_list() == [1, 2**40]
    assert joined_pieces([small, pl.Series(["x"]), large]).to_list() == ["1", "x", str(2**40)]
