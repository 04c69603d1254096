"""Time and memory against the size of the data, a model of the cost, and what it predicts for a cluster.

``python -m benchmarks.scale TASK JSON`` runs one measurement in a process of its own and prints a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from scipy.optimize import nnls

from benchmarks.isolated import run_child
from dpcml.training.order import block_count
from dpcml.utils.arrays import FloatArray

SIZES = (10**5, 10**6, 10**7)
PARTS = ("memory", "train", "ray")
SAME_USERS, SAME_ITEMS = 20_000, 10_000  # where only the interactions grow
FILE_ROWS = 10**7  # rows of a Parquet file
SHAPES = ((5, 100), (2, 100), (5, 50))  # C and d; the first is that of all sizes
SMALL = 10**6  # sizes up to here are measured in all shapes
FITTED = 10**7  # sizes up to here fit the model of the cost, larger ones check it
EPOCHS = 10  # of a fit with and without Ray; most trainings have more, and a worker starts once


@dataclass(frozen=True)
class Machine:
    """A machine of the cluster for which costs are predicted."""

    cores: int = 32
    gigabits: float = 10.0  # network, per second and direction
    gigabytes: float = 128.0


def bench_scale(
    sizes: Sequence[int] = SIZES,
    *,
    workers: Sequence[int] = (1, 2),
    ray_size: int | None = None,
    parts: Sequence[str] = PARTS,
) -> dict[str, Any]:
    """Measure ingesting and an epoch of training at several sizes, fit the model of the cost and predict.

    Processor time is measured beside wall time, on one thread, because other programs hardly change it.

    Parameters
    ----------
    sizes
        Numbers of interactions, ascending.
    workers
        Numbers of Ray workers, compared at ``ray_size`` with a training in one process.
    ray_size
        Interactions of that comparison; by default the largest size up to 10^7.
    parts
        Which of `PARTS` are measured.

    Returns
    -------
    dict
        Of the part ``memory``: anonymous memory of ingesting, and of a training on two workers, where users and items
        stay the same. Of ``train``: points of ``ingest`` and ``train``; ``model``: coefficients of the cost, and
        predictions for points that were not used to fit it; ``predictions``: a cluster's epoch on 10^10 interactions.
        Of ``ray``: fits with and without Ray.
    """
    found: dict[str, Any] = {"benchmark": "scale"}
    if "memory" in parts:
        found["memory"] = [_memory_at(size) for size in sizes]
    if "train" in parts:
        found |= _train_at(sizes)
    if "ray" in parts:
        chosen = ray_size or max(size for size in sizes if size <= 10**7)
        found["ray"] = run_child("benchmarks.scale", "ray", size=chosen, workers=list(workers))
    return found


def _memory_at(size: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        made = run_child("benchmarks.scale", "same_users", size=size, folder=folder)
        read = run_child("benchmarks.scale", "ingest", folder=folder)
        used = run_child("benchmarks.scale", "memory", folder=f"{folder}/shards")
    return {**made, "ingest_bytes": read["anonymous_bytes"], **used}


def _train_at(sizes: Sequence[int]) -> dict[str, Any]:
    points, ingests = list[dict[str, Any]](), list[dict[str, Any]]()
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            made = run_child("benchmarks.scale", "make", size=size, folder=folder)
            ingests.append({**made, **run_child("benchmarks.scale", "ingest", folder=folder)})
            for vectors, dim in SHAPES if size <= SMALL else SHAPES[:1]:
                points.append(
                    run_child("benchmarks.scale", "epoch", folder=f"{folder}/shards", n_vectors=vectors, dim=dim)
                )
    model = fit_cost([one for one in points if one["positives"] <= FITTED])
    for one in points:
        one["predicted_cpu_seconds"] = predicted_seconds(model, one)
        one["predicted_peak_bytes"] = predicted_bytes(model, one)
    per = {one["positives"]: one["cpu_seconds"] / one["positives"] for one in points if _first_shape(one)}
    reference = min(per, key=lambda positives: abs(positives - SMALL))
    return {
        "ingest": ingests,
        "train": points,
        "model": model,
        "growth": {"from": reference, "to": max(per), "ratio": per[max(per)] / per[reference]},
        "predictions": list(predictions(model)),
        "machine": asdict(Machine()),
    }


def _first_shape(point: dict[str, Any]) -> bool:
    return (point["vectors"], point["dim"]) == SHAPES[0]


# The model of the cost


def _features(point: dict[str, Any]) -> FloatArray:
    """Return what the processor time of a positive depends on: a constant, C d, and how far vectors exceed caches.

    Of the users, the vectors of one block are in use at a time.
    """
    users = point["users"] / block_count(point["users"])
    size = (users * point["vectors"] + point["items"]) * point["dim"]
    work = point["vectors"] * point["dim"]
    return np.array([1.0, work, work * max(np.log10(size / 1e5), 0.0)])


def fit_cost(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return coefficients: nanoseconds of a positive by `_features`, and bytes by what is kept.

    Examples
    --------
    >>> shape = {"users": 10, "items": 10, "peak_bytes": 9, "positives": 1}
    >>> points = [{**shape, "vectors": c, "dim": d, "cpu_seconds": 1e-9 * c * d} for c in (1, 2) for d in (10, 20)]
    >>> model = fit_cost(points)
    >>> round(1e9 * predicted_seconds(model, points[0]), 3)
    10.0
    """
    rows = np.array([_features(one) * one["positives"] / one["cpu_seconds"] for one in points])
    cost = nnls(rows, np.full(len(rows), 1e9))[0]  # of relative errors; nothing costs less than nothing
    kept = np.array([_kept(one) / one["peak_bytes"] for one in points])
    memory = nnls(kept, np.ones(len(kept)))[0]
    return {"nanoseconds": cost.tolist(), "bytes": memory.tolist()}


def _kept(point: dict[str, Any]) -> FloatArray:
    parameters = (point["users"] * point["vectors"] + point["items"]) * point["dim"]
    return np.array([1e6, parameters, point["positives"]], dtype=np.float64)


def predicted_seconds(model: dict[str, Any], point: dict[str, Any]) -> float:
    """Return the processor seconds of an epoch."""
    return float(_features(point) @ np.array(model["nanoseconds"]) * point["positives"] / 1e9)


def predicted_bytes(model: dict[str, Any], point: dict[str, Any]) -> float:
    """Return the peak memory of a training."""
    return float(_kept(point) @ np.array(model["bytes"]))


def predictions(
    model: dict[str, Any], positives: int = 10**10, machines: Iterable[int] = (8, 16, 32, 64)
) -> Iterable[dict[str, Any]]:
    """Yield an epoch on many interactions, 40 of a user, a million items, C = 5 and d = 100, on some machines.

    A worker per machine; an all-reduce sends and receives 2 (N - 1) / N times the vectors of all items.
    """
    machine, items, batch = Machine(), 10**6, 256
    whole = {"positives": positives, "users": positives // 40, "items": items, "vectors": 5, "dim": 100}
    for count in machines:
        part = {**whole, "positives": positives // count, "users": whole["users"] // count}
        compute = predicted_seconds(model, part) / machine.cores
        for interval in (1, 10):  # positives of a worker per item, between two exchanges
            exchanges = part["positives"] / (interval * items)
            sent = 2 * (count - 1) / count * items * (104 + 1) * 4
            yield {
                "machines": count,
                "sync_every": interval * items // batch,
                "compute_seconds": compute,
                "network_seconds": exchanges * sent * 8 / (machine.gigabits * 1e9),
                "network_bytes_per_machine": exchanges * sent,
                "bytes_per_machine": predicted_bytes(model, part),
            }


def draw_scale(found: dict[str, Any], path: Path) -> None:
    """Draw processor time per positive and memory against the size, measured and by the model."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    points = [one for one in found["train"] if _first_shape(one)]
    sizes = [one["positives"] for one in points]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, style in (("cpu_seconds", "o-"), ("predicted_cpu_seconds", "x--")):
        left.plot(sizes, [1e9 * one[name] / one["positives"] for one in points], style, label=_LABELS[name])
    left.set(xscale="log", xlabel="training positives", ylabel="ns per positive", title="An epoch on one thread")
    left.set_ylim(bottom=0)
    for name, style in (("peak_bytes", "o-"), ("predicted_peak_bytes", "x--")):
        right.plot(sizes, [one[name] / 1e6 for one in points], style, label=f"training, {_LABELS[name]}")
    rows = [one["interactions"] for one in found["ingest"]]
    right.plot(rows, [one["peak_bytes"] / 1e6 for one in found["ingest"]], "s-", label="data ingest")
    right.set(xscale="log", yscale="log", xlabel="interactions", ylabel="MB", title="Peak memory")
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


_LABELS = {
    "cpu_seconds": "measured",
    "predicted_cpu_seconds": "model",
    "peak_bytes": "measured",
    "predicted_peak_bytes": "model",
}

# Measurements, each in a process of its own


def _usage(started: float, cpu: float) -> dict[str, float]:
    return {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu}


def _make(size: int, folder: str, started: float) -> dict[str, Any]:
    """Write interactions to Parquet files."""
    import polars as pl

    from benchmarks.workloads import sized_data

    data = sized_data(size)
    rows = data.rows
    for number, first in enumerate(range(0, data.n_positives, FILE_ROWS)):
        some = slice(first, first + FILE_ROWS)
        frame = pl.DataFrame({"user": rows[some], "item": data.indices[some]})
        frame.write_parquet(Path(folder) / f"likes-{number:03d}.parquet", row_group_size=2**18)
    return {"interactions": data.n_positives, "users": data.n_users, "items": data.n_items}


def _same_users(size: int, folder: str, started: float) -> dict[str, Any]:
    """Write interactions of the same users with the same items to Parquet files; popular items come often."""
    import polars as pl

    rng = np.random.default_rng(0)
    for number, first in enumerate(range(0, size, FILE_ROWS)):
        rows = min(FILE_ROWS, size - first)
        users, items = rng.integers(0, SAME_USERS, rows), (SAME_ITEMS * rng.random(rows) ** 2).astype(np.int64)
        frame = pl.DataFrame({"user": users, "item": items})
        frame.write_parquet(Path(folder) / f"likes-{number:03d}.parquet", row_group_size=2**18)
    return {"rows": size}


def _ingest(folder: str, started: float) -> dict[str, Any]:
    from dpcml.paper.study_types.timing import peak_bytes
    from dpcml.scale import ingest

    begun, cpu = time.perf_counter(), time.process_time()
    with AnonymousPeak() as memory:
        ingest(sorted(Path(folder).glob("*.parquet")), Path(folder) / "shards")
    size = sum(file.stat().st_size for file in (Path(folder) / "shards").iterdir())
    peaks = {"peak_bytes": peak_bytes(), "anonymous_bytes": memory.own}
    return {**_usage(begun, cpu), **peaks, "bytes_on_disk": size}


class AnonymousPeak:
    """The largest anonymous memory of this process and of one of its workers: what the system cannot take back.

    Pages of mapped files are left out. Linux counts no peak of it, so a thread looks every 20 ms.
    """

    def __init__(self) -> None:
        self.own = self.worker = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> AnonymousPeak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        turn, workers = 0, list[int]()
        while not self._over.wait(0.02):
            self.own = max(self.own, _anonymous(os.getpid()))
            if turn % 50 == 0:
                below = psutil.Process().children(recursive=True)
                workers = [one.pid for one in below if one.name().startswith("ray::TrainingW")]
            self.worker = max([self.worker, *map(_anonymous, workers)])
            turn += 1


def _anonymous(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def _memory(folder: str, started: float) -> dict[str, Any]:
    """Train on shards with two Ray workers and evaluate: memory of the process that runs the command, and of a worker.

    Vectors are small, because they do not depend on the interactions.
    """
    from dpcml import DPCML, evaluate
    from dpcml.data.shards import Shards
    from dpcml.scale import RayRunner
    from dpcml.utils.cluster import ray_session

    with ray_session(cores=2):
        before = _anonymous(os.getpid())
        with AnonymousPeak() as memory:
            shards = Shards.open(folder)
            data, split = shards.interactions(), shards.split()
            _ = data.content_hash
            model = DPCML(dim=8, epochs=1, n_threads=1)
            model.fit(split.train, split.valid, progress=False, runner=RayRunner(2))
        with AnonymousPeak() as ranked:
            evaluate(model, split.train, split.test, valid=split.valid, metrics=["NDCG@10"], n_threads=1)
    return {
        "interactions": data.n_positives,
        "users": data.n_users,
        "items": data.n_items,
        "before_bytes": before,
        "command_bytes": memory.own,
        "worker_bytes": memory.worker,
        "evaluate_bytes": ranked.own,
    }


def _epoch(folder: str, n_vectors: int, dim: int, started: float) -> dict[str, Any]:
    """Train epochs on one thread, and return the best: in the first one the memory is touched for the first time."""
    from benchmarks.workloads import POSITIVES_PER_USER, StepConfig
    from dpcml.data.shards import Shards
    from dpcml.paper.study_types.timing import peak_bytes
    from dpcml.training.order import default_user_run

    train = Shards.open(folder).interactions("train")
    step = StepConfig(n_vectors=n_vectors, dim=dim, max_user_run=default_user_run(POSITIVES_PER_USER, 1))
    engine = step.engine(train, 1)
    found = list[dict[str, float]]()
    for number in range(2 if train.n_positives > 10**7 else 3):
        begun, cpu = time.perf_counter(), time.process_time()
        engine.epoch(number, step.learning_rate)
        found.append(_usage(begun, cpu))
    best = min(found, key=lambda one: one["cpu_seconds"])
    shape = {"positives": train.n_positives, "users": train.n_users, "items": train.n_items}
    return {**shape, "vectors": n_vectors, "dim": dim, **best, "peak_bytes": peak_bytes()}


def _ray(size: int, workers: list[int], started: float) -> dict[str, Any]:
    """Fit with and without Ray, on one thread each; processor time of the epochs is that of the wall if it is quiet."""
    from benchmarks.workloads import sized_data
    from dpcml import DPCML
    from dpcml.scale import RayRunner
    from dpcml.utils.cluster import ray_session

    data = sized_data(size)
    base: dict[str, Any] = {
        "n_vectors": 5,
        "dim": 100,
        "epochs": EPOCHS,
        "n_candidates": 10,
        "init": "random",
        "n_threads": 1,
    }

    def fit(**options: Any) -> dict[str, Any]:
        begun = time.perf_counter()
        model = DPCML(**base).fit(data, progress=False, **options)
        return {
            "seconds": time.perf_counter() - begun,
            "epoch_seconds": min(epoch.seconds for epoch in model.history_.epochs),
        }

    found: dict[str, Any] = {
        "positives": data.n_positives,
        "items": data.n_items,
        "epochs": EPOCHS,
        "cores": os.cpu_count(),
    }
    found["local"] = fit()
    with ray_session(cores=max(workers)):
        found["workers"] = {str(count): fit(runner=RayRunner(count)) for count in workers}
    found["overhead_of_one"] = found["workers"]["1"]["seconds"] / found["local"]["seconds"] - 1
    return found


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "make": _make,
    "same_users": _same_users,
    "ingest": _ingest,
    "memory": _memory,
    "epoch": _epoch,
    "ray": _ray,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))) + "\n")
