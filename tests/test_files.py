from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpcml.errors import DataError, DownloadError
from dpcml.files import atomic, write_text


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_replaces_the_old_file(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    write_text(tmp_path / "a.txt", "néw")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "néw"
    assert names(tmp_path) == ["a.txt"]


def test_makes_missing_folders(tmp_path):
    write_text(tmp_path / "x" / "y" / "a.txt", "text")
    assert (tmp_path / "x" / "y" / "a.txt").read_text() == "text"


def test_temporary_name_keeps_the_suffix_and_the_folder(tmp_path):
    with atomic(tmp_path / "table.parquet") as temporary:
        assert temporary.suffix == ".parquet"
        assert temporary.parent == tmp_path
        temporary.write_bytes(b"1")


@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt(), DownloadError("cut"), OSError("disk")])
def test_a_failing_block_leaves_the_old_file_and_nothing_else(tmp_path, error):
    write_text(tmp_path / "a.txt", "old")

    def fail() -> None:
        with atomic(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_block_that_writes_nothing_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt: cannot be written"), atomic(tmp_path / "a.txt"):
        pass
    assert names(tmp_path) == []


def test_a_folder_in_the_place_of_the_file(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        write_text(tmp_path, "text")


def test_a_file_in_the_place_of_the_folder(tmp_path):
    write_text(tmp_path / "a", "text")
    with pytest.raises(DataError, match="cannot make its folder"):
        write_text(tmp_path / "a" / "b.txt", "text")
    assert (tmp_path / "a").read_text() == "text"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(DataError, match="cannot be written"):
        write_text(tmp_path / "locked" / "a.txt", "text")
