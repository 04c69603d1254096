import json

import polars as pl
import pytest

from dpcml.demo import draw_demo, run_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo()


def test_several_vectors_serve_minorities_that_one_does_not(demo):
    cells = demo.comparison.cells
    assert cells["dpcml"]["minority_R@10"].mean > 1.3 * cells["cml"]["minority_R@10"].mean
    assert cells["dpcml"]["R@10"].mean > 0.95 * cells["cml"]["R@10"].mean


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
