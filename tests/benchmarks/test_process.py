import numpy as np
import pytest

from dpcml.benchmarks.peak import peak_gflops
from dpcml.benchmarks.process import ChildError, resident_bytes, run_child


def test_a_failing_child_is_an_error_with_its_last_line():
    with pytest.raises(ChildError, match="no_such_module"):
        run_child("dpcml.no_such_module", {})


def test_peak_memory_sees_what_was_freed():
    before = resident_bytes(peak=True)
    block = np.ones(64 * 2**20, dtype=np.uint8)
    del block
    assert resident_bytes(peak=True) >= before
    assert resident_bytes(peak=True) >= resident_bytes(peak=False)


def test_threads_of_the_matrix_product_can_be_set():
    assert peak_gflops(1, size=64, seconds=0.01) > 0
