"""The raw CSV of Steam-200k."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcml.data.readers import Steam, read
from dpcml.utils.errors import DataError

ROWS = """\
11,"Fallout 4",purchase,1.0,0
11,"Fallout 4",play,87.0,0
11,"Half-Life 2, Episode One",purchase,1.0,0
12,Dota 2,purchase,1.0,0
12,Dota 2 ,purchase,1.0,0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "steam.csv"
    path.write_text(ROWS)
    return path


def test_purchases_count(file: Path) -> None:
    data = read(file)
    assert data.user_ids.tolist() == [11, 12]
    assert data.item_ids.tolist() == ["Dota 2", "Dota 2 ", "Fallout 4", "Half-Life 2, Episode One"]
    assert data.preparation.notes == ("format: steam", "counted: purchase, 4 of 5 rows")


@pytest.mark.parametrize("kind", ["steam-play", Steam("play")])
def test_plays_on_request(file: Path, kind: str | Steam) -> None:
    data = read(file, format=kind)
    assert data.item_ids.tolist() == ["Fallout 4"]


def test_unknown_behaviour(file: Path) -> None:
    file.write_text(ROWS + "12,Dota 2,refund,1.0,0\n")
    with pytest.raises(DataError, match=r"steam\.csv, line 6: behaviour 'refund': must be purchase or play"):
        read(file)


def test_missing_title_names_its_line(file: Path) -> None:
    file.write_text(ROWS + "12,,purchase,1.0,0\n")
    with pytest.raises(DataError, match=r"steam\.csv, line 6: the item id is missing"):
        read(file)


def test_nothing_of_the_kind(file: Path) -> None:
    file.write_text("12,Dota 2,purchase,1.0,0\n")
    with pytest.raises(DataError, match=r"steam\.csv: no rows"):
        read(file, format="steam-play")


def test_too_narrow(file: Path) -> None:
    file.write_text("1,2\n")
    with pytest.raises(DataError, match=r"steam\.csv: 2 fields; Steam-200k has"):
        read(file, format="steam")


def test_the_counts_of_the_paper(real_data: Path) -> None:
    data = read(real_data / "steam-200k" / "steam-200k.csv", min_user=5)
    assert (data.n_users, data.n_items, data.n_positives) == (3_757, 5_113, 115_139)
    played = read(real_data / "steam-200k" / "steam-200k.csv", format="steam-play", min_user=5)
    assert (played.n_users, played.n_items, played.n_positives) == (2_436, 3_544, 57_777)
