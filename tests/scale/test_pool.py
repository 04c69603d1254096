"""Lists and ranks from workers must be those of one process."""

import sys

import numpy as np
import polars as pl
import pytest

from dpcml import EASE, DataError, evaluate
from dpcml.export import write_recommendations
from dpcml.scale import RayRanking, write_parts
from dpcml.utils.errors import MissingExtraError, RecoveryWarning, UnknownIdError


@pytest.fixture(scope="module")
def saved(parts, tmp_path_factory):
    return EASE().fit(parts.train).save(tmp_path_factory.mktemp("model") / "ease")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("dpcml.scale.lists.BLOCK", 32)


def read(folder):
    return pl.concat([pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])


def test_parts_are_the_file_of_one_process(ray_cluster, parts, saved, tmp_path, small_blocks):
    model = EASE().fit(parts.train)
    write_recommendations(model, tmp_path / "one.parquet", n=5, explain=True)
    rows = write_parts(saved, tmp_path / "parts", n=5, explain=True, workers=2, part_users=50)
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == 3
    found = read(tmp_path / "parts")
    assert rows == len(found)
    assert found.equals(pl.read_parquet(tmp_path / "one.parquet"))


def test_a_run_that_was_cut_off_makes_only_what_is_missing(ray_cluster, saved, tmp_path, small_blocks):
    users = np.arange(0, 160, 2)
    rows = write_parts(saved, tmp_path / "parts", users, n=3, part_users=32)
    files = sorted((tmp_path / "parts").glob("*.parquet"))
    before, times = read(tmp_path / "parts"), {file: file.stat().st_mtime_ns for file in files}
    files[1].unlink()
    assert write_parts(saved, tmp_path / "parts", users, n=3, part_users=32) == rows
    assert read(tmp_path / "parts").equals(before)
    assert [file.stat().st_mtime_ns == times[file] for file in files] == [True, False, True]
    with pytest.raises(DataError, match="parts of a run with other n, users"):
        write_parts(saved, tmp_path / "parts", users[:40], n=4, part_users=32)


@pytest.mark.parametrize("damage", [lambda whole: b"", lambda whole: whole[:-9], lambda whole: b"no parquet" * 50])
def test_a_damaged_part_is_made_again(ray_cluster, saved, tmp_path, small_blocks, damage):
    rows = write_parts(saved, tmp_path / "parts", n=3, part_users=64)
    before, file = read(tmp_path / "parts"), tmp_path / "parts" / "part-00001.parquet"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(RecoveryWarning, match=r"part-00001\.parquet: is damaged \(.*\); it is made again"):
        assert write_parts(saved, tmp_path / "parts", n=3, part_users=64) == rows
    assert read(tmp_path / "parts").equals(before)


def test_a_run_that_cannot_start_leaves_the_folder_free(saved, tmp_path, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "ray", None)
        with pytest.raises(MissingExtraError, match=r"\[ray\]"):
            write_parts(saved, tmp_path / "parts")
    monkeypatch.setattr(pytest.importorskip("ray"), "is_initialized", lambda: False)
    with pytest.raises(DataError, match="no Ray cluster"):
        write_parts(saved, tmp_path / "parts", address="127.0.0.1:1")
    assert not (tmp_path / "parts").exists()


def test_bad_requests_write_nothing(saved, tmp_path):
    with pytest.raises(UnknownIdError):
        write_parts(saved, tmp_path / "parts", np.array([3, 999]))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="holds something else"):
        write_parts(saved, tmp_path / "other")
    assert not (tmp_path / "parts").exists()


def test_evaluation_is_that_of_one_process(ray_cluster, parts, saved, monkeypatch):
    monkeypatch.setattr("dpcml.scale.ranking.BLOCK_BYTES", 4 * 100 * 16)  # blocks of 16 users
    model = EASE().fit(parts.train)
    options = {"valid": parts.valid, "k": 5}
    here = evaluate(model, parts.train, parts.test, **options)
    there = evaluate(model, parts.train, parts.test, rank=RayRanking(saved, workers=2), **options)
    assert there.metrics == here.metrics
    assert all(np.array_equal(there.per_user[name], here.per_user[name], equal_nan=True) for name in here.per_user)


def test_errors_of_a_worker_keep_their_kind(ray_cluster, saved, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-00000.parquet").mkdir()
    with pytest.raises(DataError, match="holds something else"):
        write_parts(saved, tmp_path / "parts", n=3)
