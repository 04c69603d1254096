"""The named data sets: where each is published, how it may lie on disk, and which rules give the paper's counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable, positions
from dpcml.utils.errors import ParameterError
from dpcml.utils.names import Registry


@dataclass(frozen=True)
class Download:
    """One file at the public home of a data set."""

    url: str
    file: str  # name on disk
    known_hash: str | None = None  # as pooch takes it: "md5:..." or "sha256:..."
    members: Mapping[str, str | None] = field(default_factory=dict)  # files taken from a zip, with their hash if known


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
    catalogue: Callable[[Path], ItemTable | None] = lambda folder: None
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
class NamedDataset:
    """A data set known by name; `dpcml.data.datasets.DatasetStore` finds, fetches and loads it.

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
        >>> NamedDataset("tiny", "", "", "", (), layouts, Counts(1, 1, 1), "").needs()
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


DATASETS: Registry[NamedDataset] = Registry("data set")
GROUPLENS = "research use with acknowledgement, no redistribution (GroupLens)"
MOVIELENS_FILES = "https://files.grouplens.org/datasets/movielens"
CITEULIKE_FILES = "https://raw.githubusercontent.com/js05212/citeulike-t/master"
GOWALLA_FILES = "https://raw.githubusercontent.com/kuandeng/LightGCN/master/Data/gowalla"
FLAG_ONLY = "interactions.tsv says of each rating only whether it is at least 4; other thresholds need ratings.dat"


def titles_from(file: str) -> Callable[[Path], ItemTable | None]:
    """Return a function that reads titles and attributes from a file of a folder, if it is there."""

    def find(folder: Path) -> ItemTable | None:
        from dpcml.data.readers.items import read_items

        return read_items(folder / file) if (folder / file).is_file() else None

    return find


def citeulike_tags(folder: Path) -> ItemTable | None:
    """Read the tags of articles, if both files are there."""
    from dpcml.data.readers.items import read_tags

    lists, names = folder / "tag-item.dat", folder / "tags.dat"
    return read_tags(lists, names) if lists.is_file() and names.is_file() else None


def movielens(
    name: str, title: str, md5: str, members: tuple[str, ...], layouts: tuple[Layout, ...], counts: Counts
) -> NamedDataset:
    """Describe one of the MovieLens sets."""
    return NamedDataset(
        name=name,
        title=title,
        home=f"https://grouplens.org/datasets/movielens/{name.removeprefix('ml-')}/",
        licence=GROUPLENS,
        downloads=(Download(f"{MOVIELENS_FILES}/{name}.zip", f"{name}.zip", f"md5:{md5}", dict.fromkeys(members)),),
        layouts=layouts,
        counts=counts,
        rules="rating >= 4, users with >= 5 positives",
    )


STARS = {"format": "movielens", "min_rating": 4, "min_user_interactions": 5}
TSV = {"format": "tsv", "separator": "\t", "header": True}
FLAGS = {**TSV, "user": "userID", "item": "movieID", "rating": "rating_ge4"}
LISTS = {"format": "count-then-ids", "min_user_interactions": 5}
MOVIES = titles_from("movies.dat")
DAT_FILES = ("ratings.dat", "movies.dat")

DATASETS.add(
    "ml-100k",
    movielens(
        "ml-100k",
        "MovieLens 100K: films",
        "0e33842e24a9c977be4e0107933c0723",
        ("u.data", "u.item", "u.genre"),
        (Layout(("u.data",), catalogue=titles_from("u.item"), options={**STARS, "format": "movielens-100k"}),),
        Counts(938, 1_447, 55_361),
    ),
)
DATASETS.add(
    "ml-1m",
    movielens(
        "ml-1m",
        "MovieLens 1M: films",
        "c4d9eecfca2ab87c1945afe126590906",
        DAT_FILES,
        (
            Layout(("ratings.dat",), catalogue=MOVIES, options=STARS, missing=(1, 1193)),
            Layout(
                ("interactions.tsv",),
                catalogue=MOVIES,
                options={**FLAGS, "min_rating": 1, "min_user_interactions": 5},
                missing=(1, 1193),
                fixed={"min_rating": FLAG_ONLY},
            ),
            Layout(("positives.dat",), catalogue=MOVIES, options=LISTS),
        ),
        Counts(6_034, 3_533, 575_271),
    ),
)
DATASETS.add(
    "ml-10m",
    movielens(
        "ml-10m",
        "MovieLens 10M: films",
        "ce571fd55effeba0271552578f2648bd",
        DAT_FILES,
        (Layout(("ratings.dat",), catalogue=MOVIES, options=STARS),),
        Counts(69_167, 10_019, 5_003_437),
    ),
)
DATASETS.add(
    "steam-200k",
    NamedDataset(
        name="steam-200k",
        title="Steam: games bought",
        home="https://www.kaggle.com/datasets/tamber/steam-video-games",
        licence="see its home page (Kaggle)",
        downloads=(
            Download(
                "https://www.kaggle.com/api/v1/datasets/download/tamber/steam-video-games",
                "steam-video-games.zip",
                members={"steam-200k.csv": "sha256:2464a568e9b6b007d13d34e2e3a6c8de00e5e7443f4913155f365aaa328c2874"},
            ),
        ),
        layouts=(
            Layout(("steam-200k.csv",), options={"format": "steam", "min_user_interactions": 5}),
            Layout(("positives.dat",), options=LISTS),
        ),
        counts=Counts(3_757, 5_113, 115_139),
        rules="all purchases, users with >= 5 positives",
    ),
)
DATASETS.add(
    "citeulike-t",
    NamedDataset(
        name="citeulike-t",
        title="CiteULike: articles kept",
        home="https://github.com/js05212/citeulike-t",
        licence="see its home page (GitHub)",
        downloads=tuple(
            Download(f"{CITEULIKE_FILES}/{file}", file, f"sha256:{sha256}")
            for file, sha256 in (
                ("users.dat", "02d5d429b2c0362e0ed79f6ef204666b4092563d21493abf4dfb521e8a7078bf"),
                ("tag-item.dat", "e2b80fc0e023780b63c00a397a2d0934eff6dbaf8a1b918778698361dae7ce6b"),
                ("tags.dat", "2f1e6dd94fe216a4453caf67e337c45f73938373b21d2aa3b6d2696387449e76"),
            )
        ),
        layouts=(Layout(("users.dat",), catalogue=citeulike_tags, options=LISTS),),
        counts=Counts(5_219, 25_181, 125_580),
        rules="users with >= 5 positives",
    ),
)
DATASETS.add(
    "gowalla",
    NamedDataset(
        name="gowalla",
        title="Gowalla: places visited",
        home="https://github.com/kuandeng/LightGCN",
        licence="see its home page (GitHub)",
        downloads=tuple(Download(f"{GOWALLA_FILES}/{file}", file) for file in ("train.txt", "test.txt")),
        layouts=(Layout(("train.txt", "test.txt"), more=("valid.txt",), options={"format": "id-then-items"}),),
        counts=Counts(29_858, 40_981, 1_027_370),
        rules="every check-in, published split put together",
        content_hash="07db2c70cd6326a726950690a2f0dabd36ddac88f71b7e72117d4a1fbdc2daf6",
    ),
)
