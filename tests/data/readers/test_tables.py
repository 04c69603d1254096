"""CSV, TSV and Parquet: separators, headers and columns, guessed or given."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from dpcml import Interactions
from dpcml.data.readers import read
from dpcml.data.readers.tables import is_number, sniff
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, name: str = "likes.csv") -> Path:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8", newline="")
        return file

    return write


def pairs(data: Interactions) -> set[tuple[object, object]]:
    return {(data.user_ids[u], data.item_ids[i]) for u, i in zip(data.rows, data.indices, strict=True)}


@pytest.mark.parametrize(("separator", "word"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_separators_are_found(write, separator: str, word: str) -> None:
    data = read(write(f"user{separator}item\nann{separator}tea\nbob{separator}rum\n"))
    assert pairs(data) == {("ann", "tea"), ("bob", "rum")}
    assert data.preparation.notes == (
        "format: csv",
        f"separator: {word}",
        "header: line 1",
        "guessed: user = 'user', item = 'item'",
    )


def test_the_widest_even_split_wins() -> None:
    assert sniff("user;item;rating\n1;2;3,5\n2;2;4,5\n") == ";"
    assert sniff('user,item\n1,"a;b;c"\n2,"d;e;f"\n') == ","


def test_separator_by_word_or_mark(write) -> None:
    file = write("user~item\nann~tea\n")
    assert pairs(read(file, separator="~")) == {("ann", "tea")}
    for spelled in ("tab", "\\t", "\t"):
        assert pairs(read(write("user\titem\nann\ta,b\n"), separator=spelled)) == {("ann", "a,b")}


@pytest.mark.parametrize("separator", ["", '"', "\n", "a\0"])
def test_separators_that_cannot_be(write, separator: str) -> None:
    with pytest.raises(ParameterError, match="separator="):
        read(write("user,item\n1,2\n"), separator=separator)


def test_tsv_by_name(write) -> None:
    data = read(write("user\titem\nann\ta,b,c\n", "likes.tsv"))
    assert data.preparation.notes[0] == "format: tsv"
    assert pairs(data) == {("ann", "a,b,c")}


def test_one_column_only(write) -> None:
    match = r"likes\.csv: one column only.*separators tried: comma, semicolon, tab, bar; .*--separator"
    with pytest.raises(DataError, match=match):
        read(write("user\n1\n2\n"))
    with pytest.raises(DataError, match="separators tried: semicolon;"):
        read(write("user,item\n1,2\n"), separator=";")


def test_columns_by_name(write) -> None:
    file = write("who,what,stars,extra\n1,7,5,x\n1,8,2,x\n")
    data = read(file, user="who", item="what", rating="stars", min_rating=4)
    assert pairs(data) == {(1, 7)}
    assert data.preparation.below_rating == 1


def test_wrong_column(write) -> None:
    match = r"likes\.csv: no column 'usr' for the user; the columns are 'user', 'item'"
    with pytest.raises(DataError, match=match):
        read(write("user,item\n1,2\n"), user="usr")


def test_header_without_common_names(write) -> None:
    with pytest.raises(DataError, match=r"likes\.csv: which column holds the user\?.*header=False"):
        read(write("a,b\n1,2\n"))


def test_column_that_stands_twice(write) -> None:
    with pytest.raises(DataError, match="column 'user' for the user occurs twice"):
        read(write("user,user,item\n1,2,3\n"))


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("userId,movieId\na,b\n", True),
        ("who,what\n1,2\n3,4\n", True),
        ("1,2\n3,4\n", False),
        ("ann,tea\nbob,rum\n", False),
        ("ann,1984\nbob,rum\n", False),
        ("user,item\nann,tea\n", True),
    ],
)
def test_header_is_guessed(write, text: str, header: bool) -> None:
    given = {"user": "who", "item": "what"} if text.startswith("who") else {}
    data = read(write(text), **given)
    assert ("header: line 1" in data.preparation.notes) is header
    assert data.n_positives == text.count("\n") - header


def test_header_is_given(write) -> None:
    file = write("user,item\nann,tea\n")
    assert pairs(read(file, header=False)) == {("user", "item"), ("ann", "tea")}
    assert pairs(read(write("a,b\nann,tea\n"), header=True, user="a", item="b")) == {("ann", "tea")}


def test_no_header_by_position(write) -> None:
    data = read(write("1,7,5,100\n1,8,2,200\n"))
    assert "guessed by position: user = column_1, item = column_2, rating = column_3, time = column_4" in (
        data.preparation.notes
    )
    assert data.timestamps is not None
    assert sorted(data.timestamps.tolist()) == [100, 200]


def test_no_header_with_text_where_a_rating_would_be(write) -> None:
    data = read(write("1,7,good,100\n1,8,bad,200\n"))
    assert data.timestamps is None
    assert not any("rating" in note for note in data.preparation.notes)


@pytest.mark.parametrize("spelled", ["{}", "column_{}"])
def test_no_header_with_positions(write, spelled: str) -> None:
    names = {role: spelled.format(n) for role, n in {"user": 3, "item": 1}.items()}
    assert pairs(read(write("7,x,1\n8,x,1\n"), **names)) == {(1, 7), (1, 8)}


def test_no_header_and_a_name(write) -> None:
    with pytest.raises(DataError, match="no column 'who' for the user; the columns are 'column_1', 'column_2'"):
        read(write("1,2\n3,4\n"), user="who")
    with pytest.raises(DataError, match="no column 'column_9' for the item"):
        read(write("1,2\n3,4\n"), item="9")


def test_columns_left_out(write) -> None:
    data = read(write("user,item,rating,date\n1,2,x,long ago\n"), rating="", time="")
    assert (data.n_positives, data.timestamps) == (1, None)
    data = read(write("1,2,5,100\n"), rating="")
    assert data.timestamps is not None
    assert data.timestamps.tolist() == [100]


def test_ids_stay_what_they_are(write) -> None:
    data = read(write("user,item\n007, tea\n08,tea \n"))
    assert pairs(data) == {("007", " tea"), ("08", "tea ")}
    assert pairs(read(write("user,item\n 7 ,1\n"))) == {(7, 1)}
    assert pairs(read(write("user,item\n7,1\n"), text_ids=True)) == {("7", "1")}


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-inf", "abc", "", "1,5", "1e999"])
def test_ratings_that_are_no_finite_numbers(write, value: str) -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 3: rating .*: must be a finite number"):
        read(write(f'user,item,rating\n1,2,5\n1,3,"{value}"\n'))


def test_bad_rating_in_a_file_without_header(write) -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 2: rating 'abc'"):
        read(write("1,2,5\n1,3,abc\n"))


def test_bad_time(write) -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 3: time 'soon'.*--time ''"):
        read(write("user,item,timestamp\n1,2,5\n1,3,soon\n"))


@pytest.mark.parametrize("value", ["-1", str(2**63), "9" * 60])
@pytest.mark.parametrize("role", ["user", "item"])
def test_ids_out_of_range(write, value: str, role: str) -> None:
    row = f"{value},2" if role == "user" else f"1,{value}"
    with pytest.raises(DataError, match=rf"likes\.csv, line 4: {role} id '{value}'.*--text-ids"):
        read(write(f"user,item\n1,2\n\n{row}\n"))


def test_largest_id(write) -> None:
    assert pairs(read(write(f"user,item\n1,{2**63 - 1}\n"))) == {(1, 2**63 - 1)}


@pytest.mark.parametrize("row", ["1,", ",2", "  ,2"])
def test_missing_ids(write, row: str) -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 3: the (user|item) id is missing"):
        read(write(f"user,item\n1,2\n{row}\n"))


def test_line_numbers_count_lines_not_records(write) -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 5: the item id is missing"):
        read(write('user,item\nann,"two\nlines"\nbob,tea\ncat,\n'))


def test_header_and_nothing_else(write) -> None:
    with pytest.raises(DataError, match=r"likes\.csv: no rows"):
        read(write("user,item\n"))


def test_everybody_filtered_out(write) -> None:
    match = r"likes\.csv: all 2 users are filtered out by min_user_interactions=5: the most active user has 1"
    with pytest.raises(DataError, match=match):
        read(write("user,item\n1,2\n2,2\n"), min_user_interactions=5)
    with pytest.raises(DataError, match=r"likes\.csv: no rating reaches min_rating=6"):
        read(write("user,item,rating\n1,2,5\n"), min_rating=6)


def test_threshold_without_ratings(write) -> None:
    with pytest.raises(DataError, match=r"likes\.csv: min_rating=4, but there is no rating column"):
        read(write("user,item\n1,2\n"), min_rating=4)


def test_a_user_with_a_single_item_stays(write) -> None:
    assert read(write("user,item\n1,2\n")).n_users == 1


def test_titles_beside_ratings_csv(write) -> None:
    write("movieId,title,genres\n7,Heat (1995),Action|Crime\n8,Nothing,(no genres listed)\n", "movies.csv")
    data = read(write("userId,movieId,rating,timestamp\n1,7,4.0,100\n1,8,4.0,100\n", "ratings.csv"))
    assert data.items.title(0) == "Heat (1995)"
    assert data.items.attributes is not None
    assert [data.items.attributes.of(k) for k in range(2)] == [["Action", "Crime"], []]
    assert "titles: movies.csv, found beside" in data.preparation.notes


def test_is_number() -> None:
    assert [is_number(cell) for cell in ("1", " 2.5 ", "1e3", "nan", "", "x", "1_0")] == [True] * 4 + [False] * 3


def test_movielens_flags_at_full_length(real_data: Path) -> None:
    file = real_data / "ml-1m" / "interactions.tsv"
    data = read(file, rating="rating_ge4", min_rating=1, min_user_interactions=5)
    assert (data.n_users, data.item_id_space) == (6_034, 3_953)
    assert data.preparation.rows == 1_000_209
    assert data.preparation.rows - data.preparation.below_rating == 575_281


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
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


def test_parquet(parquet: Path) -> None:
    data = read(parquet, user="who", min_rating=4)
    assert data.user_ids.tolist() == ["ann", "bob"]
    assert data.item_ids.tolist() == [3]
    assert data.timestamps is not None
    assert data.timestamps.tolist() == [1.0, 3.0]
    assert data.preparation.notes[0] == "format: parquet"


def test_parquet_is_known_by_its_content(parquet: Path) -> None:
    renamed = parquet.rename(parquet.with_name("likes.bin"))
    assert read(renamed, user="who").n_positives == 3


def test_wrong_column_of_parquet(parquet: Path) -> None:
    with pytest.raises(DataError, match=r"likes\.parquet: no column 'x' for the user; the columns are 'who'"):
        read(parquet, user="x")


def test_options_of_text_tables_are_refused(parquet: Path) -> None:
    with pytest.raises(ParameterError, match="separator=',': files of format 'parquet' take no such option"):
        read(parquet, user="who", separator=",")


def test_truncated_parquet(parquet: Path) -> None:
    whole = parquet.read_bytes()
    for keep in range(4, len(whole), 7):
        parquet.write_bytes(whole[:keep])
        with pytest.raises(DataError, match=r"likes\.parquet: no readable Parquet file"):
            read(parquet, user="who")


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_parquet_damaged_within(tmp_path: Path, compression: Literal["uncompressed", "zstd"]) -> None:
    parquet = tmp_path / "likes.parquet"
    rng = np.random.default_rng(0)
    names = [f"u{k}" for k in rng.integers(0, 50, 400)]
    pl.DataFrame({"user": names, "item": rng.integers(0, 90, 400)}).write_parquet(parquet, compression=compression)
    whole, refused = np.fromfile(parquet, dtype=np.uint8), 0
    for _ in range(60):
        damaged = whole.copy()
        damaged[rng.integers(4, len(whole) - 8, 4)] = rng.integers(0, 256, 4)
        damaged.tofile(parquet)
        try:
            read(parquet)  # bytes of a value may change without harm to the file
        except DataError:
            refused += 1
    assert refused


def test_bad_values_of_parquet_name_the_row(tmp_path: Path) -> None:
    parquet = tmp_path / "likes.parquet"
    pl.DataFrame({"user": [1, None], "item": [1, 2]}).write_parquet(parquet)
    with pytest.raises(DataError, match=r"likes\.parquet, row 2: the user id is missing"):
        read(parquet)


def test_nested_ids_of_parquet_are_refused(tmp_path: Path) -> None:
    parquet = tmp_path / "likes.parquet"
    pl.DataFrame({"user": [[1], [2]], "item": [1, 2]}).write_parquet(parquet)
    with pytest.raises(DataError, match=r"user ids of type List\(Int64\): must be whole numbers or text"):
        read(parquet)
