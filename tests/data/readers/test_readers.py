"""`read` as a whole: any table comes back exactly, any bytes end in data or in an error that says why."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpcml import Interactions
from dpcml.data.readers import READERS, read, read_items
from dpcml.utils.errors import DataError, DpcmlError, ParameterError

letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff")
ids = st.one_of(
    st.text(letters, min_size=1, max_size=8),
    st.text(st.sampled_from('a0",;\t|\n\r :'), min_size=1, max_size=6),
    st.integers(0, 2**63 - 1).map(str),
).filter(lambda word: bool(word.strip()))
tables = st.lists(st.tuples(ids, ids), min_size=1, max_size=20)


def pairs(data: Interactions) -> set[tuple[str, str]]:
    return {(str(data.user_ids[u]), str(data.item_ids[i])) for u, i in zip(data.rows, data.indices, strict=True)}


def outcome(action: Callable[[], object]) -> str | None:
    """Return the message of a clear error, or None when all went well; other errors pass."""
    try:
        action()
    except DpcmlError as error:
        return str(error)
    return None


@given(
    table=tables,
    separator=st.sampled_from([",", ";", "\t", "|"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
    header=st.booleans(),
)
def test_tables_come_back_exactly(
    table: list[tuple[str, str]], separator: str, ending: str, packed: bool, header: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "likes.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            # The writer leaves "\r" unquoted, where it cannot be told from a line end.
            quoting = csv.QUOTE_ALL if any("\r" in word for row in table for word in row) else csv.QUOTE_MINIMAL
            writer = csv.writer(stream, delimiter=separator, lineterminator=ending, quoting=quoting)
            writer.writerows([("user", "item"), *table] if header else table)
        if packed:
            file.write_bytes(gzip.compress(file.read_bytes()))
        given = {} if header else {"header": False, "separator": separator, "format": "csv"}
        data = read(file, text_ids=True, **given)
    assert pairs(data) == set(table)
    assert data.preparation.rows == len(table)


@given(tables)
def test_parquet_comes_back_exactly(table: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "likes.parquet"
        pl.DataFrame(table, schema=["user", "item"], orient="row").write_parquet(file)
        assert pairs(read(file, text_ids=True)) == set(table)


@given(
    st.lists(st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=6), min_size=1).filter(any),
    st.booleans(),
)
def test_lists_come_back_exactly(lists: list[list[int]], counted: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "users.dat"
        firsts = [len(line) for line in lists] if counted else [100 + k for k in range(len(lists))]
        file.write_text(
            "".join(f"{' '.join(map(str, [first, *line]))}\n" for first, line in zip(firsts, lists, strict=True))
        )
        data = read(file, format="count-then-ids" if counted else "id-then-items")
    start = 0 if counted else 100
    assert pairs(data) == {(str(start + k), str(item)) for k, line in enumerate(lists) for item in line}


SAMPLES = (
    b"user,item,rating,time\n1,2,3,4\n2,3,4,5\n",
    b'user;item\n"a ""b""";c\n',
    b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n",
    b"1::1193::5::978300760\n1::661::3::978302109\n",
    b'151603712,"The Elder Scrolls V Skyrim",purchase,1.0,0\n151603712,Dota 2,play,273.0,0\n',
    b"2 7 9\n1 4\n0\n",
    b"10 83 11 51\n11 140 171\n",
    b"1::Toy Story (1995)::Animation|Comedy\n",
    gzip.compress(b"user,item\n1,2\n"),
    "user,item\n1,é\n".encode("utf-16"),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good file with some bytes changed, put in or cut off."""
    data = bytearray(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 3))
        data[place : place + cut] = draw(
            st.binary(max_size=3) | st.sampled_from([b'"', b"\n", b",", b"\r", b"::", b"-"])
        )
    return bytes(data)


names = st.sampled_from(
    ["a.csv", "a.tsv", "a", "u.data", "ratings.dat", "users.dat", "u.item", "a.parquet", "a.csv.gz"]
)


@given(data=st.binary() | damaged(), name=names, kind=st.sampled_from([None, *READERS]))
@example(b"PAR1", "a.parquet", None)
@example(b"PAR1\0\0\0\0PAR1", "a.parquet", None)
@example(b"\xff\xfe", "a.csv", None)
@example(b"\r", "a.csv", None)
@example(b'"', "a.csv", None)
@example(b",", "a.csv", None)
@settings(max_examples=400)
def test_any_bytes_end_in_data_or_a_clear_error(data: bytes, name: str, kind: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(data)
        said = outcome(lambda: read(file, format=kind))
        assert said is None or name in said
        said = outcome(lambda: read_items(file))
        assert said is None or name in said


def test_unknown_format(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("user,item\n1,2\n")
    with pytest.raises(ParameterError, match="unknown format 'cvs': did you mean 'csv'"):
        read(file, format="cvs")


def test_unknown_option(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="unknown option 'min_ratings': did you mean 'min_rating'"):
        read(tmp_path / "a.csv", min_ratings=5)


def test_no_files() -> None:
    with pytest.raises(ParameterError, match="name at least one file"):
        read([])


def test_several_files_are_read_as_one(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("user,item\n1,2\n1,3\n")
    second.write_text("user,item\n1,3\n4,5\n")
    data = read([first, second])
    assert pairs(data) == {("1", "2"), ("1", "3"), ("4", "5")}
    assert (data.preparation.rows, data.preparation.duplicates) == (4, 1)
    assert data.preparation.notes.count("separator: comma") == 1


def test_errors_name_the_right_file(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.csv" for name in "abc")
    first.write_text("user,item\n1,2\n1,3\n")
    second.write_text("user,item\n1,3\n\n4,\n")
    third.write_text("user,item\n1,2\n")
    with pytest.raises(DataError, match=r"^b\.csv, line 4: the item id is missing"):
        read([first, second, third])


def test_files_read_together_need_the_same_columns(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("user,item\n1,2\n")
    second.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(
        DataError, match=r"b\.csv, line 2: the columns are user, item, rating, but user, item in a\.csv"
    ):
        read([first, second])


def test_items_that_the_catalogue_lacks_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\n1,2\n1,3\n")
    (tmp_path / "i.csv").write_text("id,title\n2,Tea\n9,Rum\n")
    data = read(tmp_path / "a.csv", items=tmp_path / "i.csv")
    assert data.preparation.notes[-1] == "not in the catalogue: 1 of 2 items"
    assert data.catalogue_size == 2


def test_files_read_together_may_differ_in_how_ids_look(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("user,item\n1,2\n1,300\n")
    second.write_text("user,item\n007,2\n")
    assert pairs(read([first, second])) == {("1", "2"), ("1", "300"), ("007", "2")}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell the peak of memory")
def test_memory_stays_within_a_small_multiple_of_the_file(tmp_path: Path) -> None:
    rng, size = np.random.default_rng(0), 1_000_000
    file = tmp_path / "likes.tsv"
    likes = {
        "user": rng.integers(0, 6000, size),
        "item": rng.integers(0, 4000, size),
        "rating": rng.integers(1, 6, size),
    }
    pl.DataFrame(likes).write_csv(file, separator="\t")
    small = tmp_path / "small.tsv"
    small.write_text("user\titem\trating\n1\t2\t3\n")
    peak = "int(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
    code = f"""
from dpcml import Interactions
Interactions.from_file({str(small)!r})
before = {peak}
Interactions.from_file({str(file)!r})
print(1024 * ({peak} - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10 * file.stat().st_size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": 7}, "time=7: must be a text"),
        ({"separator": {}}, "separator={}: must be a text"),
        ({"header": "yes"}, "header='yes': must be True, False, or None"),
        ({"format": b"csv"}, "format=b'csv': must be a name, a reader, or None"),
        ({"items": 0.0}, "items=0.0: must be a file, an ItemTable, or None"),
    ],
)
def test_options_of_a_wrong_type_are_refused_in_our_words(tmp_path, options, message):
    (tmp_path / "likes.csv").write_text("user,item\nann,tea\n")
    with pytest.raises(ParameterError, match=message):
        read(tmp_path / "likes.csv", **options)
