import numpy as np

from benchmarks.simd import SHIPPED, VARIANTS, bench_simd
from benchmarks.workloads import StepConfig
from dpcml import Interactions


def test_variants_train_and_prefetches_change_no_bit():
    data = Interactions.from_csr(np.random.default_rng(0).random((40, 30)) < 0.3)
    names = (SHIPPED, "no prefetch")
    found = bench_simd(data, step=StepConfig(n_vectors=2, dim=8, batch_size=32), rounds=2, variants=names)
    assert list(found["seconds"]) == list(names)
    assert found["same_bits"] == {SHIPPED: True, "no prefetch": True}
    assert found["ratio"][SHIPPED] == 1


def test_every_name_that_is_replaced_exists():
    import importlib

    for changes in VARIANTS.values():
        for place in changes:
            module, attribute = place.split(".")
            assert hasattr(importlib.import_module(f"dpcml.kernels.{module}"), attribute)
