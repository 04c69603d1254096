"""MovieLens and Steam-200k files as they are published."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcml.data.readers import Steam, read
from dpcml.utils.errors import DataError

RATINGS = "1::31::5::978300760\n1::32::2::978300761\n2::31::4::978300762\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.dat"
    path.write_text(RATINGS)
    return path


def test_ratings(file: Path) -> None:
    data = read(file, min_rating=4)
    assert data.user_ids.tolist() == [1, 2]
    assert data.item_ids.tolist() == [31]
    assert data.timestamps is not None
    assert data.timestamps.tolist() == [978300760, 978300762]
    assert data.preparation.notes == ("format: movielens",)


def test_known_by_content_whatever_the_name(file: Path) -> None:
    assert read(file.rename(file.with_name("stars.txt"))).preparation.notes[0] == "format: movielens"


def test_titles_beside(file: Path) -> None:
    movies = "31::Amélie (2001)::Comedy|Romance\n32::Heat::(no genres listed)\n"
    file.with_name("movies.dat").write_bytes(movies.encode("latin-1"))
    data = read(file)
    assert data.items.title(0) == "Amélie (2001)"
    assert data.catalogue_size == 2
    assert "titles: movies.dat, found beside" in data.preparation.notes


def test_broken_titles_beside_are_left_out_and_noted(file: Path) -> None:
    file.with_name("movies.dat").write_text("31::Heat\n")
    data = read(file)
    assert data.items.titles is None
    assert any(note.startswith("titles: movies.dat lies beside, but is left out") for note in data.preparation.notes)


def test_titles_given(file: Path, tmp_path: Path) -> None:
    file.with_name("movies.dat").write_text("31::Heat::Crime\n")
    other = tmp_path / "other.csv"
    other.write_text("id,title\n31,Another\n")
    assert read(file, items=other).items.title(0) == "Another"


def test_titles_of_other_items(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("id,title\n1,Another\n")
    with pytest.raises(DataError, match=r"ratings\.dat: no item is in the catalogue given"):
        read(file, items=other)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2::31::x::1", "rating 'x': must be a finite number"),
        ("2::31::4", "3 fields, but 4 fields on line 1"),
        ("2::::4::1", "the item id is missing"),
        ("-2::31::4::1", "user id '-2'"),
        ("2::31::4::never", "time 'never'"),
    ],
)
def test_bad_lines(file: Path, line: str, said: str) -> None:
    file.write_text(RATINGS + line + "\n")
    with pytest.raises(DataError) as raised:
        read(file)
    assert str(raised.value).startswith(f"ratings.dat, line 4: {said}")


def test_too_many_fields(file: Path) -> None:
    file.write_text("1::2::3::4::5\n")
    with pytest.raises(DataError, match=r"ratings\.dat, line 1: 5 fields between '::'"):
        read(file, format="movielens")


def test_u_data(tmp_path: Path) -> None:
    file = tmp_path / "u.data"
    file.write_text("196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    data = read(file)
    assert data.user_ids.tolist() == [186, 196]
    assert data.timestamps is not None
    assert data.preparation.notes[0] == "format: movielens-100k"


def test_the_real_ml_100k(real_data: Path) -> None:
    data = read(real_data / "ml-100k" / "u.data")
    assert (data.n_users, data.n_items, data.n_positives) == (943, 1_682, 100_000)
    assert data.catalogue_size == 1_682
    assert data.items.title(0) == "Toy Story (1995)"
    assert data.items.attributes is not None
    assert data.items.attributes.of(0) == ["Animation", "Children's", "Comedy"]


def test_the_real_ml_1m(real_data: Path) -> None:
    data = read(real_data / "ml-1m" / "ratings-users-1-2999.dat.gz")
    assert (data.n_users, data.n_positives) == (2_999, 487_650)
    assert data.items.title(int(data.item_columns([1193])[0])) == "One Flew Over the Cuckoo's Nest (1975)"
    assert data.catalogue_size == 3_883
    assert "titles: movies.dat, found beside" in data.preparation.notes


ROWS = """\
11,"Fallout 4",purchase,1.0,0
11,"Fallout 4",play,87.0,0
11,"Half-Life 2, Episode One",purchase,1.0,0
12,Dota 2,purchase,1.0,0
12,Dota 2 ,purchase,1.0,0
"""


@pytest.fixture
def purchases(tmp_path: Path) -> Path:
    path = tmp_path / "steam.csv"
    path.write_text(ROWS)
    return path


def test_purchases_count(purchases: Path) -> None:
    data = read(purchases)
    assert data.user_ids.tolist() == [11, 12]
    assert data.item_ids.tolist() == ["Dota 2", "Dota 2 ", "Fallout 4", "Half-Life 2, Episode One"]
    assert data.preparation.notes == ("format: steam", "counted: purchase, 4 of 5 rows")


@pytest.mark.parametrize("kind", ["steam-play", Steam("play")])
def test_plays_on_request(purchases: Path, kind: str | Steam) -> None:
    data = read(purchases, format=kind)
    assert data.item_ids.tolist() == ["Fallout 4"]


def test_unknown_behaviour(purchases: Path) -> None:
    purchases.write_text(ROWS + "12,Dota 2,refund,1.0,0\n")
    with pytest.raises(DataError, match=r"steam\.csv, line 6: behaviour 'refund': must be purchase or play"):
        read(purchases)


def test_missing_title_names_its_line(purchases: Path) -> None:
    purchases.write_text(ROWS + "12,,purchase,1.0,0\n")
    with pytest.raises(DataError, match=r"steam\.csv, line 6: the item id is missing"):
        read(purchases)


def test_nothing_of_the_kind(purchases: Path) -> None:
    purchases.write_text("12,Dota 2,purchase,1.0,0\n")
    with pytest.raises(DataError, match=r"steam\.csv: no rows"):
        read(purchases, format="steam-play")


def test_too_narrow(purchases: Path) -> None:
    purchases.write_text("1,2\n")
    with pytest.raises(DataError, match=r"steam\.csv: 2 fields; Steam-200k has"):
        read(purchases, format="steam")


def test_the_counts_of_the_paper(real_data: Path) -> None:
    data = read(real_data / "steam-200k" / "steam-200k.csv", min_user_interactions=5)
    assert (data.n_users, data.n_items, data.n_positives) == (3_757, 5_113, 115_139)
    played = read(real_data / "steam-200k" / "steam-200k.csv", format="steam-play", min_user_interactions=5)
    assert (played.n_users, played.n_items, played.n_positives) == (2_436, 3_544, 57_777)
