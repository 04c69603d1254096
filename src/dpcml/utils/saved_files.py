"""Read what was saved: the files of a folder opened together, and the arrays of safetensors files, mapped or read."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from math import prod
from pathlib import Path

import numpy as np

from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError, RecoveryWarning
from dpcml.utils.files import aside_of, full_path, locked

ATTEMPTS = 1000  # each one fails only if a writer has replaced the folder meanwhile, which takes far longer


@contextmanager
def open_folder(path: str | Path, names: Sequence[str]) -> Iterator[dict[str, BufferedReader]]:
    """Open files of a folder that `dpcml.utils.files.atomic_folder` wrote; all of them are of the same writing.

    The folder is opened once and the files are opened through its handle. A writer that replaces the folder renames
    and removes the old one; what is open stays as it was.

    Parameters
    ----------
    path
        The folder. If a writer was killed between its two renames, the old folder, which it had put aside, is opened
        with a `RecoveryWarning`.
    names
        Names of files; those that are not there, or are no regular files, are left out of the result.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_text("whole")
    ...     with open_folder(folder, ["a.txt", "b.txt"]) as files:
    ...         {name: file.read() for name, file in files.items()}
    {'a.txt': b'whole'}
    """
    with ExitStack() as stack:
        for _ in range(ATTEMPTS):
            handle = _open_present(Path(path))
            stack.callback(os.close, handle)
            files = {name: file for name in names if (file := _open(name, handle, stack)) is not None}
            if len(files) == len(names) or _still_there(Path(path), handle):
                break
            stack.close()  # the folder was replaced and its files removed before all of them were open
        yield files


def _open_present(path: Path) -> int:
    """Return a handle of the folder, or of the one that a writer put aside."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        path = path.resolve()  # a link may point to a folder that is being replaced
        with locked(path.parent, shared=True):  # wait for a writer that is between its two renames
            try:
                return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                handle = os.open(aside_of(path), os.O_RDONLY | os.O_DIRECTORY)
    _warn(path)
    return handle


def present_folder(path: str | Path) -> Path:
    """Return the path of a folder or, with a `RecoveryWarning`, of the one that a killed writer had put aside.

    Examples
    --------
    >>> present_folder("no such folder")
    PosixPath('no such folder')
    """
    place = Path(path)
    aside = aside_of(full_path(place))
    if place.exists() or not aside.exists():
        return place
    with locked(aside.parent, shared=True):  # wait for a writer that is between its two renames
        if place.exists():
            return place
    _warn(place)
    return aside


def _warn(path: Path) -> None:
    text = f"{path}: is missing; {aside_of(path).name}, which a writer that was killed left beside it, is used instead"
    warnings.warn(f"{text}: rename it, or remove it if the folder was removed on purpose", RecoveryWarning, 6)


def _open(name: str, folder: int, stack: ExitStack) -> BufferedReader | None:
    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK, dir_fd=folder)  # a pipe in its place must not block

    try:
        file = stack.enter_context(open(name, "rb", opener=opener))  # noqa: SIM115 (the stack closes it)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return file if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None


def _still_there(path: Path, handle: int) -> bool:
    """Return whether the folder that is open is still the one at its path, or the one that was put aside."""
    for place in (path, aside_of(path.resolve())):
        with suppress(OSError):
            if os.path.samestat(place.stat(), os.fstat(handle)):
                return True
    return False


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
