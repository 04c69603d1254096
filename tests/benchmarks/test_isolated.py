import numpy as np
import pytest

from benchmarks.isolated import ChildError, epoch_memory, first_batch_seconds, peak_gflops, run_child
from benchmarks.workloads import StepConfig


def test_a_failing_child_is_an_error_with_its_last_line():
    with pytest.raises(ChildError, match="no_such_module"):
        run_child("benchmarks.no_such_module")


def test_threads_of_the_matrix_product_can_be_set():
    assert peak_gflops(1, size=64, seconds=0.01) > 0


def test_seconds_to_the_first_batch_count_from_the_start_of_the_process():
    found = first_batch_seconds(StepConfig(n_vectors=2, dim=8, n_candidates=3), cold=False)
    assert set(found) == {"first_call_seconds", "warm_first_call_seconds"}
    assert min(found.values()) > 0.1  # Python alone needs that long to import NumPy and Numba


def test_memory_is_that_of_a_process_which_trained(small):
    of_the_parent = np.ones(900 * 10**6, dtype=np.uint8)  # must not show in the child's peak
    found = epoch_memory(small, StepConfig(n_vectors=2, dim=8), threads=1)
    assert found["peak_bytes"] < of_the_parent.nbytes
    assert found["parameters"] == 8 * (2 * 40 + 60)
    assert found["needed_bytes"] == 12 * found["parameters"] + small.indptr.nbytes + small.indices.nbytes
    assert found["peak_bytes"] > found["base_bytes"] > 10**7
    assert found["bytes_per_parameter"] == found["peak_bytes"] / found["parameters"]
