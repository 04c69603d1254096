"""`load_dataset`: named data sets, files and the planted data set as `Interactions`; pooch downloads and checks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.data.named_sets import DATASETS as DATASETS
from dpcml.data.named_sets import NamedDataset
from dpcml.data.prepare import OLD_NAMES, Rules
from dpcml.data.shards import Shards, is_shards
from dpcml.utils.errors import DataError, DownloadError, DpcmlError, ParameterError, did_you_mean
from dpcml.utils.files import cache_folder, locked, near_files
from dpcml.utils.names import rename_arguments

Progress = Callable[[int, int | None], None]  # bytes done, bytes in total if known


def load_dataset(source: str | Path, *, progress: Progress | None = None, **options: Any) -> Interactions:
    """Load a named data set, read a file, or generate the planted data set.

    Parameters
    ----------
    source
        A name in `DATASETS` such as ``"ml-1m"``, a file, a folder of shards, a folder that has the name and the files
        of a named set, or ``"planted"``. A name wins over a file of that name: write ``./ml-1m`` for the latter.
        A named set is looked for in ``$DPCML_DATA``, then in the cache, and downloaded otherwise.
    progress
        Called with the bytes done and the bytes in total (None if unknown) during a download.
    **options
        For a named set the rules in place of the paper's (``min_rating``, ``min_user_interactions``,
        ``min_item_interactions``, ``core``, ``text_ids``) and ``items``; for a file what
        `dpcml.data.readers.read` takes; for ``"planted"`` what `dpcml.data.synthetic.planted` takes.

    Examples
    --------
    >>> load_dataset("planted", n_users=200, n_items=300, positives=12)
    Interactions(200 users, 300 items, 2,367 positives)
    >>> load_dataset("ml_1m")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: no file and no data set 'ml_1m': did you mean 'ml-1m'?
    """
    if str(source) == "planted":
        from dpcml.data.synthetic import planted

        return planted(**options).data
    if str(source) in DATASETS:
        return DatasetStore().load(str(source), progress=progress, **options)
    path = Path(source)
    try:
        there = path.exists()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a file or a data set") from None
    if is_shards(path):
        if options:
            raise ParameterError(f"{next(iter(options))}: {path} holds shards, whose rules were set by 'data ingest'")
        return Shards.open(path).interactions()
    if path.is_dir():
        name = path.resolve().name
        if name not in DATASETS or DATASETS[name].layout(path) is None:
            raise DataError(f"{path}: a folder; pass a file, or a folder with the name and the files of a named set")
        return _read(DATASETS[name], path, options)
    if not there:
        hint = did_you_mean(str(source), [*DATASETS, *near_files(path)])
        raise DataError(f"no file and no data set {str(source)!r}: {hint.replace('known:', 'known sets:')}")
    from dpcml.data.readers import read

    return read(path, **options)


class DatasetStore:
    """Named data sets on this machine, and how to get those that are not.

    A set is looked for in ``$DPCML_DATA`` first, then in the cache: ``$DPCML_CACHE``, else
    ``$XDG_CACHE_HOME/dpcml``, else ``~/.cache/dpcml``.

    Examples
    --------
    >>> cache = DatasetStore()
    >>> list(cache.folders("ml-1m"))[-1]
    'cache'
    >>> cache.locate("ml-2m")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown data set 'ml-2m': did you mean 'ml-1m'?
    """

    def __init__(self) -> None:
        self.root = cache_folder() / "data"
        self.own = os.environ.get("DPCML_DATA")

    def folders(self, name: str) -> dict[str, Path]:
        """Return the folders in which a set is looked for, in order."""
        own = {"DPCML_DATA": Path(self.own) / name} if self.own else {}
        return {**own, "cache": self.root / name}

    def locate(self, name: str) -> Path | None:
        """Return the folder that holds a set, None if it is not on this machine."""
        dataset = DATASETS[name]
        return next((folder for folder in self.folders(name).values() if dataset.layout(folder)), None)

    def load(self, name: str, *, progress: Progress | None = None, **options: Any) -> Interactions:
        """Return a named set, downloaded first if it is not on this machine; see `load_dataset`.

        Examples
        --------
        >>> DatasetStore().load("ml-1m", user="uid")
        Traceback (most recent call last):
        ...
        dpcml.utils.errors.ParameterError: user='uid': the files of 'ml-1m' are known; for a named set only core,
        item_space, items, min_item_interactions, min_rating, min_user_interactions, text_ids, weight can be chosen
        """
        options = _check_options(name, options)
        folder = self.locate(name)
        try:
            folder = folder or self.fetch(name, progress)
        except DownloadError as error:
            places = " and ".join(str(folder) for folder in self.folders(name).values())
            raise DownloadError(
                f"data set {name!r} is not in {places}, and cannot be downloaded: {error}. Put"
                f" {DATASETS[name].needs()} from {DATASETS[name].home} into $DPCML_DATA/{name},"
                f" or run 'dpcml data fetch {name}' where there is a connection"
            ) from None
        return _read(DATASETS[name], folder, options)

    def fetch(self, name: str, progress: Progress | None = None) -> Path:
        """Download a set into the cache, check it, and return its folder.

        A set that is on disk already is left alone. A download that breaks off is kept; the next call goes on.

        Parameters
        ----------
        name
            A name in `DATASETS`.
        progress
            Called with the bytes done and the bytes in total (None if unknown), file by file.
        """
        from dpcml.data.download import download

        dataset, target = DATASETS[name], self.root / name
        staging = self.root / f".{name}"  # stays after a broken download
        try:
            if folder := self.locate(name):
                return folder
            staging.mkdir(parents=True, exist_ok=True)
            with locked(self.root, patience=None):  # two processes must not write the same partial file
                if folder := self.locate(name):  # another process was faster
                    return folder
                for part in dataset.downloads:
                    download(part, staging, progress)
                _check_content(dataset, staging)
                _move(dataset, staging, target)
        except DpcmlError:
            raise
        except OSError as error:
            raise DownloadError(f"{target}: cannot be written: {error.strerror or error}; set DPCML_CACHE") from None
        finally:
            if staging.is_dir() and not any(staging.iterdir()):
                staging.rmdir()
        return target


def _move(dataset: NamedDataset, staging: Path, target: Path) -> None:
    """Move a whole download to its place, so that one that is killed meanwhile does not look whole."""
    if not target.exists():
        staging.replace(target)
        return
    needed = {file for layout in dataset.layouts for file in layout.files}
    for file in sorted(staging.iterdir(), key=lambda file: file.name in needed):
        file.replace(target / file.name)


def _check_content(dataset: NamedDataset, folder: Path) -> None:
    """Check the content of a set whose files have no known checksum."""
    if dataset.content_hash is None:
        return
    found = _read(dataset, folder, {}).content_hash
    if found != dataset.content_hash:
        shutil.rmtree(folder)
        raise DownloadError(
            f"{dataset.home}: wrong content: expected hash {dataset.content_hash}, found {found};"
            " the download is removed, run it again to start anew"
        )


def _check_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for a named set under their new names, or raise where one makes no sense."""
    options = rename_arguments("load_dataset", options, OLD_NAMES, stacklevel=5)
    allowed = sorted({"items", "weight", *(field.name for field in fields(Rules))})
    for option, value in options.items():
        if option not in allowed:
            raise ParameterError(
                f"{option}={value!r}: the files of {name!r} are known;"
                f" for a named set only {', '.join(allowed)} can be chosen"
            )
    return options


def _read(dataset: NamedDataset, folder: Path, options: dict[str, Any]) -> Interactions:
    """Read a named set from a folder that holds it; options replace the paper's rules."""
    options = _check_options(dataset.name, options)
    layout = dataset.layout(folder)
    if layout is None:
        raise DataError(f"{folder}: does not hold {dataset.name!r}; needed: {dataset.needs()}")
    data = layout.load(folder, **options)
    changed = ", ".join(f"{option}={value}" for option, value in options.items() if option != "items")
    note = f"{dataset.name} from {layout.files[0]}: {dataset.rules}"
    note += f"; changed: {changed}" if changed else ""
    return replace(data, preparation=replace(data.preparation, notes=(note, *data.preparation.notes)))
