"""Files: atomic writes of files and folders, arrays from safetensors files, the cache folder."""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import json
import mmap
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from dpcml.utils.arrays import Array
from dpcml.utils.errors import DataError

# Errors of the device: no space left, quota, file too big, read-only, broken.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; it is renamed to ``path`` when the block succeeds.

    The temporary file is flushed to disk before the rename. When the block raises, the temporary file is removed and
    an older file at ``path`` stays unchanged. A path that cannot be written raises `DataError`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     [file.name for file in Path(folder).iterdir()]
    ['a.txt']
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file to write to")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot make its folder ({error.strerror}); choose another place") from error
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.filename != str(temporary) and error.errno not in NO_ROOM:
            raise  # the block failed for another reason than this file
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file atomically.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "a.txt", "whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it replaces ``path`` when the block succeeds.

    Its files are flushed to disk before the rename. When the block raises, an older folder at ``path`` stays unchanged.
    After a crash, `present` returns a complete folder: the old one or the new one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_folder(Path(folder) / "a") as temporary:
    ...         _ = (temporary / "b.txt").write_text("whole")
    ...     [str(file.relative_to(folder)) for file in Path(folder).rglob("*")]
    ['a', 'a/b.txt']
    """
    path = Path(path)
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    lock = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear(path)
        new.mkdir()
        lock = os.open(new, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield new
        for file in new.iterdir():
            _flush(file)
        _flush(new)
        _swap(new, path)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{path}: cannot be written ({reason}); make room or choose another place") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def present(path: str | Path) -> Path:
    """Return the path of a folder that `atomic_folder` wrote; after a crash this is the folder that was to be replaced.

    Examples
    --------
    >>> present("no/such/folder").as_posix()
    'no/such/folder'
    """
    path, aside = Path(path), _aside(Path(path))
    return aside if not path.exists() and aside.is_dir() else path


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.replaced") if path.name else path


def _swap(new: Path, path: Path) -> None:
    """Replace the old folder by the new one; at every moment `present` finds one of them."""
    aside = _aside(path)
    if path.exists():
        if aside.exists():
            shutil.rmtree(aside)
        path.rename(aside)
        try:
            new.rename(path)
        except BaseException:
            aside.rename(path)
            raise
    else:
        new.rename(path)
    _flush(path.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _clear(path: Path) -> None:
    """Remove temporary folders of writers that have died; a running writer holds a lock on its folder."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(lock)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def map_arrays(path: str | Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file as read-only views of the memory-mapped file.

    The mapping lives as long as one of the arrays, even if the file has been replaced or removed.

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
        with safe_open(path, framework="numpy"):  # checks the header and the size
            pass
        with path.open("rb") as file:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"{path.name} is damaged or no safetensors file ({error})") from None
    return _views(view, path.name)


def read_arrays(path: str | Path, sha256: str | None = None) -> dict[str, Array]:
    """Return the arrays of a safetensors file, read into memory and checked against a checksum.

    Later changes to the file, even in place, do not change the arrays. The arrays are read-only.

    Parameters
    ----------
    path
        Path of the file.
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


def cache_folder() -> Path:
    """Return the folder for files that can be computed or downloaded again.

    It is ``$DPCML_CACHE``, else ``$XDG_CACHE_HOME/dpcml``, else ``~/.cache/dpcml``.

    Examples
    --------
    >>> isinstance(cache_folder(), Path)
    True
    """
    cache = os.environ.get("DPCML_CACHE")
    general = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) if cache else Path(general) / "dpcml"
