"""Data sets by name: found on disk, fetched from their public home, loaded by the paper's rules."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dpcml.data.catalog.archive import move_in, unpack
from dpcml.data.catalog.dataset import DataSet
from dpcml.data.catalog.download import download, locked
from dpcml.data.catalog.sets import CATALOG
from dpcml.data.catalog.transfer import Progress
from dpcml.data.interactions import Interactions
from dpcml.data.prepare import OLD_NAMES, Rules
from dpcml.utils.deprecation import rename_arguments
from dpcml.utils.errors import DataError, DownloadError, DpcmlError, ParameterError, did_you_mean
from dpcml.utils.files import cache_folder

__all__ = ["CATALOG", "DataSet", "fetch", "load", "load_or_read", "locate", "places"]


def places(name: str) -> dict[str, Path]:
    """Return where a set is looked for: ``DPCML_DATA`` first, where it is set, then the cache.

    The cache is ``$DPCML_CACHE``, else ``$XDG_CACHE_HOME/dpcml``, else ``~/.cache/dpcml``.

    Examples
    --------
    >>> list(places("ml-1m"))[-1]
    'cache'
    """
    found = {}
    if root := os.environ.get("DPCML_DATA"):
        found["DPCML_DATA"] = Path(root) / name
    found["cache"] = cache_folder() / "data" / name
    return found


def locate(name: str) -> Path | None:
    """Return the folder that holds a set, None where it is not on this machine.

    Examples
    --------
    >>> locate("ml-2m")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown data set 'ml-2m': did you mean 'ml-1m'?
    """
    data_set = CATALOG[name]
    return next((folder for folder in places(name).values() if data_set.layout(folder)), None)


def load(name: str, *, progress: Progress | None = None, **overrides: Any) -> Interactions:
    """Load a set by name; one that is not on this machine is fetched first.

    Parameters
    ----------
    name
        A name of the catalog: ``"ml-1m"``.
    progress
        Told about bytes done and in total while fetching.
    **overrides
        Rules to use in place of the paper's: ``min_rating``, ``min_user_interactions``,
        ``min_item_interactions``, ``core``, ``text_ids``; ``items`` for another catalogue of titles and attributes.

    Examples
    --------
    >>> load("ml-1m", user="uid")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: user='uid': the files of 'ml-1m' are known; for a named set only core,
    items, min_item_interactions, min_rating, min_user_interactions, text_ids can be chosen
    """
    data_set = CATALOG[name]
    overrides = rename_arguments("load", overrides, OLD_NAMES, stacklevel=3)
    _check(name, overrides)
    folder = locate(name)
    if folder is None:
        try:
            folder = fetch(name, progress)
        except DownloadError as error:
            raise DownloadError(_not_here(data_set, error)) from None
    return _load_from(data_set, folder, **overrides)


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Download a set into the cache, check it, and return its folder.

    A set that is on disk already is left alone. A download that breaks off is kept; the next call goes on.

    Parameters
    ----------
    name
        A name of the catalog.
    progress
        Told about bytes done and in total, file by file.
    """
    data_set = CATALOG[name]
    target = places(name)["cache"]
    staging = target.with_name(f".{name}")  # stays after a broken download
    lock = target.with_name(f".{name}.lock")
    try:
        if folder := locate(name):
            return folder
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(lock):
            if folder := locate(name):  # another process was faster
                return folder
            try:
                _gather(data_set, staging, progress)
                _verify(data_set, staging)
                move_in(staging, target)
            finally:
                lock.unlink()
                if staging.is_dir() and not any(staging.iterdir()):
                    staging.rmdir()
    except DpcmlError:
        raise
    except OSError as error:
        raise DownloadError(f"{target}: cannot be written: {error.strerror or error}; set DPCML_CACHE") from None
    return target


def load_or_read(source: str | Path, *, progress: Progress | None = None, **options: Any) -> Interactions:
    """Load a named set, or read a file or the folder of a named set.

    Parameters
    ----------
    source
        A name of the catalog, a file, or a folder that is called like a named set and holds its files. A name
        of the catalog wins over a file of that name: write ``./ml-1m`` for the latter.
    progress
        Told about bytes done and in total where a set has to be fetched.
    **options
        What `load` takes for a named set, what `dpcml.data.readers.read` takes for a file.

    Examples
    --------
    >>> load_or_read("ml_1m")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: no file and no data set 'ml_1m': did you mean 'ml-1m'?
    """
    if str(source) in CATALOG:
        return load(str(source), progress=progress, **options)
    path = Path(source)
    if path.is_dir():
        name = path.resolve().name
        if name not in CATALOG or CATALOG[name].layout(path) is None:
            raise DataError(f"{path}: a folder; pass a file, or a folder with the name and the files of a named set")
        options = rename_arguments("load_or_read", options, OLD_NAMES)
        _check(name, options)
        return _load_from(CATALOG[name], path, **options)
    if not path.exists():
        hint = did_you_mean(str(source), CATALOG)
        raise DataError(f"no file and no data set {str(source)!r}: {hint.replace('known:', 'known sets:')}")
    from dpcml.data.readers import read

    return read(path, **options)


def _load_from(data_set: DataSet, folder: Path, **overrides: Any) -> Interactions:
    layout = data_set.layout(folder)
    if layout is None:
        raise DataError(f"{folder}: does not hold {data_set.name!r}; needed: {data_set.needs()}")
    data = layout.load(folder, **overrides)
    changed = ", ".join(f"{option}={value}" for option, value in overrides.items() if option != "items")
    note = f"{data_set.name} from {layout.files[0]}: {data_set.rules}"
    note += f"; changed: {changed}" if changed else ""
    return replace(data, preparation=replace(data.preparation, notes=(note, *data.preparation.notes)))


def _check(name: str, overrides: dict[str, Any]) -> None:
    allowed = sorted({"items", *(field.name for field in fields(Rules))})
    for option, value in overrides.items():
        if option not in allowed:
            raise ParameterError(
                f"{option}={value!r}: the files of {name!r} are known;"
                f" for a named set only {', '.join(allowed)} can be chosen"
            )


def _not_here(data_set: DataSet, error: DownloadError) -> str:
    looked = " and ".join(str(folder) for folder in places(data_set.name).values())
    return (
        f"data set {data_set.name!r} is not in {looked}, and cannot be downloaded: {error}."
        f" Put {data_set.needs()} from {data_set.home} into $DPCML_DATA/{data_set.name},"
        f" or run 'dpcml data fetch {data_set.name}' where there is a connection"
    )


def _gather(data_set: DataSet, folder: Path, progress: Progress | None) -> None:
    """Download all files of a set into a folder, and unpack archives there."""
    for part in data_set.downloads:
        if part.members and all((folder / file).is_file() for file in part.members.values()):
            continue  # unpacked by an earlier call that broke off later
        archive = download(part.url, folder / part.file, sha256=part.sha256, md5=part.md5, progress=progress)
        if part.members:
            try:
                unpack(archive, part.members, folder)
            except DataError as error:
                raise DownloadError(f"{part.url}: {error}") from None
            finally:
                archive.unlink()


def _verify(data_set: DataSet, folder: Path) -> None:
    """Check what archives contained, and the content of sets whose files have no known checksum."""
    wrong = ""
    for part in data_set.downloads:
        for name, expected in part.member_sha256.items():
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != expected:
                wrong = f"{part.url}: {name} has the wrong sha256: expected {expected}, found {found}"
    if not wrong and data_set.content_hash is not None:
        found = _load_from(data_set, folder).content_hash
        if found != data_set.content_hash:
            wrong = f"{data_set.home}: wrong content: expected hash {data_set.content_hash}, found {found}"
    if wrong:
        shutil.rmtree(folder)
        raise DownloadError(f"{wrong}; the download is removed, run it again to start anew")
