import numpy as np

from benchmarks.evaluation import bench_evaluation
from dpcml import Interactions


def test_both_sides_of_the_ratio_compute_the_same():
    data = Interactions.from_csr(np.random.default_rng(0).random((50, 40)) < 0.4)
    found = bench_evaluation(data, dim=5, repeats=1)
    assert found["largest_difference"] < 1e-9
    assert found["ratio_to_numpy"] == found["numpy_seconds"] / found["ranking_seconds"]
