import time

import pytest

from benchmarks.quality import bench_quality, measure
from dpcml.data.synthetic import planted

SMALL = {"dim": 8, "n_vectors": 2, "epochs": 8, "validate_every": 2}


@pytest.fixture
def likes(tmp_path):
    data = planted(150, 100, seed=2).data
    rows = [f"{user},{item}" for user, item in zip(data.rows, data.indices, strict=True)]
    (tmp_path / "likes.csv").write_text("\n".join(["user,item", *rows]))
    return str(tmp_path / "likes.csv")


def test_an_easy_target_is_reached_and_an_impossible_one_is_not(likes):
    easy = measure(likes, 0.0, SMALL, seed=0, started=time.monotonic())
    assert easy["epoch"] == 1
    assert 0 < easy["seconds"] < easy["seconds_to_stop"]
    hard = measure(likes, 1.1, SMALL, seed=0, started=time.monotonic())
    assert hard["epoch"] is hard["seconds"] is None
    assert hard["P@3"] == easy["P@3"] > 0.03  # evaluating the test part changes nothing


def test_runs_in_processes_of_their_own(likes):
    found = bench_quality(likes, target=0.0, repeats=1, **SMALL)
    assert found["seconds"] == found["runs"][0]["seconds"] > 0
    assert found["protocol"] == "released"
