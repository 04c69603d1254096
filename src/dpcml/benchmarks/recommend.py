"""Lists from large catalogues: exact search against a matrix product, and an index against exact search."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpcml.arrays import FloatArray, IntArray
from dpcml.retrieval.ann import AnnIndex, IndexSettings, available
from dpcml.retrieval.exact import CROSS_BYTES, VECTORS_AT_ONCE, Seen, best_by_distance
from dpcml.threads import thread_count

PER_CLUSTER = 500  # items
ROUNDS = 3  # of batches and of matrix products in turn; the quickest of each counts
NEAR = 0.05  # noise of items around their cluster's centre, per dimension; of vectors around an item, half of it


def bench_recommend(
    sizes: Sequence[int] = (100_000, 1_000_000),
    *,
    n: int = 10,
    n_vectors: int = 4,
    dim: int = 100,
    n_seen: int = 50,
    users: int = 200,
    batch: int = 512,
    settings: IndexSettings | None = None,
    widths: Sequence[int] = (64, 128, 256),
    seed: int = 0,
) -> dict[str, Any]:
    """Time lists for one user and for many, in catalogues of clustered random items.

    Parameters
    ----------
    sizes
        Numbers of items.
    n, n_vectors, dim, n_seen
        Length of the lists, vectors per user, dimension, and items that each user has seen.
    users, batch
        Users who are asked for one by one, and together.
    settings, widths
        Of the index, and the widths of search (ef) that are tried.
    seed
        Of items and users.

    Returns
    -------
    dict
        Per size: latency of exact search for one user, users per second in a batch, and what share that is of what the
        matrix products alone allow; of the index seconds to build, bytes, and recall and latency by width of search.

    Examples
    --------
    >>> found = bench_recommend([2000], dim=8, n_seen=5, users=10, batch=16)
    >>> found["catalogues"][0]["index"]["searches"][-1]["recall"] > 0.9
    True
    """
    how = settings or IndexSettings()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "benchmark": "recommend",
        "n": n,
        "vectors": n_vectors,
        "dim": dim,
        "seen": n_seen,
        "threads": thread_count(),
        "settings": vars(how),
        "load_before": load,
        "catalogues": [_catalogue(size, n, n_vectors, dim, n_seen, users, batch, how, widths, seed) for size in sizes],
    }


def _catalogue(
    size: int,
    n: int,
    n_vectors: int,
    dim: int,
    n_seen: int,
    users: int,
    batch: int,
    how: IndexSettings,
    widths: Sequence[int],
    seed: int,
) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    items = clustered(size, dim, rng)
    people, seen = _people(items, max(users, batch), n_vectors, n_seen, rng)
    squares = np.einsum("id,id->i", items, items)

    def exact(first: int, last: int) -> tuple[IntArray, FloatArray]:
        mine = seen[0][first : last + 1], seen[1]
        return best_by_distance(people[first:last], items, n, mine, item_squares=squares)

    exact(0, 1)  # compiles the kernel, or loads it
    together = products = np.inf
    for _ in range(ROUNDS):
        products = min(products, _seconds(lambda: _products(people[:batch], items)))
        together = min(together, _seconds(lambda: exact(0, batch)))
    found: dict[str, Any] = {
        "items": size,
        "exact": {
            **_latency(lambda u: exact(u, u + 1), min(users, 50)),
            "users_per_second": batch / together,
            "share_of_matrix_product": products / together,
        },
    }
    if available():
        index = AnnIndex(items, how)
        build = _seconds(index.build)

        def near(u: int) -> tuple[IntArray, FloatArray]:
            return index.best(people[u : u + 1], n, (seen[0][u : u + 2], seen[1]))

        truth, searches = exact(0, users)[0], []
        for width in widths:
            index.search_width(width)
            same = [len(np.intersect1d(near(u)[0][0], truth[u])) for u in range(users)]
            searches.append({"width": width, "recall": float(np.mean(same)) / n, **_latency(near, users)})
        found["index"] = {"build_seconds": build, "bytes": index.n_bytes, "searches": searches}
    return found


def clustered(size: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Return item vectors in the unit ball, in clusters of about 500.

    Examples
    --------
    >>> clustered(1000, 8, np.random.default_rng(0)).shape
    (1000, 8)
    """
    centres = rng.standard_normal((max(2, size // PER_CLUSTER), dim), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    items = centres[rng.integers(len(centres), size=size)]
    items += np.float32(NEAR) * rng.standard_normal((size, dim), dtype=np.float32)
    items /= np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1)
    items *= rng.uniform(0.7, 1, (size, 1)).astype(np.float32)
    return items


def _people(
    items: FloatArray, count: int, n_vectors: int, n_seen: int, rng: np.random.Generator
) -> tuple[FloatArray, Seen]:
    """Return vectors on the sphere, each near an item, and items that were seen: those nearest to the vectors."""
    centres = items[rng.integers(len(items), size=count * n_vectors)]
    vectors = centres + np.float32(NEAR / 2) * rng.standard_normal(centres.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    people = vectors.reshape(count, n_vectors, -1)
    nothing = np.zeros(count + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    near, _ = best_by_distance(people, items, 2 * n_seen, nothing)
    liked = np.sort(near[:, ::2], axis=1).astype(np.int32)  # every other one: the list is of what is in between
    return people, (np.arange(count + 1) * n_seen, liked.ravel())


def _products(people: FloatArray, items: FloatArray) -> None:
    """Multiply the vectors of users with all items, in the shapes of exact search, and nothing else."""
    flat = people.reshape(-1, people.shape[2])
    for first in range(0, len(flat), VECTORS_AT_ONCE):
        some = flat[first : first + VECTORS_AT_ONCE]
        tile = max(1, CROSS_BYTES // (4 * len(some)))
        for low in range(0, len(items), tile):
            some @ items[low : low + tile].T


def _seconds(job: Callable[[], object]) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def _latency(job: Callable[[int], object], calls: int) -> dict[str, float]:
    seconds = [_seconds(lambda u=u: job(u)) for u in range(calls)]  # type: ignore[misc]
    return {"p50_ms": 1e3 * float(np.median(seconds)), "p99_ms": 1e3 * float(np.percentile(seconds, 99))}
