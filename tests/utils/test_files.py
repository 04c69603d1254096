from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpcml.utils.errors import DataError, DownloadError
from dpcml.utils.files import atomic, atomic_folder, cache_folder, temporary_cache_folder, write_text


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


def test_temporary_file_has_the_name_and_is_on_the_same_device(tmp_path):
    with atomic(tmp_path / "table.parquet") as temporary:
        assert temporary.name == "table.parquet"
        assert temporary.parent.parent == tmp_path
        temporary.write_bytes(b"1")


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    """A run that is killed and resumed many times would fill the disk with halves of its checkpoint."""
    code = (
        "import os, sys; from dpcml.utils.files import atomic\n"
        "with atomic(sys.argv[1]) as file: file.write_text('half'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.txt")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [name.startswith(".a.txt.") for name in names(tmp_path)] == [True]
    with atomic(tmp_path / "a.txt") as temporary:  # what a running writer has stays
        write_text(tmp_path / "a.txt", "other")
        temporary.write_text("whole")
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "whole"


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


class Panic(BaseException):
    """What a library in Rust raises when it cannot go on."""


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        Panic("Os { code: 28, kind: StorageFull }"),
        ValueError("parquet: File out of specification: Invalid thrift: transport error"),
    ],
)
def test_a_library_that_finds_no_room_is_told_in_our_words(tmp_path, error):
    """Finding 10: polars and safetensors raise errors of their own, with the system's number in the text."""
    for write in (atomic, atomic_folder):
        with pytest.raises(DataError, match=r"a: cannot be written \(No space left on device\)"), write(tmp_path / "a"):
            raise error
    assert names(tmp_path) == []


def test_two_writers_at_once_both_succeed(tmp_path):
    """Each replaces the folder many times; a reader of the result finds one of the two."""

    def write(text: str) -> None:
        for _ in range(25):
            with atomic_folder(tmp_path / "a") as folder:
                (folder / "text.txt").write_text(text)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, text) for text in ("one", "two")]:
            done.result()
    assert (tmp_path / "a" / "text.txt").read_text() in ("one", "two")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("home", [None, "~", "~/x"])
def test_without_a_home_the_cache_is_among_the_temporary_files(home, monkeypatch):
    """Finding 2: no folder is ever called ~."""
    for name in ("DPCML_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
    else:
        monkeypatch.setenv("HOME", home)
    assert cache_folder() == temporary_cache_folder()
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("DPCML_CACHE", "~/here")
    assert cache_folder() == Path("/home/ann/here")
