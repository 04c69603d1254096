"""Finding 1: what is read of a folder that is replaced meanwhile is of one writing."""

from __future__ import annotations

import os
import threading

import pytest

from dpcml.utils import snapshots
from dpcml.utils.errors import RecoveryWarning
from dpcml.utils.files import atomic_folder
from dpcml.utils.snapshots import open_folder

NAMES = ("a.txt", "b.txt", "c.txt")


def write(path, text):
    with atomic_folder(path) as folder:
        for name in NAMES:
            (folder / name).write_text(text)


def read(path):
    with open_folder(path, NAMES) as files:
        return {name: file.read().decode() for name, file in files.items()}


def test_open_files_stay_what_they_were(tmp_path):
    write(tmp_path / "m", "old")
    with open_folder(tmp_path / "m", NAMES) as files:
        write(tmp_path / "m", "new")
        assert {file.read() for file in files.values()} == {b"old"}
    assert set(read(tmp_path / "m").values()) == {"new"}


def test_a_folder_that_is_replaced_between_two_openings_is_opened_anew(tmp_path, monkeypatch):
    write(tmp_path / "m", "old")
    first, opened = snapshots._open, []

    def slow(name, *given):
        opened.append(name)
        if opened == ["a.txt", "b.txt"]:
            write(tmp_path / "m", "new")
        return first(name, *given)

    monkeypatch.setattr(snapshots, "_open", slow)
    assert read(tmp_path / "m") == dict.fromkeys(NAMES, "new")


def test_readers_never_see_a_mix_or_a_gap(tmp_path):
    write(tmp_path / "m", "0")
    stop = threading.Event()

    def writes():
        for number in range(60):
            write(tmp_path / "m", str(number))
        stop.set()

    writer = threading.Thread(target=writes)
    writer.start()
    while not stop.is_set():
        found = read(tmp_path / "m")
        assert set(found) == set(NAMES)
        assert len(set(found.values())) == 1
    writer.join()


def test_what_is_missing_or_no_file_is_left_out(tmp_path):
    (tmp_path / "a.txt").mkdir()
    os.mkfifo(tmp_path / "b.txt")
    assert read(tmp_path) == {}
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "no" / "folder")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        read(tmp_path / "file")


def test_a_link_to_a_folder_that_was_put_aside(tmp_path):
    write(tmp_path / "m", "old")
    (tmp_path / "now").symlink_to("m")
    (tmp_path / "m").rename(tmp_path / ".m.replaced")
    with pytest.warns(RecoveryWarning, match=r"\.m\.replaced"):
        assert set(read(tmp_path / "now").values()) == {"old"}
