"""Arrays of a safetensors file as views of the file: nothing is read before it is used."""

from __future__ import annotations

import hashlib
import json
import mmap
from math import prod
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError

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
    return _views(view, path.name)


def read_arrays(path: str | Path, sha256: str | None = None) -> dict[str, Array]:
    """Return the arrays of a safetensors file, read-only, from bytes that are read once and checked.

    Whatever happens to the file afterwards, even being overwritten in place, does not reach them.

    Parameters
    ----------
    path
        The file.
    sha256
        Its checksum, if known.

    Examples
    --------
    >>> import tempfile
    >>> from safetensors.numpy import save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file({"a": np.eye(2)}, Path(folder) / "a.safetensors")
    ...     read_arrays(Path(folder) / "a.safetensors", sha256="f00")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: a.safetensors is damaged: its checksum is not that of the file that was saved
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path.name} cannot be read ({error.strerror})") from None
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"{path.name} is damaged: its checksum is not that of the file that was saved")
    try:
        return _views(data, path.name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path.name} is damaged or no safetensors file ({error})") from None


def _views(view: mmap.mmap | bytes, file: str) -> dict[str, Array]:
    start = 8 + int.from_bytes(view[:8], "little")
    header = json.loads(view[8:start])
    header.pop("__metadata__", None)
    return {name: _array(view, file, name, entry, start) for name, entry in header.items()}


def _array(view: mmap.mmap | bytes, file: str, name: str, entry: dict[str, object], start: int) -> Array:
    if entry["dtype"] not in _TYPES:
        raise DataError(f"{file}: array {name!r} is of type {entry['dtype']}, which NumPy does not have")
    shape: tuple[int, ...] = tuple(entry["shape"])  # type: ignore[arg-type]
    kind = np.dtype(_TYPES[str(entry["dtype"])])
    if not prod(shape):
        return np.empty(shape, kind)
    begin: int = entry["data_offsets"][0]  # type: ignore[index]
    return np.frombuffer(view, kind, prod(shape), start + begin).reshape(shape)
