"""JSON: objects a line each or in an array, as interactions and as titles."""

import json
from pathlib import Path

import polars as pl
import pytest

from dpcml import Interactions
from dpcml.data.readers import detect, read, read_items
from dpcml.data.readers.source import open_source
from dpcml.scale.ingestion import ingest
from dpcml.utils.errors import DataError

ROWS = [
    {"user_id": "ann", "item_id": "007", "stars": 5, "more": {"a": [1]}},
    {"user_id": "bob", "item_id": "007", "stars": 2.5},
    {"user_id": "ann", "item_id": "tea, {green}", "stars": 4},
]
TEXTS = {
    "likes.jsonl": "\n".join(map(json.dumps, ROWS)) + "\n",
    "likes.json": json.dumps(ROWS, indent=1),
    "likes.txt": "\ufeff" + "\n".join(map(json.dumps, ROWS)),
}


@pytest.fixture(params=TEXTS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    path.write_text(TEXTS[request.param], encoding="utf-8")
    return path


def test_objects_are_read_as_a_frame_of_them(file: Path) -> None:
    assert detect(open_source(file)) == "json"
    found, expected = read(file, min_rating=3), Interactions.from_frame(pl.DataFrame(ROWS), min_rating=3)
    assert found.content_hash == expected.content_hash
    assert found.user_ids.tolist() == ["ann"]
    assert found.item_ids.tolist() == ["007", "tea, {green}"]


def test_a_bad_value_is_told_with_its_place(tmp_path: Path) -> None:
    for name, text, place in (
        ("a.jsonl", "\n".join(map(json.dumps, [*ROWS, {"user_id": "", "item_id": "x", "stars": 1}])), "line 4"),
        ("a.json", json.dumps([*ROWS, {"user_id": "eve", "stars": 1}]), "object 4"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=f"{name}, {place}: "):
            read(tmp_path / name)


@pytest.mark.parametrize(
    "text", ['{"user_id": 1, "item_id": 2}\n{"user_id"', '[{"user_id": 1}, 7', '{"user": {"a": 1}}']
)
def test_what_cannot_be_read_says_how_to_write_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(DataError, match=r"bad\.json"):
        read(tmp_path / "bad.json")


@pytest.mark.parametrize("first", ["[user],[item]", "{user},{item}"])
def test_tables_may_begin_with_brackets(tmp_path: Path, first: str) -> None:
    (tmp_path / "a.csv").write_text(f"{first}\n1,7\n2,8\n")
    assert read(tmp_path / "a.csv").n_positives == 2


def test_titles(tmp_path: Path) -> None:
    rows = [{"id": "007", "title": "Dr. No", "genres": ["Action", "Spy"]}, {"id": "tea", "title": "Tea", "genres": []}]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = read_items(tmp_path / "items.jsonl")
    assert (found.title(0), found.attributes.of(0), found.attributes.of(1)) == ("Dr. No", ["Action", "Spy"], [])


def test_ingest_says_what_it_reads(file: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is JSON; ingest reads Parquet and CSV"):
        ingest([file], tmp_path / "shards")
