"""Writing files so that nothing half-written stays behind."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpcml.utils.errors import DataError

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}  # the place is at fault, not the writer


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place once the block has ended well.

    The temporary file is flushed to disk before the rename. When the block raises, it is removed and whatever
    stood at ``path`` before stays untouched. A place that cannot be written to is a `DataError`.

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
            raise  # the block failed at something else
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as a whole or not at all.

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
    """Yield a temporary folder beside ``path`` that takes its place once the block has ended well.

    All of it is flushed to disk before it is renamed. When the block raises, whatever stood at ``path`` before stays
    untouched. A crash leaves the old folder or the new one, whole: at ``path``, or where `present` finds it.

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
    """Return where a folder of `atomic_folder` is: at its place, or aside if a crash cut its replacement in two.

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
    """Put the new folder in place of the old one; at every moment one of them is where `present` looks."""
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
    """Remove temporary folders of writers that are no more; a living one holds a lock."""
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


def cache_folder() -> Path:
    """Return where things that can be made or fetched again are kept.

    It is ``$DPCML_CACHE``, else ``$XDG_CACHE_HOME/dpcml``, else ``~/.cache/dpcml``.

    Examples
    --------
    >>> isinstance(cache_folder(), Path)
    True
    """
    cache = os.environ.get("DPCML_CACHE")
    general = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) if cache else Path(general) / "dpcml"
