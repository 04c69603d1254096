"""Measurements that need a new process: peak memory, time to the first batch, a fixed number of BLAS threads.

``python -m benchmarks.isolated TASK JSON`` runs one of `TASKS` and prints a JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from dpcml.utils.errors import DpcmlError

if TYPE_CHECKING:
    from benchmarks.workloads import StepConfig
    from dpcml.data.interactions import Interactions

ROOT = Path(__file__).parents[1]  # of the repository: benchmarks are not installed
PRODUCT_SIZE = 1536  # rows of the matrices whose product is the machine's peak
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
ALLOWED_FACTOR, ALLOWED_BYTES = 1.3, 400e6  # of the bytes that are needed, and for interpreter and compiler
ONE_BATCH = (64, 128)  # users and items of data that is one batch long, so that only the start-up counts


class ChildError(DpcmlError):
    """The process of a measurement failed."""


def run_child(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None, **sent: Any
) -> dict[str, Any]:
    """Run ``python -m module`` with keyword arguments as JSON, and return the JSON object that it prints last.

    The child also gets ``started``: the time of its start on the clock of `time.monotonic`, which processes share.

    Examples
    --------
    >>> run_child("benchmarks.isolated", "product", size=64, seconds=0.01)["gflops"] > 0
    True
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments, json.dumps({**sent, "started": time.monotonic()})],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        message = done.stderr.strip().splitlines() or ["no message"]
        raise ChildError(f"python -m {module} ended with code {done.returncode}: {message[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def peak_gflops(threads: int, *, size: int = PRODUCT_SIZE, seconds: float = 0.3) -> float:
    """Return the best rate of a float32 matrix product with NumPy on this many threads, in GFLOP/s.

    NumPy's BLAS reads the number of threads when it is loaded, hence the new process.

    Examples
    --------
    >>> peak_gflops(1, size=64, seconds=0.01) > 0
    True
    """
    environment = dict.fromkeys(THREAD_VARIABLES, str(threads))
    found = run_child("benchmarks.isolated", "product", environment=environment, size=size, seconds=seconds)
    return float(found["gflops"])


def first_batch_seconds(step: StepConfig, *, cold: bool = True) -> dict[str, float]:
    """Return ``first_call_seconds`` (empty kernel cache) and ``warm_first_call_seconds`` (the process after it).

    Parameters
    ----------
    step
        Decides which kernels are needed.
    cold
        Start with an empty kernel cache; else both processes use the cache of the user.
    """
    sent = {"n_vectors": step.n_vectors, "dim": step.dim, "n_candidates": step.n_candidates}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NUMBA_CACHE_DIR": folder} if cold else {}
        first, second = (
            run_child("benchmarks.isolated", "first_batch", environment=environment, **sent)["seconds"]
            for _ in range(2)
        )
    return {"first_call_seconds": first, "warm_first_call_seconds": second}


def epoch_memory(train: Interactions, step: StepConfig, threads: int) -> dict[str, Any]:
    """Train one epoch in a new process and return its memory.

    Returns
    -------
    dict
        ``peak_bytes``; ``base_bytes``: resident before the vectors were made, with data and compiler loaded;
        ``needed_bytes``: vectors, two moments and the CSR of positives; ``parameters``; ``bytes_per_parameter`` at
        the peak; ``within_bound``: whether the peak is at most 1.3 times the needed bytes plus 400 MB.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.npz"
        np.savez(file, indptr=train.indptr, indices=train.indices, n_items=train.n_items)
        found = run_child("benchmarks.isolated", "epoch", file=str(file), step=asdict(step), threads=threads)
    parameters = step.dim * (train.n_users * step.n_vectors + train.n_items)
    needed = 3 * 4 * parameters + train.indptr.nbytes + train.indices.nbytes
    return {
        "peak_bytes": found["peak"],
        "base_bytes": found["base"],
        "needed_bytes": needed,
        "parameters": parameters,
        "bytes_per_parameter": found["peak"] / parameters,
        "within_bound": bool(found["peak"] <= ALLOWED_FACTOR * needed + ALLOWED_BYTES),
    }


def _product(size: int, seconds: float, started: float) -> dict[str, float]:
    """Multiply square matrices for some seconds; return the best rate."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, size, size), dtype=np.float32)
    out = a @ b  # starts the threads
    best, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        before = time.perf_counter()
        np.matmul(a, b, out=out)
        best = min(best, time.perf_counter() - before)
    return {"gflops": 2 * size**3 / best / 1e9}


def _first_batch(started: float, **sizes: Any) -> dict[str, float]:
    """Fit a model on data that is one batch long, as the first call of a user does."""
    from dpcml import DPCML, Interactions

    data = Interactions.from_csr(np.random.default_rng(0).random(ONE_BATCH) < 0.03)
    DPCML(**sizes, batch_size=512, epochs=1, init="random").fit(data)
    return {"seconds": time.monotonic() - started}


def _epoch(file: str, step: dict[str, Any], threads: int, started: float) -> dict[str, int]:
    """Train one epoch; return the resident memory before it and at its peak."""
    from benchmarks.workloads import StepConfig
    from dpcml.data.interactions import Interactions
    from dpcml.data.items import ItemTable
    from dpcml.paper.study_types.timing import peak_bytes  # psutil has no peak on Linux

    with np.load(file) as saved:
        indptr, indices, n_items = saved["indptr"], saved["indices"], int(saved["n_items"])
    train = Interactions(indptr, indices, np.arange(len(indptr) - 1), ItemTable(np.arange(n_items)))
    config = StepConfig(**{**step, "diversity": tuple(step["diversity"])})
    base = psutil.Process().memory_info().rss
    config.engine(train, threads).epoch(0, config.learning_rate)
    return {"peak": peak_bytes(), "base": base}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"product": _product, "first_batch": _first_batch, "epoch": _epoch}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))) + "\n")
