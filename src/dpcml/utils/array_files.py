"""Arrays of safetensors files, memory-mapped or read: from a path, or from a file that is open already."""

from __future__ import annotations

import hashlib
import json
import mmap
from io import BufferedReader
from math import prod
from pathlib import Path

import numpy as np

from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip


def map_arrays(source: str | Path | BufferedReader) -> dict[str, Array]:
    """Return the arrays of a safetensors file as read-only views of the memory-mapped file.

    The mapping lives as long as one of the arrays, even if the file has been replaced or removed. It shows what is
    written to the file in place, and a file that is cut under it ends the process (SIGBUS).

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
    if isinstance(source, (str, Path)):
        path = Path(source)
        try:
            with path.open("rb") as file:
                return map_arrays(file)
        except OSError as error:
            raise DataError(f"{path.name} cannot be read ({error.strerror})") from None
    name = Path(source.name).name
    try:
        view = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise DataError(f"{name} is damaged or no safetensors file ({error})") from None
    return _views(view, name)


def read_arrays(source: str | Path | BufferedReader, sha256: str | None = None) -> dict[str, Array]:
    """Return the arrays of a safetensors file, read into memory and checked against a checksum.

    Later changes to the file, even in place, do not change the arrays. The arrays are read-only.

    Parameters
    ----------
    source
        A path, or a file that is open for reading bytes.
    sha256
        Expected checksum of the file; None skips the check.

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
    name = Path(source if isinstance(source, (str, Path)) else source.name).name
    try:
        data = Path(source).read_bytes() if isinstance(source, (str, Path)) else source.read()
    except OSError as error:
        raise DataError(f"{name} cannot be read ({error.strerror})") from None
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise DataError(f"{name} is damaged: its checksum is not that of the file that was saved")
    return _views(data, name)


def _views(view: mmap.mmap | bytes, file: str) -> dict[str, Array]:
    try:
        start = 8 + int.from_bytes(view[:8], "little")
        if not 8 < start <= len(view):
            raise ValueError(f"a header of {start - 8:,} bytes in a file of {len(view):,}")
        header = json.loads(view[8:start])
        header.pop("__metadata__", None)
        ends = [entry["data_offsets"][1] for entry in header.values()]
        if start + max(ends, default=0) != len(view):
            raise ValueError("its arrays do not end where the file ends")
        return {name: _array(view, file, name, entry, start) for name, entry in header.items()}
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise DataError(f"{file} is damaged or no safetensors file ({error})") from None


def _array(view: mmap.mmap | bytes, file: str, name: str, entry: dict[str, object], start: int) -> Array:
    if entry["dtype"] not in _TYPES:
        raise DataError(f"{file}: array {name!r} is of type {entry['dtype']}, which NumPy does not have")
    shape: tuple[int, ...] = tuple(entry["shape"])  # type: ignore[arg-type]
    kind = np.dtype(_TYPES[str(entry["dtype"])])
    if not prod(shape):
        return np.empty(shape, kind)
    begin: int = entry["data_offsets"][0]  # type: ignore[index]
    return np.frombuffer(view, kind, prod(shape), start + begin).reshape(shape)
