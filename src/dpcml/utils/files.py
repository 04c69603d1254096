"""Files: atomic writes, errors of a full disk, JSON with a checksum, the cache folder, names that were misspelt."""

from __future__ import annotations

import difflib
import errno
import fcntl
import glob
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from dpcml.utils.errors import DataError

# Errors of the device: no space left, quota, file too big, read-only, broken.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
LOCK_SECONDS = 10  # longest wait for a writer that replaces a folder, which takes milliseconds


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in a folder beside ``path``; it is renamed to ``path`` when the block succeeds.

    The temporary file is flushed to disk before the rename. When the block raises, the temporary file is removed and
    an older file at ``path`` stays unchanged; what a killed process left is removed by the next one that writes to
    ``path``. A path that cannot be written raises `DataError`.

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
    with ExitStack() as stack:
        temporary = None
        try:
            temporary = stack.enter_context(_staged(path)) / path.name
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush(path.parent)
        except BaseException as error:
            reason = no_room(error)
            if isinstance(error, OSError) and (temporary is None or error.filename == str(temporary)):
                reason = error.strerror
            if reason is None:
                raise  # the block failed for another reason than this file
            raise DataError(f"{path}: cannot be written ({reason}); choose another place") from error


def no_room(error: BaseException) -> str | None:
    """Return why a device took no more bytes, if an error says so; None for all other errors.

    Libraries written in Rust (polars, safetensors) raise errors of their own, or panic, with the number of the
    system's error in the text.

    Examples
    --------
    >>> no_room(OSError(errno.ENOSPC, "No space left on device"))
    'No space left on device'
    >>> no_room(RuntimeError("I/O error: File too large (os error 27)"))
    'File too large'
    >>> no_room(KeyError("a")) is None
    True
    """
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, OSError) and re.search(r"\d+ requested and \d+ written", str(error)):
        number = errno.ENOSPC  # NumPy's word on it
    if "thrift: transport error" in str(error):
        number = errno.ENOSPC  # polars' word for the end of a Parquet file
    if number is None and (found := re.search(r"os error (\d+)|code: (\d+), kind: ", str(error))):
        number = int(found.group(1) or found.group(2))
    return os.strerror(number) if number in NO_ROOM else None


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


def to_json(plain: Mapping[str, Any]) -> str:
    r"""Return JSON in ASCII only, so that even a lone surrogate in an id survives; NumPy scalars become numbers.

    Examples
    --------
    >>> to_json({"a": "\ud800"})
    '{\n "a": "\\ud800"\n}'
    """
    return json.dumps(plain, indent=1, default=lambda value: value.item() if hasattr(value, "item") else str(value))


def signed(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data with a checksum, that of its content and not of its bytes: white space does not matter.

    Examples
    --------
    >>> signed({"a": 1})["checksum"] == signed({"a": 1, "checksum": "?"})["checksum"]
    True
    """
    plain = {key: value for key, value in json.loads(to_json(card)).items() if key != "checksum"}
    content = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return {**plain, "checksum": hashlib.sha256(content.encode()).hexdigest()}


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it replaces ``path`` when the block succeeds.

    Its files are flushed to disk before the rename. When the block raises, an older folder at ``path`` stays unchanged.
    After a crash, `dpcml.utils.saved_files.open_folder` finds a complete folder: the old one or the new one.

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _staged(path) as new:
            yield new
            for file in new.rglob("*"):
                _flush(file)
            _flush(new)
            _swap(new, path)
    except BaseException as error:
        reason = no_room(error)
        if reason is None and isinstance(error, OSError):
            reason = error.strerror or str(error)
        if reason is None:
            raise
        raise DataError(f"{path}: cannot be written ({reason}); make room or choose another place") from error


@contextmanager
def _staged(path: Path) -> Iterator[Path]:
    """Yield a new folder beside ``path`` for what is written; it is removed in the end.

    The folders of writers that were killed are removed at the start. A running writer holds a lock on its own.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    lock = None
    try:
        with locked(path.parent):  # else another writer might clear our folder away before we lock it
            _clear(path)
            new.mkdir()
            lock = os.open(new, os.O_RDONLY)
            with suppress(OSError):  # the file system has no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield new
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def locked(folder: str | Path, *, shared: bool = False, patience: float | None = LOCK_SECONDS) -> Iterator[None]:
    """Hold a lock on a folder; several processes may share it, or one has it alone.

    Where the file system has no locks, or somebody keeps one for longer than ``patience`` (seconds; None waits for
    ever), the block runs without.

    Examples
    --------
    >>> with locked("."):
    ...     pass
    """
    handle = os.open(folder, os.O_RDONLY)
    end = math.inf if patience is None else time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    break
                time.sleep(0.002)
            except OSError:
                break
        yield
    finally:
        os.close(handle)


def aside_of(path: Path) -> Path:
    """Return where `atomic_folder` keeps the old folder for the moment between its two renames.

    Examples
    --------
    >>> aside_of(Path("models/a")).name
    '.a.replaced'
    """
    return path.with_name(f".{path.name}.replaced") if path.name else path


def _swap(new: Path, path: Path) -> None:
    """Replace the old folder by the new one; the old one ends at the path of ``new``, where it is removed.

    A crash between the two renames leaves the old folder aside, where readers find it.
    """
    aside = aside_of(path)
    with locked(path.parent):
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
        if aside.exists():
            aside.rename(new)  # from here on it cannot answer for a folder that somebody removes
        _flush(path.parent)


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


def full_path(path: str | Path) -> Path:
    """Return the full path; raise `DataError` for a relative one when the current folder has been deleted.

    Examples
    --------
    >>> full_path(".") == Path.cwd()
    True
    """
    try:
        return Path(path).resolve()
    except FileNotFoundError:
        raise DataError(
            f"{path}: the current folder has been deleted; change to another, or give a full path"
        ) from None


def cache_folder() -> Path:
    """Return the folder for files that can be computed or downloaded again.

    It is ``$DPCML_CACHE``, else ``$XDG_CACHE_HOME/dpcml``, else ``~/.cache/dpcml``, else, for a user without a home
    folder, one in the folder for temporary files.

    Examples
    --------
    >>> isinstance(cache_folder(), Path)
    True
    """
    cache, general = os.environ.get("DPCML_CACHE"), os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(cache).expanduser() if cache else Path(general or "~/.cache").expanduser() / "dpcml"
    except RuntimeError:  # there is no home folder for the ~
        return temporary_cache_folder()
    return temporary_cache_folder() if folder.parts[0].startswith("~") else folder  # HOME may be a ~ itself


def temporary_cache_folder() -> Path:
    """Return a cache folder of this user among the temporary files; it need not exist.

    Examples
    --------
    >>> temporary_cache_folder().name.startswith("dpcml-")
    True
    """
    name = f"dpcml-{os.getuid()}"
    with suppress(FileNotFoundError):  # nothing can be written, or the current folder is gone
        place = tempfile.gettempdir()
        if Path(place) != Path.cwd():  # its last resort, which is no place for a cache
            return Path(place) / name
    return Path("/tmp") / name


def near_files(path: str | Path, *, folders: bool = False) -> list[str]:
    """Return the files (or folders) beside a missing path whose names are similar to its own, most similar first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "ratings.csv").write_text("")
    ...     [Path(near).name for near in near_files(Path(folder) / "rating.csv")]
    ['ratings.csv']
    """
    path = Path(path)
    try:
        beside = [file.name for file in path.parent.iterdir() if folders == file.is_dir()]
    except (OSError, ValueError):
        return []
    return [str(path.with_name(name)) for name in difflib.get_close_matches(path.name, beside, n=3)]


def near_hint(path: str | Path, *, folders: bool = False) -> str:
    """Return a question that names the file (or folder) that was probably meant, to be put after an error; or nothing.

    Examples
    --------
    >>> near_hint("no/such/folder/ratings.csv")
    ''
    """
    near = near_files(path, folders=folders)
    return f"; did you mean {near[0]!r}?" if near else ""
