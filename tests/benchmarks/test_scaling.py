from dpcml.benchmarks.scaling import bench_scaling, world_of
from dpcml.benchmarks.setting import Setting


def test_worlds_have_about_the_positives_asked_for():
    for positives in (4000, 40_000):
        assert 0.9 < world_of(positives).n_positives / positives < 1.1
    assert world_of(4000, n_items=500).n_items == 500


def test_growth_is_the_ratio_of_costs():
    found = bench_scaling((2000, 8000), repeats=1, threads=1, setting=Setting(n_vectors=2, dim=8))
    small, large = found["worlds"]
    assert large["users"] == 4 * small["users"]
    assert found["growth"] == large["nanoseconds_per_positive"] / small["nanoseconds_per_positive"]
    assert small["nanoseconds_per_positive"] == small["seconds_per_epoch"] / small["positives"] * 1e9
