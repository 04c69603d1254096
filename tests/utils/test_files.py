from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from dpcml.utils.array_files import map_arrays
from dpcml.utils.errors import DataError, DownloadError
from dpcml.utils.files import atomic, atomic_folder, write_text


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    with (
        pytest.raises(DataError, match=r"a\.txt: cannot be written \(No space left on device\)"),
        atomic(tmp_path / "a.txt"),
        Path("/dev/full").open("w") as full,
    ):
        full.write("new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


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


def test_a_folder_takes_the_place_of_the_old_one_as_a_whole(tmp_path):
    for text in ("old", "new"):
        with atomic_folder(tmp_path / "a") as folder:
            (folder / f"{text}.txt").write_text(text)
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["new.txt"]


def test_a_folder_whose_block_fails_changes_nothing(tmp_path):
    with atomic_folder(tmp_path / "a") as folder:
        (folder / "old.txt").write_text("old")
    for error in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(error), atomic_folder(tmp_path / "a") as folder:  # noqa: PT012
            (folder / "new.txt").write_text("new")
            raise error
    with (
        pytest.raises(DataError, match=r"a: cannot be written \(No such file"),
        atomic_folder(tmp_path / "a") as folder,
    ):
        (folder / "no" / "such").write_text("new")
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["old.txt"]


def test_a_living_writer_is_left_alone_and_a_dead_one_cleared_away(tmp_path):
    (tmp_path / ".a.0123.new").mkdir()
    with atomic_folder(tmp_path / "a") as first:
        assert not (tmp_path / ".a.0123.new").exists()
        with atomic_folder(tmp_path / "a") as second:
            (second / "second.txt").write_text("2")
        (first / "first.txt").write_text("1")
    assert names(tmp_path / "a") == ["first.txt"]
    assert names(tmp_path) == ["a"]


def test_a_folder_that_was_put_aside_is_found(tmp_path):
    (tmp_path / ".a.replaced").mkdir()
    assert present(tmp_path / "a") == tmp_path / ".a.replaced"
    (tmp_path / "a").mkdir()
    assert present(tmp_path / "a") == tmp_path / "a"


def test_types_shapes_and_empty_arrays_come_back(tmp_path):
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
    arrays = {kind: np.arange(6).reshape(1, 2, 3).astype(kind) for kind in kinds}
    arrays |= {"none": np.empty((0, 3), np.float32), "one": np.array(3.5)}
    save_file(arrays, tmp_path / "a.safetensors", metadata={"a": "b"})
    found = map_arrays(tmp_path / "a.safetensors")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert (found[name] == array).all()


def test_damaged_files(tmp_path):
    file = tmp_path / "a.safetensors"
    save_file({"a": np.arange(100)}, file)
    whole = file.read_bytes()
    for damaged in (b"", whole[:4], whole[:30], whole[:-1], b"\xff" * 8 + whole[8:], whole[:8] + b"x" + whole[9:]):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.safetensors is damaged or no safetensors"):
            map_arrays(file)
    with pytest.raises(DataError, match="nowhere"):
        map_arrays(tmp_path / "nowhere")
