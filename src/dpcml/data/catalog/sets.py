"""The named data sets; a new one is one more entry here."""

from __future__ import annotations

from pathlib import Path

from dpcml.data.catalog.dataset import Catalogue, Counts, DataSet, Download, Layout
from dpcml.data.items import ItemTable
from dpcml.data.readers.items import read_tags
from dpcml.utils.registry import Registry

CATALOG: Registry[DataSet] = Registry("data set")
GROUPLENS = "research use with acknowledgement, no redistribution (GroupLens)"
MOVIELENS_FILES = "https://files.grouplens.org/datasets/movielens"
CITEULIKE_FILES = "https://raw.githubusercontent.com/js05212/citeulike-t/master"
GOWALLA_FILES = "https://raw.githubusercontent.com/kuandeng/LightGCN/master/Data/gowalla"
FLAG_ONLY = "interactions.tsv says of each rating only whether it is at least 4; other thresholds need ratings.dat"


def titles_from(file: str) -> Catalogue:
    """Return a function that reads titles and attributes from a file of a folder, if it is there."""

    def find(folder: Path) -> ItemTable | None:
        from dpcml.data.readers import read_items

        return read_items(folder / file) if (folder / file).is_file() else None

    return find


def citeulike_tags(folder: Path) -> ItemTable | None:
    """Read the tags of articles, if both files are there."""
    lists, names = folder / "tag-item.dat", folder / "tags.dat"
    return read_tags(lists, names) if lists.is_file() and names.is_file() else None


def movielens(
    name: str, title: str, md5: str, members: dict[str, str], layouts: tuple[Layout, ...], counts: Counts
) -> DataSet:
    """Describe one of the MovieLens sets."""
    return DataSet(
        name=name,
        title=title,
        home=f"https://grouplens.org/datasets/movielens/{name.removeprefix('ml-')}/",
        licence=GROUPLENS,
        downloads=(Download(f"{MOVIELENS_FILES}/{name}.zip", f"{name}.zip", md5=md5, members=members),),
        layouts=layouts,
        counts=counts,
        rules="rating >= 4, users with >= 5 positives",
    )


STARS = {"format": "movielens", "min_rating": 4, "min_user_interactions": 5}
TSV = {"format": "tsv", "separator": "\t", "header": True}
FLAGS = {**TSV, "user": "userID", "item": "movieID", "rating": "rating_ge4"}
LISTS = {"format": "count-then-ids", "min_user_interactions": 5}
MOVIES = titles_from("movies.dat")
DAT_FILES = {"ratings.dat": "ratings.dat", "movies.dat": "movies.dat"}

CATALOG.add(
    "ml-100k",
    movielens(
        "ml-100k",
        "MovieLens 100K: films",
        "0e33842e24a9c977be4e0107933c0723",
        {"u.data": "u.data", "u.item": "u.item", "u.genre": "u.genre"},
        (Layout(("u.data",), catalogue=titles_from("u.item"), options={**STARS, "format": "movielens-100k"}),),
        Counts(938, 1_447, 55_361),
    ),
)
CATALOG.add(
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
CATALOG.add(
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
CATALOG.add(
    "steam-200k",
    DataSet(
        name="steam-200k",
        title="Steam: games bought",
        home="https://www.kaggle.com/datasets/tamber/steam-video-games",
        licence="see its home page (Kaggle)",
        downloads=(
            Download(
                "https://www.kaggle.com/api/v1/datasets/download/tamber/steam-video-games",
                "steam-video-games.zip",
                members={"steam-200k.csv": "steam-200k.csv"},
                member_sha256={"steam-200k.csv": "2464a568e9b6b007d13d34e2e3a6c8de00e5e7443f4913155f365aaa328c2874"},
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
CATALOG.add(
    "citeulike-t",
    DataSet(
        name="citeulike-t",
        title="CiteULike: articles kept",
        home="https://github.com/js05212/citeulike-t",
        licence="see its home page (GitHub)",
        downloads=tuple(
            Download(f"{CITEULIKE_FILES}/{file}", file, sha256=sha256)
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
CATALOG.add(
    "gowalla",
    DataSet(
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
