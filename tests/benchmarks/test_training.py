import sys

import numpy as np
import pytest

import benchmarks.training as module
from benchmarks.training import bench_training
from benchmarks.workloads import StepConfig
from dpcml import Interactions
from dpcml.utils.errors import DataError

CONTRACT = {
    "seconds_per_epoch", "torch_seconds_per_epoch", "ratio_to_torch", "share_of_peak", "thread_speedup",
    "peak_thread_speedup", "first_call_seconds",
}  # fmt: skip
SMALL = {"n_vectors": 2, "dim": 8, "n_candidates": 3, "batch_size": 32, "repeats": 1, "threads": 1}
QUICK = {"released_batches": 2, "peak_size": 64, "cold": False}


def test_every_figure_of_the_contract_is_there_and_ratios_fit(small):
    pytest.importorskip("torch")
    found = bench_training(small, **SMALL, **QUICK)
    assert set(found) >= CONTRACT
    assert all(found[name] > 0 for name in CONTRACT)
    assert found["ratio_to_torch"] == pytest.approx(found["torch_seconds_per_epoch"] / found["seconds_per_epoch"])
    best = found["best_torch_seconds_per_epoch"] / found["seconds_per_epoch"]
    assert found["ratio_to_best_torch"] == pytest.approx(best)
    assert found["share_of_peak"] == found["gflops"] / found["peak_gflops"]
    assert found["gflops"] == pytest.approx(found["positives"] * (1 + 3) * 2 * 8 * 2 / found["seconds_per_epoch"] / 1e9)
    batches = -(-found["positives"] // 32)
    timed = found["spread"]["released, 1"]["best"]
    assert found["torch_seconds_per_epoch"] == pytest.approx(timed * batches / 2, rel=0.2)


def test_without_torch_its_figures_are_none_and_a_note_says_how_to_install(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python does for a module that must not be imported
    monkeypatch.setattr(module, "first_batch_seconds", lambda *_, **__: {"first_call_seconds": 1.0})
    found = bench_training(small, **SMALL | {"threads": 2}, **QUICK)
    assert found["torch_seconds_per_epoch"] is found["ratio_to_torch"] is found["ratio_to_best_torch"] is None
    assert "[neural]" in found["note"]
    assert found["seconds_per_epoch"] > 0
    assert set(found["spread"]) == {"ours", "ours, one thread", "ours, all threads"}
    assert found["peak_thread_speedup"] > 0


def test_data_without_a_negative_is_refused():
    with pytest.raises(DataError, match="likes all 3 items"):
        StepConfig().init(Interactions.from_csr(np.ones((2, 3))))
