"""Arrays of a safetensors file as views of the file: nothing is read before it is used."""

from __future__ import annotations

import json
import mmap
from math import prod
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from dpcml.arrays import Array
from dpcml.errors import DataError

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip


def map_arrays(path: str | Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file, read-only, as views of the file mapped into memory.

    The mapping lives as long as one of the arrays, even where the file has been replaced or removed since.

    Examples
    --------
    >>> import tempfile
    >>> from safetensors.numpy import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"a": np.eye(2)}, Path(folder) / "a.safetensors")
    ...     arrays = map_arrays(Path(folder) / "a.safetensors")
    >>> arrays["a"].tolist(), arrays["a"].flags.owndata, arrays["a"].flags.writeable
    ([[1.0, 0.0], [0.0, 1.0]], False, False)
    """
    path = Path(path)
    try:
        with safe_open(path, framework="numpy"):  # checks that header and size fit
            pass
        with path.open("rb") as file:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"{path.name} is damaged or no safetensors file ({error})") from None
    start = 8 + int.from_bytes(view[:8], "little")
    header = json.loads(view[8:start])
    header.pop("__metadata__", None)
    return {name: _array(view, path.name, name, entry, start) for name, entry in header.items()}


def _array(view: mmap.mmap, file: str, name: str, entry: dict[str, object], start: int) -> Array:
    if entry["dtype"] not in _TYPES:
        raise DataError(f"{file}: array {name!r} is of type {entry['dtype']}, which NumPy does not have")
    shape: tuple[int, ...] = tuple(entry["shape"])  # type: ignore[arg-type]
    kind = np.dtype(_TYPES[str(entry["dtype"])])
    if not prod(shape):
        return np.empty(shape, kind)
    begin: int = entry["data_offsets"][0]  # type: ignore[index]
    return np.frombuffer(view, kind, prod(shape), start + begin).reshape(shape)
