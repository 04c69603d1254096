"""What hand-written LLVM saves in training: each part is replaced by plain Numba loops with compile-time constants.

Every variant runs in a process of its own, because compiled functions keep the functions they call. The processes take
turns, one epoch each, so that other load on the machine hits all of them alike.
"""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numba import njit
from numba.core import config

from benchmarks.workloads import StepConfig
from dpcml.data.interactions import Interactions
from dpcml.kernels.optimizer import _row_updater
from dpcml.kernels.simd import LANES, load, splat, store

SHIPPED = "as shipped"


# The plain loops


@njit(inline="always")
def _distances(users, user, items, chosen, b, sums, near, n_vectors, width, at_once):
    vectors, squares, first = users.vectors, users.squares, user * n_vectors
    for column in range(chosen.shape[1]):
        item = chosen[b, column]
        lowest = np.float32(np.inf)
        for c in range(n_vectors):
            cross = np.float32(0)
            for k in range(width):
                cross += vectors[first + c, k] * items[item, k]
            distance = squares[first + c] - np.float32(2) * cross
            near[1 + c, column] = distance
            lowest = min(distance, lowest)
        near[0, column] = lowest


@njit(inline="always")
def _adam(table, row, gradients, slot, steps, k_th, width):
    vectors, moments = table.vectors, table.moments
    one, square = np.float32(1), np.float32(0)
    rate, epsilon = steps.rate[k_th], steps.epsilon[k_th]
    for k in range(width):
        gradient = gradients[slot, k]
        first = steps.beta_1 * moments[row, k] + (one - steps.beta_1) * gradient
        second = steps.beta_2 * moments[row, width + k] + (one - steps.beta_2) * gradient * gradient
        value = vectors[row, k] - rate * first / (np.sqrt(second) + epsilon)
        moments[row, k], moments[row, width + k], vectors[row, k] = first, second, value
        square += value * value
    return square


# Gradients by hand, as they were before plain loops turned out to be as fast


@njit(inline="always")
def _add_difference(gradients, slot, vectors, row, others, other, weight, width):
    factor = splat(weight)
    for k in range(0, width, LANES):
        difference = load(vectors, row, k) - load(others, other, k)
        store(gradients, slot, k, load(gradients, slot, k) + factor * difference)


@njit(inline="always")
def _add_and_keep_difference(gradients, slot, vectors, row, others, other, weight, kept, at, width):
    factor = splat(weight)
    for k in range(0, width, LANES):
        difference = load(vectors, row, k) - load(others, other, k)
        store(kept, at, k, difference)
        store(gradients, slot, k, load(gradients, slot, k) + factor * difference)


@njit(inline="always")
def _add_kept(gradients, slot, kept, at, weight, width):
    factor = splat(weight)
    for k in range(0, width, LANES):
        store(gradients, slot, k, load(gradients, slot, k) + factor * load(kept, at, k))


@njit(inline="always")
def _no_prefetch(array, index):
    pass


@njit(inline="always")
def _no_row_prefetch(array, row, column):
    pass


# Names in modules of `dpcml.kernels`, and what takes their place
DISTANCES = {"mining.nearest_distances": _distances}
OPTIMIZER = {"minibatch.update_by_adam": _row_updater(_adam)}
NO_PREFETCH = {
    "mining.prefetch_row": _no_row_prefetch,
    "optimizer.prefetch_row_for_write": _no_row_prefetch,
    "partition.prefetch": _no_prefetch,
    "sampling.prefetch": _no_prefetch,
}
VARIANTS: dict[str, dict[str, Any]] = {
    SHIPPED: {},
    "plain distances": DISTANCES,
    "plain optimizer": OPTIMIZER,
    "no prefetch": NO_PREFETCH,
    "all plain": {**DISTANCES, **OPTIMIZER, **NO_PREFETCH},
    "gradients by hand": {
        "gradients._add_difference": _add_difference,
        "gradients._add_and_keep_difference": _add_and_keep_difference,
        "gradients._add_kept": _add_kept,
    },
}


# Measuring


def bench_simd(
    train: Interactions, *, step: StepConfig | None = None, rounds: int = 5, variants: tuple[str, ...] = tuple(VARIANTS)
) -> dict[str, Any]:
    """Return the processor time of an epoch on one thread, for each variant and relative to the package's kernels.

    Parameters
    ----------
    train
        Positives to train on.
    step
        Sizes and hyper-parameters of the training step.
    rounds
        Epochs per variant; the best and the median are reported.
    variants
        Names out of `VARIANTS`; the first must be the package's own kernels.

    Returns
    -------
    dict
        ``seconds`` and ``median_seconds`` of an epoch by variant, ``ratio`` of the best times to that of the package,
        and ``same_bits``: whether the trained vectors are those of the package.
    """
    context, step = multiprocessing.get_context("spawn"), step or StepConfig()
    with tempfile.TemporaryDirectory() as cache:
        workers = {}
        for name in variants:
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, name, train, step, cache), daemon=True)
            process.start()
            workers[name] = ours, process
            ours.recv()  # compiled
        times: dict[str, list[float]] = {name: [] for name in variants}
        for number in range(rounds):
            for name, (pipe, _) in workers.items():
                pipe.send(number)
                times[name].append(pipe.recv())
        sums = {}
        for name, (pipe, process) in workers.items():
            pipe.send(None)
            sums[name] = pipe.recv()
            process.join()
    best = {name: min(seconds) for name, seconds in times.items()}
    return {
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "rounds": rounds,
        "seconds": best,
        "median_seconds": {name: statistics.median(seconds) for name, seconds in times.items()},
        "ratio": {name: seconds / best[SHIPPED] for name, seconds in best.items()},
        "same_bits": {name: checksum == sums[SHIPPED] for name, checksum in sums.items()},
    }


def _work(pipe: Connection, name: str, train: Interactions, step: StepConfig, cache: str) -> None:
    """Compile a variant, train the epochs that are asked for, and send the time of each; last a checksum."""
    vars(config)["CACHE_DIR"] = f"{cache}/{name}"  # read when a kernel is built
    for place, function in VARIANTS[name].items():
        module, attribute = place.split(".")
        setattr(importlib.import_module(f"dpcml.kernels.{module}"), attribute, function)
    engine = step.engine(train, n_threads=1)
    pipe.send("ready")
    while (number := pipe.recv()) is not None:
        started = time.process_time()
        engine.epoch(number, step.learning_rate)
        pipe.send(time.process_time() - started)
    pipe.send(hashlib.sha256(engine.users.vectors.tobytes() + engine.items.vectors.tobytes()).hexdigest())
