"""What is read of a folder that is replaced meanwhile is of one writing (finding 1); arrays come back as they were."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from safetensors.numpy import save_file

from dpcml.utils import saved_files
from dpcml.utils.errors import DataError, RecoveryWarning
from dpcml.utils.files import atomic_folder
from dpcml.utils.saved_files import map_arrays, open_folder, read_arrays

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
    first, opened = saved_files._open, []

    def slow(name, *given):
        opened.append(name)
        if opened == ["a.txt", "b.txt"]:
            write(tmp_path / "m", "new")
        return first(name, *given)

    monkeypatch.setattr(saved_files, "_open", slow)
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


@pytest.mark.parametrize("read", [map_arrays, read_arrays])
def test_damaged_files(tmp_path, read):
    file = tmp_path / "a.safetensors"
    save_file({"a": np.arange(100)}, file)
    whole = file.read_bytes()
    for damaged in (b"", whole[:4], whole[:30], whole[:-1], b"\xff" * 8 + whole[8:], whole[:8] + b"x" + whole[9:]):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"a\.safetensors is damaged or no safetensors"):
            read(file)
    with pytest.raises(DataError, match="nowhere"):
        read(tmp_path / "nowhere")
