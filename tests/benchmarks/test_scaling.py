from benchmarks.scaling import bench_scaling
from benchmarks.workloads import StepConfig, sized_data


def test_data_has_about_the_positives_asked_for():
    for positives in (4000, 40_000):
        assert 0.9 < sized_data(positives).n_positives / positives < 1.1
    assert sized_data(4000, n_items=500).n_items == 500


def test_growth_is_the_ratio_of_costs():
    found = bench_scaling((2000, 8000), repeats=1, threads=1, step=StepConfig(n_vectors=2, dim=8))
    small, large = found["worlds"]
    assert large["users"] == 4 * small["users"]
    assert found["growth"] == large["nanoseconds_per_positive"] / small["nanoseconds_per_positive"]
    assert small["nanoseconds_per_positive"] == small["seconds_per_epoch"] / small["positives"] * 1e9
