import json

import numpy as np
import polars as pl
import pytest

from dpcml.demo import draw_demo, run_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo()


def test_vectors_are_interests_and_minorities_are_served(demo):
    """What the README claims, on the world that it shows."""
    cells = demo.comparison.cells
    best = max(cells[name]["minority_R@10"].mean for name in ("ease", "cml", "itemknn"))
    assert cells["dpcml"]["minority_R@10"].mean > 1.3 * best
    assert cells["dpcml"]["NDCG@10"].mean > cells["ease"]["NDCG@10"].mean
    agreement = demo.reports["dpcml"].metrics
    assert agreement["interest_agreement"] > 0.8
    assert agreement["interest_agreement_held_out"] > 0.7


def test_the_user_of_the_picture_is_typical(demo):
    truth, user = demo.world.truth, demo.typical()
    shares = [demo.served("dpcml", k)[truth.user_interests[k, 1:]].sum() for k in range(200)]
    assert shares[user] == pytest.approx(np.median(shares), abs=0.051)


def test_everything_is_written(demo, tmp_path):
    files = demo.write(tmp_path)
    assert all(file.stat().st_size for file in files)
    assert pl.read_csv(tmp_path / "world.csv").height == demo.world.data.n_positives
    assert json.loads((tmp_path / "report-ease.json").read_text())["split"] == demo.split.hash


def test_the_story_names_the_true_interests_and_what_is_served(demo):
    truth = demo.world.truth
    story = demo.story(user=3)
    assert f"User 3 likes {truth.categories[truth.user_interests[3, 0]]} 65%" in story
    assert all(f"  {name}" in story for name in demo.models)
    share = demo.served("cml", 3)[truth.user_interests[3, 0]]
    assert f"cml         {truth.categories[truth.user_interests[3, 0]]} {share:.0%}" in story


def test_the_picture_is_a_png(demo, tmp_path):
    draw_demo(demo, tmp_path / "interests.png")
    assert (tmp_path / "interests.png").read_bytes().startswith(b"\x89PNG")
