"""Writing files so that nothing half-written stays behind."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpcml.errors import DataError


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
        if error.filename != str(temporary):
            raise  # the block failed at something else
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another place") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as a whole or not at all."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
