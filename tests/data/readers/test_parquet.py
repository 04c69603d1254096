"""Parquet: columns keep their types; damage is reported."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from dpcml.data.readers import read
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "likes.parquet"
    pl.DataFrame(
        {
            "who": ["ann", "ann", "bob"],
            "item_id": [3, 5, 3],
            "rating": [5.0, 1.0, 4.0],
            "timestamp": [datetime(1970, 1, 1, 0, 0, second) for second in (1, 2, 3)],
        }
    ).write_parquet(path)
    return path


def test_read(file: Path) -> None:
    data = read(file, user="who", min_rating=4)
    assert data.user_ids.tolist() == ["ann", "bob"]
    assert data.item_ids.tolist() == [3]
    assert data.timestamps is not None
    assert data.timestamps.tolist() == [1.0, 3.0]
    assert data.preparation.notes[0] == "format: parquet"


def test_known_by_content_whatever_the_name(file: Path) -> None:
    renamed = file.rename(file.with_name("likes.bin"))
    assert read(renamed, user="who").n_positives == 3


def test_wrong_column(file: Path) -> None:
    with pytest.raises(DataError, match=r"likes\.parquet: no column 'x' for the user; the columns are 'who'"):
        read(file, user="x")


def test_options_of_text_tables_are_refused(file: Path) -> None:
    with pytest.raises(ParameterError, match="separator=',': files of format 'parquet' take no such option"):
        read(file, user="who", separator=",")


def test_truncated(file: Path) -> None:
    whole = file.read_bytes()
    for keep in range(4, len(whole), 7):
        file.write_bytes(whole[:keep])
        with pytest.raises(DataError, match=r"likes\.parquet: no readable Parquet file"):
            read(file, user="who")


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_damaged_within(tmp_path: Path, compression: Literal["uncompressed", "zstd"]) -> None:
    file = tmp_path / "likes.parquet"
    rng = np.random.default_rng(0)
    names = [f"u{k}" for k in rng.integers(0, 50, 400)]
    pl.DataFrame({"user": names, "item": rng.integers(0, 90, 400)}).write_parquet(file, compression=compression)
    whole, refused = np.fromfile(file, dtype=np.uint8), 0
    for _ in range(60):
        damaged = whole.copy()
        damaged[rng.integers(4, len(whole) - 8, 4)] = rng.integers(0, 256, 4)
        damaged.tofile(file)
        try:
            read(file)  # bytes of a value may change without harm to the file
        except DataError:
            refused += 1
    assert refused


def test_bad_values_name_the_row(tmp_path: Path) -> None:
    file = tmp_path / "likes.parquet"
    pl.DataFrame({"user": [1, None], "item": [1, 2]}).write_parquet(file)
    with pytest.raises(DataError, match=r"likes\.parquet, row 2: the user id is missing"):
        read(file)


def test_nested_ids_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "likes.parquet"
    pl.DataFrame({"user": [[1], [2]], "item": [1, 2]}).write_parquet(file)
    with pytest.raises(DataError, match=r"user ids of type List\(Int64\): must be whole numbers or text"):
        read(file)
