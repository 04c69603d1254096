import json

import polars as pl

from dpcml.experiments.demo import plot, run_demo


def test_the_demo_shows_who_is_served_and_writes_it(tmp_path):
    demo = run_demo(300, 300, seed=1)
    cells = demo.comparison.cells
    assert cells["itemknn"]["R@10"].mean > 2 * cells["popularity"]["R@10"].mean
    for name in ("itemknn", "ease"):
        assert cells[name]["minority_R@10"].mean < 0.6 * cells[name]["R@10"].mean, "one list, one interest"
    files = demo.write(tmp_path)
    assert all(file.stat().st_size for file in files)
    assert pl.read_csv(tmp_path / "world.csv").height == demo.world.data.n_positives
    assert json.loads((tmp_path / "report-ease.json").read_text())["split"] == demo.split.hash


def test_the_story_names_the_true_interests():
    demo = run_demo(100, 200)
    truth = demo.world.truth
    story = demo.story(user=3)
    assert f"user 3 likes {truth.categories[truth.user_interests[3, 0]]} 65%" in story
    assert all(f"  {name}" in story for name in demo.models)


def test_the_picture_is_a_png(tmp_path):
    plot(run_demo(100, 200), tmp_path / "served.png")
    assert (tmp_path / "served.png").read_bytes().startswith(b"\x89PNG")
