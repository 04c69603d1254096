"""An epoch of training beside PyTorch and a matrix product, on one thread and on all: one interleaved run."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

import psutil

from benchmarks.isolated import PRODUCT_SIZE, epoch_memory, first_batch_seconds, peak_gflops
from benchmarks.timing import Jobs, all_seconds, spread
from benchmarks.torch_training import BestTraining, ReleasedTraining
from benchmarks.workloads import StepConfig
from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import torch_threads
from dpcml.utils.errors import MissingExtraError
from dpcml.utils.packages import require
from dpcml.utils.threads import thread_count

RELEASED_BATCHES = 10  # timed per round; an epoch is extrapolated from them
WARM_UP = 2  # epochs before timing: right after the random initialisation more hinges are active
EPOCHS = 4  # per call of a job, one after the other as in training
TURNS = 4  # comparisons of one thread with all threads per round: short ones, because noise hits two cores more often


def bench_training(
    data: Interactions,
    *,
    n_vectors: int = 5,
    dim: int = 100,
    n_candidates: int = 10,
    batch_size: int = 256,
    repeats: int = 5,
    threads: int | None = None,
    released_batches: int = RELEASED_BATCHES,
    peak_size: int = PRODUCT_SIZE,
    cold: bool = True,
) -> dict[str, Any]:
    """Time an epoch of DPCML2 on the training part of a 60/20/20 split, beside PyTorch and a matrix product.

    Parameters
    ----------
    data
        All positives; they are split here.
    n_vectors, dim, n_candidates, batch_size
        C, d, S and the positives per step.
    repeats
        Rounds; in each, every job runs once, and one thread is compared with all threads `TURNS` times. The best of
        each job is reported; for ``thread_speedup`` the median of the comparisons.
    threads
        Threads of our engine, of PyTorch and of the matrix product; all cores by default.
    released_batches
        Batches of the released-like PyTorch that are timed in a round; its epoch is extrapolated.
    peak_size
        Rows of the matrices whose product is the machine's peak.
    cold
        Time the first call with an empty kernel cache.

    Returns
    -------
    dict
        Figures by name; docs/benchmarks.md says what each means. Those of PyTorch are None where it is not installed.
    """
    threads = thread_count(threads)
    step = StepConfig(n_vectors, dim, n_candidates, batch_size)
    load = psutil.getloadavg()[0]
    train = data.split((0.6, 0.2, 0.2), step.seed)[0]
    peaks: dict[int, list[float]] = {threads: [], 1: []}
    on_all, on_one = (_our_epoch(train, step, count) for count in (threads, 1))
    jobs: Jobs = {"ours": on_all}
    for turn in range(TURNS):
        jobs |= {f"ours, one thread, {turn}": on_one, f"ours, all threads, {turn}": on_all}
    for count, found in peaks.items():
        jobs[f"peak, {count}"] = lambda count=count, found=found: found.append(peak_gflops(count, size=peak_size))  # type: ignore[misc]
    torch_jobs, note = _torch_jobs(train, step, threads, released_batches)
    jobs |= torch_jobs
    calls = dict.fromkeys((name for name in jobs if name.startswith(("ours", "best"))), EPOCHS)
    seconds = all_seconds(jobs, repeats, calls)
    for name in ("ours, one thread", "ours, all threads"):
        seconds[name] = [time for turn in range(TURNS) for time in seconds.pop(f"{name}, {turn}")]
    ours, peak = min(seconds["ours"]), max(peaks[threads])
    share = min(released_batches * batch_size / train.n_positives, 1.0)
    released, released_threads = _quickest(seconds, "released")
    best, best_threads = _quickest(seconds, "best")
    lean, _ = _quickest(seconds, "released, half the pairs")
    gflops = step.mining_flops(train.n_positives) / ours / 1e9
    return {
        "benchmark": "training",
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "vectors": n_vectors,
        "dim": dim,
        "candidates": n_candidates,
        "batch_size": batch_size,
        "threads": threads,
        "repeats": repeats,
        "seconds_per_epoch": ours,
        "positives_per_second": train.n_positives / ours,
        "torch_seconds_per_epoch": _scaled(released, 1 / share),
        "ratio_to_torch": _scaled(released, 1 / share / ours),
        "ratio_to_torch_with_half_the_pairs": _scaled(lean, 1 / share / ours),
        "torch_batches_timed": released_batches if torch_jobs else None,
        "torch_threads": released_threads,
        "best_torch_seconds_per_epoch": best,
        "ratio_to_best_torch": _scaled(best, 1 / ours),
        "best_torch_threads": best_threads,
        "gflops": gflops,
        "peak_gflops": peak,
        "share_of_peak": gflops / peak,
        "thread_speedup": _median_ratio(seconds["ours, one thread"], seconds["ours, all threads"]),
        "peak_thread_speedup": _median_ratio(peaks[threads], peaks[1]),
        **first_batch_seconds(step, cold=cold),
        "memory": epoch_memory(train, step, threads),
        "spread": {name: spread(times) for name, times in seconds.items() if not name.startswith("peak")},
        "load_before": load,
        "note": note,
    }


def _median_ratio(above: list[float], below: list[float]) -> float:
    """Return the median of the ratios of figures that were measured one after the other."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _our_epoch(train: Interactions, step: StepConfig, threads: int) -> Callable[[], object]:
    engine, numbers = step.engine(train, threads), itertools.count()
    for _ in range(WARM_UP):
        engine.epoch(next(numbers), step.learning_rate)
    return lambda: engine.epoch(next(numbers), step.learning_rate)


def _torch_jobs(train: Interactions, step: StepConfig, threads: int, released_batches: int) -> tuple[Jobs, str | None]:
    """Return jobs on one thread and on all (small operations are often faster on one), or the reason for none."""
    try:
        require("torch", "neural")
    except MissingExtraError as error:
        return {}, f"no figures of PyTorch: {error}"
    jobs: Jobs = {}
    released, lean = (ReleasedTraining(train, step, ordered_pairs=ordered) for ordered in (True, False))
    best = BestTraining(train, step)
    for count in sorted({1, threads}):
        jobs[f"released, {count}"] = _on(count, lambda: released.run(released_batches))
        jobs[f"released, half the pairs, {count}"] = _on(count, lambda: lean.run(released_batches))
        jobs[f"best, {count}"] = _on(count, best.epoch)
    for training in (released, lean):
        _on(1, lambda training=training: training.run(1))()  # type: ignore[misc]
    for _ in range(WARM_UP):
        _on(1, best.epoch)()
    return jobs, None


def _on(threads: int, job: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        with torch_threads(threads):
            job()

    return run


def _quickest(seconds: dict[str, list[float]], job: str) -> tuple[float | None, int | None]:
    """Return the best time of a PyTorch job, and the number of threads that gave it."""
    names = [name for name in seconds if name.rpartition(", ")[0] == job]
    found = {int(name.rpartition(", ")[2]): min(seconds[name]) for name in names}
    if not found:
        return None, None
    threads = min(found, key=lambda count: found[count])
    return found[threads], threads


def _scaled(seconds: float | None, factor: float) -> float | None:
    return None if seconds is None else seconds * factor
