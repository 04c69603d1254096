"""Snapshots: the files of a folder opened together, so that a writer who replaces the folder does not mix two."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from dpcml.utils.errors import RecoveryWarning
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
