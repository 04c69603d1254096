"""What the machine can do: a float32 matrix product with NumPy, on a set number of threads."""

from __future__ import annotations

import time

import numpy as np

from dpcml.benchmarks.process import received, reply, run_child

SIZE = 1536
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")


def product_gflops(size: int = SIZE, seconds: float = 0.3) -> float:
    """Return the best rate of a square product in this process, in 10^9 products and sums per second.

    Examples
    --------
    >>> product_gflops(64, 0.01) > 0
    True
    """
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, size, size), dtype=np.float32)
    out = a @ b  # wakes the threads
    best, begun = float("inf"), time.perf_counter()
    while time.perf_counter() - begun < seconds:
        started = time.perf_counter()
        np.matmul(a, b, out=out)
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best / 1e9


def peak_gflops(threads: int, *, size: int = SIZE, seconds: float = 0.3) -> float:
    """Return the rate on so many threads; NumPy fixes their number when it starts, hence a process of its own.

    Examples
    --------
    >>> peak_gflops(1, size=64, seconds=0.01) > 0
    True
    """
    environment = dict.fromkeys(THREAD_VARIABLES, str(threads))
    return float(run_child("dpcml.benchmarks.peak", {"size": size, "seconds": seconds}, environment)["gflops"])


if __name__ == "__main__":
    wish = received()
    reply(gflops=product_gflops(wish["size"], wish["seconds"]))
