"""What is known of a named data set: where it comes from, how it may lie on disk, how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable, positions
from dpcml.utils.errors import ParameterError

Catalogue = Callable[[Path], ItemTable | None]  # finds titles and attributes in a set's folder


@dataclass(frozen=True)
class Download:
    """One file at the public home of a data set."""

    url: str
    file: str  # name on disk
    sha256: str | None = None
    md5: str | None = None
    members: Mapping[str, str] = field(default_factory=dict)  # of an archive: end of the member's path, file name
    member_sha256: Mapping[str, str] = field(default_factory=dict)  # checksums of files from the archive, by file name


@dataclass(frozen=True)
class Layout:
    """One way in which a data set may lie in a folder.

    Parameters
    ----------
    files
        Files with positives, all of which must be there.
    more
        Files with further positives that may be there.
    catalogue
        Finds titles and attributes in the folder.
    options
        How to read the files: options of `dpcml.data.readers.read`, the paper's rules among them.
    missing
        A (user, item) pair that these files hold and the paper's positives lack; it is left out.
    fixed
        Rules that cannot be changed, with the reason.
    """

    files: tuple[str, ...]
    more: tuple[str, ...] = ()
    catalogue: Catalogue = lambda folder: None
    options: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[int, int] | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)

    def fits(self, folder: Path) -> bool:
        """Say whether a folder holds the set in this way."""
        return all((folder / file).is_file() for file in self.files)

    def load(self, folder: Path, **overrides: Any) -> Interactions:
        """Read the set from a folder; overrides replace the paper's rules."""
        from dpcml.data.readers import read

        for name, reason in self.fixed.items():
            if name in overrides:
                raise ParameterError(f"{name}={overrides[name]!r}: cannot be changed for {folder.name}: {reason}")
        options = {"items": self.catalogue(folder), **self.options, **overrides}
        paths = [folder / file for file in (*self.files, *self.more) if (folder / file).is_file()]
        data = read(paths if len(paths) > 1 else paths[0], **options)
        return data if self.missing is None else _without(data, *self.missing)


@dataclass(frozen=True)
class Counts:
    """Users, distinct items and positives that a set's rules lead to."""

    users: int
    items: int
    positives: int


@dataclass(frozen=True)
class DataSet:
    """A data set known by name; `dpcml.data.catalog` finds, fetches and loads it.

    Parameters
    ----------
    name, title, home, licence
        What it is called, what it is about, the page where it is published and on which terms.
    downloads
        The files to fetch.
    layouts
        Ways in which it may lie on disk; the first that fits a folder counts.
    counts
        What comes out.
    rules
        How rows become positives, in words.
    content_hash
        `Interactions.content_hash` of what a download must contain, where the files' checksums are not known.
    """

    name: str
    title: str
    home: str
    licence: str
    downloads: tuple[Download, ...]
    layouts: tuple[Layout, ...]
    counts: Counts
    rules: str
    content_hash: str | None = None

    def layout(self, folder: Path) -> Layout | None:
        """Return the first layout that fits a folder, None where it does not hold the set."""
        return next((layout for layout in self.layouts if layout.fits(folder)), None)

    def needs(self) -> str:
        """Say which files make a folder hold the set.

        Examples
        --------
        >>> layouts = (Layout(("u.data",)), Layout(("train.txt", "test.txt")))
        >>> DataSet("tiny", "", "", "", (), layouts, Counts(1, 1, 1), "").needs()
        'u.data, or train.txt and test.txt'
        """
        return ", or ".join(" and ".join(layout.files) for layout in self.layouts)


def _without(data: Interactions, user: int, item: int) -> Interactions:
    """Leave out one pair, if it is there, and say so."""
    row, column = positions(data.user_ids, np.array([user]))[0], positions(data.item_ids, np.array([item]))[0]
    gone = (data.rows == row) & (data.indices == column)
    if row < 0 or column < 0 or not gone.any():
        return data
    note = f"left out, as in the paper: user {user}, item {item} (the first row of the original file)"
    done = replace(data.preparation, notes=(*data.preparation.notes, note))
    return replace(data.select(~gone), preparation=done)
