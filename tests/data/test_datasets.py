"""Named sets: the places, the layouts on disk, and the counts of the real ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dpcml.data.datasets import DATASETS, DatasetStore, load_dataset
from dpcml.utils.errors import DataError, DownloadError, ParameterError

RATINGS = "".join(
    f"{user}::{movie}::{3 + (user + movie) % 3}::97830{movie}\n" for user in (1, 2, 7) for movie in range(1, 19)
)
RATINGS = f"1::1193::5::978300760\n{RATINGS}"


def put(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".").replace("_", "-")).write_text(text)
    return folder


def test_folders_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DPCML_DATA", raising=False)
    monkeypatch.delenv("DPCML_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert DatasetStore().folders("gowalla") == {"cache": tmp_path / ".cache/dpcml/data/gowalla"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert DatasetStore().folders("gowalla") == {"cache": tmp_path / "xdg/dpcml/data/gowalla"}
    monkeypatch.setenv("DPCML_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("DPCML_DATA", str(tmp_path / "data"))
    found = DatasetStore().folders("gowalla")
    assert list(found.items()) == [
        ("DPCML_DATA", tmp_path / "data/gowalla"),
        ("cache", tmp_path / "own/data/gowalla"),
    ]


def test_the_users_folder_comes_before_the_cache(data: Path) -> None:
    cached = put(DatasetStore().folders("gowalla")["cache"], train__txt="0 1 2\n", test__txt="0 3\n")
    assert DatasetStore().locate("gowalla") == cached
    mine = put(data / "gowalla", train__txt="0 1 2 4\n", test__txt="0 3\n")
    assert DatasetStore().locate("gowalla") == mine
    assert load_dataset("gowalla").n_positives == 4


def test_ml_1m_from_ratings(data: Path) -> None:
    put(
        data / "ml-1m",
        ratings__dat=RATINGS,
        movies__dat="1::Toy Story (1995)::Comedy\n2::Jumanji (1995)::Adventure\n",
        positives__dat="1 5\n",
    )
    found = load_dataset("ml-1m")
    assert found.user_ids.tolist() == [1, 2, 7]
    assert 1193 not in found.item_ids[found.of(0)]  # rated 5, but missing in the paper's positives
    assert any("user 1, item 1193" in line for line in found.preparation.lines())
    assert found.items.title(int(found.item_columns([2])[0])) == "Jumanji (1995)"
    assert load_dataset("ml-1m", min_rating=5).n_positives < found.n_positives


def test_ml_1m_from_flags(data: Path) -> None:
    lines = [line.split("::") for line in RATINGS.splitlines()]
    flags = "".join(f"{user}\t{movie}\t{int(int(stars) >= 4)}\n" for user, movie, stars, _ in lines)
    put(data / "ml-1m", ratings__dat=RATINGS)
    from_stars = load_dataset("ml-1m")
    (data / "ml-1m" / "ratings.dat").unlink()
    put(data / "ml-1m", interactions__tsv=f"userID\tmovieID\trating_ge4\n{flags}")
    assert load_dataset("ml-1m").content_hash == from_stars.content_hash
    with pytest.raises(ParameterError, match=r"min_rating=3.*needs? ratings\.dat"):
        load_dataset("ml-1m", min_rating=3)


def test_a_name_that_is_too_long_is_our_error() -> None:
    with pytest.raises(DataError, match=r"cannot be read \(File name too long\); name a file or a data set"):
        load_dataset("x" * 5000)


def test_lists_of_positives(data: Path) -> None:
    put(data / "steam-200k", positives__dat="5 1 2 3 4 9\n2 1 2\n")
    found = load_dataset("steam-200k")
    assert (found.n_users, found.n_positives) == (1, 5)
    assert load_dataset("steam-200k", min_user_interactions=1).n_users == 2


def test_citeulike_has_tags(data: Path) -> None:
    put(
        data / "citeulike-t",
        users__dat="5 0 1 2 3 4\n",
        tag_item__dat="2 0 1\n1 6\n",
        tags__dat="graphs\nproofs\n",
    )
    found = load_dataset("citeulike-t")
    assert found.items.attributes is not None
    assert found.items.attributes.of(1) == ["graphs"]
    assert found.items.attributes.of(4) == []
    assert found.catalogue_size == 7


def test_gowalla_puts_its_parts_together(data: Path) -> None:
    folder = put(data / "gowalla", train__txt="0 1 2\n1 5\n", test__txt="0 3\n1 1\n")
    without = load_dataset("gowalla")
    put(folder, valid__txt="0 4\n1\n")
    assert (without.n_positives, load_dataset("gowalla").n_positives) == (5, 6)


def test_a_folder_without_the_ratings_is_not_the_set(data: Path) -> None:
    folder = put(data / "ml-10m", movies__dat="1::Toy Story (1995)::Animation\n")
    assert DatasetStore().locate("ml-10m") is None
    with pytest.raises(DownloadError) as caught:
        load_dataset("ml-10m")
    message = str(caught.value)
    for part in (
        str(folder),
        str(DatasetStore().folders("ml-10m")["cache"]),
        "ratings.dat",
        "$DPCML_DATA/ml-10m",
        "data fetch ml-10m",
    ):
        assert part in message


def test_only_rules_of_a_named_set_can_be_chosen(data: Path) -> None:
    with pytest.raises(
        ParameterError, match=r"user='a'.*only core, item_space, items, min_item_interactions, min_rating"
    ):
        load_dataset("ml-1m", user="a")


@pytest.mark.parametrize(
    ("source", "message"),
    [("ml_1m", "did you mean 'ml-1m'"), ("nothing-like-it.csv", "known sets: citeulike-t")],
)
def test_neither_file_nor_name(data: Path, source: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(source)
    with pytest.raises(ParameterError, match="unknown data set"):
        DatasetStore().fetch(source)


def test_load_dataset_takes_names_files_and_folders(data: Path, tmp_path: Path) -> None:
    folder = put(data / "gowalla", train__txt="0 1 2\n", test__txt="0 3\n")
    (tmp_path / "likes.csv").write_text("user,item\nann,tea\nbob,tea\n")
    assert load_dataset("gowalla").n_positives == 3
    assert load_dataset(folder).n_positives == 3
    assert load_dataset(tmp_path / "likes.csv", min_user_interactions=1).n_users == 2
    with pytest.raises(DataError, match="a folder; pass a file"):
        load_dataset(tmp_path)


@pytest.mark.parametrize("name", list(DATASETS))
def test_entries_are_complete(name: str) -> None:
    entry = DATASETS[name]
    assert entry.name == name
    assert entry.home.startswith("https://")
    assert min(entry.counts.users, entry.counts.items, entry.counts.positives) > 0
    for part in entry.downloads:
        assert part.known_hash or any(part.members.values()) or entry.content_hash


REAL = pytest.mark.skipif("DPCML_DATA" not in os.environ, reason="set DPCML_DATA to the folder with the real data sets")


@REAL
@pytest.mark.parametrize(
    ("name", "id_space"),
    [
        ("ml-100k", None),
        ("ml-1m", 3_953),
        ("steam-200k", 5_113),
        ("citeulike-t", 25_975),
        ("gowalla", 40_981),
    ],
)
def test_real_sets_have_the_counts_of_the_paper(name: str, id_space: int | None) -> None:
    if DatasetStore().locate(name) is None:
        pytest.skip(f"{name} is not here")
    found, counts = load_dataset(name), DATASETS[name].counts
    distinct = int((found.per_item > 0).sum())
    assert (found.n_users, distinct, found.n_positives) == (counts.users, counts.items, counts.positives)
    assert id_space in (None, found.item_id_space)
    assert DATASETS[name].content_hash in (None, found.content_hash)


@REAL
def test_layouts_of_ml_1m_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ["DPCML_DATA"]) / "ml-1m"
    if not all((folder / name).is_file() for name in ("interactions.tsv", "positives.dat")):
        pytest.skip("this copy of ml-1m has one layout only")
    flags = load_dataset(folder)
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "positives.dat").symlink_to(folder / "positives.dat")
    lists = load_dataset(tmp_path / "ml-1m")
    assert lists.item_ids.tolist() == flags.item_ids.tolist()
    np.testing.assert_array_equal(lists.indptr, flags.indptr)
    np.testing.assert_array_equal(lists.indices, flags.indices)
