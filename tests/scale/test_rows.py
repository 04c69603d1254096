"""Streamed files must give the ids that the reader in memory gives, or an error that says as much."""

import gzip
import re

import polars as pl
import pytest

from dpcml import DataError, Interactions
from dpcml.data.prepare import Rules
from dpcml.data.shards import Shards
from dpcml.scale.ingestion import ingest
from dpcml.scale.rows import FileRows, id_form

NAMES = {"user": None, "item": None, "rating": None}
LARGE = "whole-number ids must lie between 0 and 9223372036854775807; pass text_ids=True .* column 'user' as text"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr("dpcml.scale.rows.BATCH", 3)


def parquet(folder, *columns):
    files = [folder / f"likes-{k}.parquet" for k in range(len(columns))]
    for file, users in zip(files, columns, strict=True):
        pl.DataFrame({"user": users, "item": range(len(users))}).write_parquet(file)
    return files


def text(folder, *contents):
    files = [folder / f"likes-{k}.csv" for k in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_text(content)
    return files


def streamed(files, folder, **options):
    rules = Rules.of({name: options.pop(name) for name in ("text_ids", "min_rating") if name in options})
    return Shards.open(ingest(files, folder / "shards", rules=rules, **options)).interactions()


def refused(files, folder, **options):
    with pytest.raises(DataError) as error:
        streamed(files, folder, **options)
    assert "\n" not in str(error.value)
    assert not (folder / "shards").exists()
    return str(error.value)


@pytest.mark.parametrize("text_ids", [False, True])
@pytest.mark.parametrize(
    "columns",
    [
        [[5.0, 6.0, 7.0, 5.0, 8.0]],
        [[5.0, 6.0, 7.0, 5.0, 5.5]],  # not whole in the second batch only
        [[5.0, 6.0], [5.0, 5.5]],  # not whole in the second file only
        [pl.Series([5, 6, 7, 5, 5.1], dtype=pl.Float32)],
    ],
)
def test_floats_are_whole_in_all_files_or_in_none(tmp_path, columns, text_ids):
    files = parquet(tmp_path, *columns)
    whole = Interactions.from_file(files if len(files) > 1 else files[0], text_ids=text_ids)
    assert streamed(files, tmp_path, text_ids=text_ids).content_hash == whole.content_hash


def test_integers_and_whole_floats_are_the_same_ids(tmp_path):
    assert streamed(parquet(tmp_path, [5, 6], [5.0, 7.0]), tmp_path).user_ids.tolist() == [5, 6, 7]
    said = refused(parquet(tmp_path, [5, 6], [5.0, 5.5]), tmp_path / "mixed")
    assert "likes-1.parquet: column 'user' has user ids with a fraction, in " in said
    assert said.endswith("likes-0.parquet they are integers; convert both to text")


def test_numbers_in_one_file_and_text_in_another(tmp_path):
    files = parquet(tmp_path, [5, 6], ["5", "a"])
    assert streamed(files, tmp_path).user_ids.tolist() == ["5", "6", "a"]
    assert id_form(FileRows(files, NAMES, None, None), "user", text=False).text


@pytest.mark.parametrize(
    ("users", "said"),
    [
        (pl.Series([[5], [6]]), "row 1: user ids of type List.*: must be whole numbers or text; convert column 'user'"),
        (pl.Series([{"a": 5}]), "row 1: user ids of type Struct"),
        (pl.Series([b"\xff\xfe"]), "row 1: user ids of type Binary: must be"),
        (pl.Series([7], dtype=pl.Duration), "row 1: user ids of type Duration"),
        (pl.Series([5.0, 1e19]), "row 2: user id 1e.19: floats this large are not exact; convert column 'user'"),
        (pl.Series([2.0**60]), "row 1: user id 1.15.*: floats this large are not exact"),
        (pl.Series([1, 2, 3, 2**63], dtype=pl.UInt64), f"row 4: user id '9223372036854775808': {LARGE}"),
        (pl.Series([2**70], dtype=pl.Int128), f"row 1: user id '1180591620717411303424': {LARGE}"),
        (pl.Series([1, 2, 3, -4]), f"row 4: user id '-4': {LARGE}"),
        (pl.Series([1.0, float("inf")]), "row 2: user id inf: must be finite; correct column 'user'"),
        (pl.Series([1.5, float("-inf")]), "row 2: user id -inf: must be finite"),
        (pl.Series([1.5, float("nan")]), "row 2: the user id is missing"),
    ],
)
def test_ids_that_the_reader_in_memory_refuses(tmp_path, users, said):
    files = parquet(tmp_path, users)
    with pytest.raises(DataError):
        Interactions.from_file(files[0])
    message = refused(files, tmp_path)
    assert message.startswith(f"{files[0]}, row ")
    assert re.search(said, message), message


@pytest.mark.parametrize("users", [pl.Series([2**63, 5], dtype=pl.UInt64), pl.Series([2**70, 5], dtype=pl.Int128)])
def test_large_integers_are_kept_as_text(tmp_path, users):
    files = parquet(tmp_path, users)
    whole = Interactions.from_file(files[0], text_ids=True)
    assert streamed(files, tmp_path, text_ids=True).content_hash == whole.content_hash


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("1,2\n4,5\n", {}),
        ("1,2,5\n4,5,1\n", {"min_rating": 3}),
        ("1,2,a\n4,5,b\n", {}),
        ("9,1,2\n9,4,5\n", {"user": "2", "item": "column_3"}),
        ("1,2,5\n4,5,1\n", {"rating": ""}),
    ],
)
def test_files_without_header_are_read_by_position(tmp_path, content, options):
    files = text(tmp_path, content)
    found, whole = (
        streamed(files, tmp_path, header=False, **options),
        Interactions.from_file(files[0], header=False, **options),
    )
    assert found.content_hash == whole.content_hash
    assert [note for note in found.preparation.notes if "position" in note] == [
        note for note in whole.preparation.notes if "position" in note
    ]


def test_names_that_occur_twice(tmp_path):
    files = text(tmp_path, "user,item,x,x\n1,2,3,4\n", "user,item,user\n1,2,3\n")
    assert streamed(files[:1], tmp_path).n_positives == 1  # no column that is read
    for order in (files, files[::-1]):
        assert "likes-1.csv: column 'user'" in (said := refused(order, tmp_path / "twice"))
        assert said.endswith("occurs twice; rename one of them")


def test_spaces_around_names(tmp_path):
    files = text(tmp_path, "user, item\n1,2\n")
    assert streamed(files, tmp_path, item="item").content_hash == Interactions.from_file(files[0]).content_hash


def test_a_line_with_more_fields_than_the_first(tmp_path):
    (file,) = text(tmp_path, 'user,item\n"ann",2\nbob,5,6\n')
    rule = "line 3: 3 fields, but 2 in the first line; quote fields that contain ',', or name another separator"
    assert refused([file], tmp_path) == f"{file}, {rule}"
    packed = tmp_path / "likes.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert refused([packed], tmp_path) == f"{packed}, {rule}"


def test_an_empty_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"likes-1\.csv: the file is empty"):
        streamed(text(tmp_path, "user,item\n1,2\n", ""), tmp_path)


@pytest.mark.parametrize("header", [True, False])
def test_parquet_takes_no_word_on_its_header(tmp_path, header):
    with pytest.raises(DataError, match=rf"header={header}: .*likes-0\.parquet is Parquet"):
        streamed(parquet(tmp_path, [1, 2]), tmp_path, header=header)
