import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.interests import bench_interests
from benchmarks.intervals import bootstrap_means, interval
from dpcml.data.synthetic import planted


def test_intervals_are_those_of_the_central_limit_and_paired():
    rng = np.random.default_rng(0)
    users = rng.normal(size=900)
    runs = [users + 0.01 * rng.normal(size=900) for _ in range(5)]  # a user is alike in all seeds
    runs[0][::2] = np.nan
    drawn = bootstrap_means({"a": runs, "b": [run + 0.5 for run in runs]}, np.random.default_rng(1))
    low, high = interval(drawn["a"])
    assert 0.8 < (high - low) / (2 * 1.96 * users.std() / 30) < 1.5  # five seeds are not five times the users
    assert interval(drawn["b"] - drawn["a"]) == pytest.approx((0.5, 0.5))


def test_figures_have_intervals_differences_and_shares_of_the_oracle():
    world = planted(200, 150, seed=1)
    small = {"dim": 8, "n_vectors": 2, "epochs": 4, "n_candidates": 4}
    found = bench_interests(world=world, models=["dpcml", "ease"], seeds=2, trials=1, **small)
    assert list(found["models"]) == ["dpcml", "ease", "oracle"]
    for name, row in found["models"].items():
        assert ("interest_agreement" in row) == (name != "ease")
        figure = row["NDCG@10"]
        assert figure["low"] < figure["mean"] < figure["high"]
        assert ("difference" in figure) == (name != "dpcml")
        assert ("share_of_oracle" in figure) == (name != "oracle")
        assert row["coverage@10"]["low"] is None
    ease = found["models"]["ease"]["NDCG@10"]
    assert ease["difference"]["low"] < ease["difference"]["mean"] < ease["difference"]["high"]


def test_competitors_are_searched_and_every_trial_is_kept():
    found = bench_interests(world=planted(150, 120, seed=1), models=["rp3beta", "ease"], seeds=1, trials=3)
    assert [row["model"] for row in found["trials"]] == ["rp3beta"] * 3 + ["ease"] * 3
    assert [row["parameters"] for row in found["trials"][3:]] == [{}, {"l2": 50.0}, {"l2": 500.0}]
    best = max(found["trials"][3:], key=lambda row: row["validation"])
    assert found["found"]["ease"] == best["parameters"]


def test_data_without_categories_has_the_other_metrics(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{u},{i}" for u in range(40) for i in range(30) if rng.random() < 0.5]
    (tmp_path / "likes.csv").write_text("user,item\n" + "\n".join(rows))
    result = CliRunner().invoke(
        app, ["interests", "--data", str(tmp_path / "likes.csv"), "--seeds", "1", "--trials", "1", "--json"]
    )
    found = json.loads(result.stdout)["sets"][0]["models"]
    assert set(found["ease"]) == {"NDCG@5 (released)", "NDCG@10", "coverage@10"}
