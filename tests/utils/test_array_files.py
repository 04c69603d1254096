from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from dpcml.utils.array_files import map_arrays, read_arrays
from dpcml.utils.errors import DataError


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
