"""One user per line: count then ids, or id then items."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcml import Interactions
from dpcml.data.readers import read
from dpcml.utils.errors import DataError, ParameterError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users.dat"


def lists(data: Interactions) -> dict[int, list[int]]:
    return {int(user): data.item_ids[data.of(row)].tolist() for row, user in enumerate(data.user_ids)}


def test_count_then_ids(file: Path) -> None:
    file.write_text("2 7 9\n0\n1 4\n")
    data = read(file)
    assert lists(data) == {0: [7, 9], 2: [4]}
    assert data.preparation.notes == ("format: count-then-ids",)


def test_id_then_items(file: Path) -> None:
    file.write_text("10 7 9\n\n11\n12 4 7 5 \n")
    data = read(file)
    assert lists(data) == {10: [7, 9], 12: [4, 5, 7]}
    assert data.preparation.notes == ("format: id-then-items",)


def test_line_ends_of_windows(file: Path) -> None:
    file.write_bytes(b"2 7 9\r\n1 4\r\n")
    assert lists(read(file)) == {0: [7, 9], 1: [4]}


def test_the_format_is_given(file: Path) -> None:
    file.write_text("1 7\n2 7 9\n")
    assert lists(read(file)) == {0: [7], 1: [7, 9]}
    assert lists(read(file, format="id-then-items")) == {1: [7], 2: [7, 9]}


@pytest.mark.parametrize("word", ["-3", "x", "1.5", "7,8", str(2**63), "9" * 50, "٣", "+4"])
@pytest.mark.parametrize("kind", ["count-then-ids", "id-then-items"])
def test_bad_ids(file: Path, word: str, kind: str) -> None:
    file.write_text(f"1 7\n2 8 {word}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"users\.dat, line 2: .*: ids must be whole numbers between 0 and"):
        read(file, format=kind)


def test_bad_ids_are_found_without_naming_the_format(file: Path) -> None:
    file.write_text("1 7\n2 8 9\n2 8 x\n1 3\n")
    with pytest.raises(DataError, match=r"users\.dat, line 3: 'x': ids must be whole numbers"):
        read(file)


def test_long_files(file: Path) -> None:
    lines = [f"2 {k} {2**40 if k == 60_000 else k + 1}" for k in range(70_000)]
    file.write_text("\n".join(lines))
    data = read(file)
    assert (data.n_users, data.n_positives, data.item_ids.max()) == (70_000, 140_000, 2**40)
    file.write_text("\n".join([*lines, "1 x"]))
    with pytest.raises(DataError, match=r"users\.dat, line 70001: 'x'"):
        read(file)


def test_the_largest_id(file: Path) -> None:
    file.write_text(f"1 {2**63 - 1}\n1 {'0' * 30}7\n")
    assert lists(read(file)) == {0: [2**63 - 1], 1: [7]}


@pytest.mark.parametrize("line", ["3 7 9", "1 7 9", "0 7", f"{2**62} 1"])
def test_wrong_count(file: Path, line: str) -> None:
    file.write_text(f"1 4\n2 4 5\n{line}\n")
    with pytest.raises(DataError, match=r"users\.dat, line 3: the count \d+ is followed by [12] ids"):
        read(file)


def test_empty_line_where_a_count_should_be(file: Path) -> None:
    file.write_text("1 4\n\n1 5\n")
    with pytest.raises(DataError, match=r"users\.dat, line 2: empty; each line needs a count"):
        read(file)


def test_nobody_has_anything(file: Path) -> None:
    file.write_text("0\n0\n")
    with pytest.raises(DataError, match=r"users\.dat: no rows"):
        read(file)


def test_a_table_with_spaces_is_no_list(file: Path) -> None:
    file.write_text("5 242 3\n5 302 3\n6 377 1\n")
    with pytest.raises(DataError, match="one column only"):
        read(file)
    assert lists(read(file, separator=" ")) == {5: [242, 302], 6: [377]}


def test_columns_make_no_sense_here(file: Path) -> None:
    file.write_text("1 4\n")
    with pytest.raises(ParameterError, match="files of format 'count-then-ids' take no such option"):
        read(file, user="1")


def test_citeulike_has_the_counts_of_the_paper(real_data: Path) -> None:
    data = read(real_data / "citeulike-t" / "users.dat", min_user_interactions=5)
    assert (data.n_users, data.item_id_space, data.n_positives) == (5_219, 25_975, 125_580)


def test_gowalla_in_three_files(real_data: Path) -> None:
    folder = real_data / "gowalla"
    data = read([folder / "train.txt", folder / "valid.txt", folder / "test.txt"])
    assert (data.n_users, data.n_items, data.n_positives) == (29_858, 40_981, 1_027_370)
    assert data.preparation.duplicates == 0
