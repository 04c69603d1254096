"""Zip archives: single files by name, put in place as a whole."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from dpcml.utils.errors import DataError, ParameterError


def unpack(archive: str | Path, members: Mapping[str, str], folder: str | Path) -> Path:
    """Take some files out of a zip archive into a folder that appears as a whole.

    Parameters
    ----------
    archive
        The zip file.
    members
        The end of a member's path in the archive, and the name that the file gets: ``{"ml-1m/ratings.dat":
        "ratings.dat"}``. Paths in the archive decide nothing about where files go.
    folder
        Where to put them. Files in a folder that exists already are replaced one by one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with zipfile.ZipFile(f"{place}/a.zip", "w") as file:
    ...         file.writestr("set-1/ratings.dat", "1::2::5")
    ...     folder = unpack(f"{place}/a.zip", {"ratings.dat": "ratings.dat"}, f"{place}/set")
    ...     (folder / "ratings.dat").read_text()
    '1::2::5'
    """
    archive, folder = Path(archive), Path(folder)
    for name in members.values():
        if Path(name).name != name or name in ("", ".", ".."):
            raise ParameterError(f"file name {name!r}: must be a plain name without folders")
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with zipfile.ZipFile(archive) as bundle:
            for ending, name in members.items():
                with (
                    bundle.open(_member(bundle, ending, archive)) as source,
                    (staging / name).open("wb") as copy,
                ):
                    shutil.copyfileobj(source, copy)
                    copy.flush()
                    os.fsync(copy.fileno())
        staging.chmod(0o755)
        move_in(staging, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{archive}: not a sound zip archive ({error}); remove it and fetch it again") from None
    except OSError as error:
        raise DataError(f"{archive}: cannot be unpacked into {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def _member(bundle: zipfile.ZipFile, ending: str, archive: Path) -> zipfile.ZipInfo:
    for info in bundle.infolist():
        parts = PurePosixPath(info.filename).parts
        if ".." not in parts and not info.is_dir() and f"/{info.filename}".endswith(f"/{ending}"):
            return info
    held = ", ".join(info.filename for info in bundle.infolist()[:8]) or "nothing"
    raise DataError(f"{archive}: no file {ending!r} in the archive; it holds {held}")


def move_in(staging: Path, folder: Path) -> None:
    """Give a folder its final name; where that exists already, its files of the same names are replaced.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as place:
    ...     (Path(place) / "new").mkdir()
    ...     move_in(Path(place) / "new", Path(place) / "set")
    ...     [folder.name for folder in Path(place).iterdir()]
    ['set']
    """
    if not folder.exists():
        staging.rename(folder)
        return
    for file in staging.iterdir():
        file.replace(folder / file.name)
    staging.rmdir()
