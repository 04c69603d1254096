"""Catalogues: titles and attributes from movies.dat, u.item and tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from dpcml.data.items import ItemTable
from dpcml.data.readers import read_items, read_tags
from dpcml.data.readers.items import ML_100K_GENRES
from dpcml.utils.errors import DataError


def contents(items: ItemTable) -> list[tuple[object, str, list[str]]]:
    assert items.attributes is not None
    return [(items.ids[k], items.title(k), items.attributes.of(k)) for k in range(len(items))]


def u_item(number: int, title: str, *genres: str) -> str:
    flags = ["1" if genre in genres else "0" for genre in ML_100K_GENRES]
    return "|".join([str(number), title, "01-Jan-1995", "", "http://x", *flags])


def test_movies_dat(tmp_path: Path) -> None:
    file = tmp_path / "movies.dat"
    text = "20::Amélie (2001)::Comedy|Romance\n10::Heat (1995)::Crime\n30::None::(no genres listed)\n"
    file.write_bytes(text.encode("latin-1"))
    assert contents(read_items(file)) == [
        (20, "Amélie (2001)", ["Comedy", "Romance"]),
        (10, "Heat (1995)", ["Crime"]),
        (30, "None", []),
    ]


def test_u_item(tmp_path: Path) -> None:
    file = tmp_path / "u.item"
    rows = [u_item(1, "Heat", "Action", "Crime"), u_item(2, "Amélie", "Comedy")]
    file.write_bytes("\n".join(rows).encode("latin-1"))
    assert contents(read_items(file)) == [(1, "Heat", ["Action", "Crime"]), (2, "Amélie", ["Comedy"])]


def test_u_item_takes_the_names_of_u_genre(tmp_path: Path) -> None:
    (tmp_path / "u.item").write_text(u_item(1, "Heat", "Action", "Crime"))
    names = [f"G{k:02}" for k in range(19)]
    (tmp_path / "u.genre").write_text("".join(f"{name}|{k}\n" for k, name in enumerate(names)) + "\n")
    assert contents(read_items(tmp_path / "u.item")) == [(1, "Heat", ["G01", "G06"])]
    (tmp_path / "u.genre").write_text("one|0\n")
    with pytest.raises(DataError, match=r"u\.genre: 1 genres, but u\.item has 19 flags"):
        read_items(tmp_path / "u.item")


def test_u_item_with_a_bad_flag(tmp_path: Path) -> None:
    file = tmp_path / "u.item"
    file.write_text(u_item(1, "Heat") + "\n" + u_item(2, "Emma")[:-1] + "7\n")
    with pytest.raises(DataError, match=r"u\.item, line 2: the last 19 fields must be 0 or 1"):
        read_items(file)


@pytest.mark.parametrize("mark", ["|", ";", ","])
def test_csv(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "items.csv"
    file.write_text(f'item_id,name,tags\na,"Tea, green","hot{mark} leaf"\nb,,hot\n')
    assert contents(read_items(file)) == [("a", "Tea, green", ["hot", "leaf"]), ("b", "b", ["hot"])]


def test_bars_split_before_commas(tmp_path: Path) -> None:
    file = tmp_path / "items.tsv"
    file.write_text("id\tgenres\n1\tAction, fast|Crime\n2\tAction, fast\n")
    assert contents(read_items(file)) == [(1, "1", ["Action, fast", "Crime"]), (2, "2", ["Action, fast"])]


def test_named_columns(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("key,words,kinds\n7,Tea,hot\n")
    assert contents(read_items(file, item="key", title="words", attributes="kinds")) == [(7, "Tea", ["hot"])]


def test_ids_only(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("id,price\n7,1.5\n")
    items = read_items(file)
    assert (items.ids.tolist(), items.titles, items.attributes) == ([7], None, None)


@pytest.mark.parametrize("kinds", [[["hot", "leaf"], None], ["hot|leaf", None]])
def test_parquet(tmp_path: Path, kinds: list[object]) -> None:
    file = tmp_path / "items.parquet"
    pl.DataFrame({"item": [1, 2], "title": ["Tea", None], "tags": kinds}).write_parquet(file)
    assert contents(read_items(file)) == [(1, "Tea", ["hot", "leaf"]), (2, "2", [])]


def test_text_ids(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("id,title\n7,Tea\n")
    assert read_items(file, text_ids=True).ids.tolist() == ["7"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,title\n7,Tea\n8,Rum\n7,Gin\n", r"items\.csv, line 4: item id 7 occurs twice"),
        ("id,title\n7,Tea\n,Rum\n", r"items\.csv, line 3: the item id is missing"),
        ("key,words\n7,Tea\n", r"items\.csv: which column holds the item id\? None of 'key', 'words'"),
        ("7,8\n9,10\n", r"items\.csv: no header; a catalogue needs named columns"),
        ("id,title\n", r"items\.csv: no rows"),
        ("id\n7\n", r"items\.csv: one column only"),
        ("", r"items\.csv: the file is empty"),
    ],
)
def test_bad_catalogues(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "items.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=said):
        read_items(file)


def test_wrong_column(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("id,title\n7,Tea\n")
    with pytest.raises(DataError, match=r"items\.csv: no column 'x' for the title; the columns are 'id', 'title'"):
        read_items(file, title="x")


def test_the_real_ones(real_data: Path) -> None:
    films = read_items(real_data / "ml-10m" / "movies.dat")
    assert len(films) == 10_681
    films = read_items(real_data / "ml-1m" / "movies.dat")
    assert (len(films), films.title(0)) == (3_883, "Toy Story (1995)")
    assert films.attributes is not None
    assert len(films.attributes.names) == 18


@pytest.mark.parametrize(
    ("lists", "names", "message"),
    [
        ("2 0 1\n", "a\nb\n", "has 1 lines and tags 2"),
        ("2 0\n", "a\n", "lists, line 1: the count 2 is followed by 1 ids"),
        ("1 x\n", "a\n", "lists, line 1: 'x': ids must be whole numbers"),
        ("1 0\n1 -4\n", "a\nb\n", "lists, line 2: '-4': ids must be whole numbers between 0"),
        ("0\n", "a\n", "no tag has an item"),
        ("", "", "lists: the file is empty"),
    ],
)
def test_bad_tags(tmp_path: Path, lists: str, names: str, message: str) -> None:
    (tmp_path / "lists").write_text(lists)
    (tmp_path / "tags").write_text(names)
    with pytest.raises(DataError, match=message):
        read_tags(tmp_path / "lists", tmp_path / "tags")
    with pytest.raises(DataError, match="none: no such file"):
        read_tags(tmp_path / "none", tmp_path / "tags")
