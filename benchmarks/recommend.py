"""Top-n lists from large catalogues: exact search against a matrix product, an ANN index against exact search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import psutil

from benchmarks.timing import best_seconds, latency, seconds_of
from dpcml.retrieval.ann import AnnIndex, IndexSettings, available
from dpcml.retrieval.exact import CROSS_BYTES, VECTORS_AT_ONCE, Catalogue, Seen, best_by_distance, nothing_seen
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.threads import thread_count

PER_CLUSTER = 500  # items
ROUNDS = 3  # interleaved rounds of exact search and matrix products; the best of each is reported
NOISE = 0.05  # standard deviation of items around the centre of their cluster; users have half of it


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
        Users timed one by one, and users in one batch.
    settings, widths
        Settings of the index, and widths of its search (ef).
    seed
        Seed of the generated items and users.

    Returns
    -------
    dict
        Per size: latency of exact search for one user, users per second in a batch, and the share of exact search that
        matrix products alone take; for the index time and processor time of building it, bytes, and
        recall and latency by search width.

    Examples
    --------
    >>> found = bench_recommend([2000], dim=8, n_seen=5, users=10, batch=16)
    >>> found["catalogues"][0]["index"]["searches"][-1]["recall"] > 0.9
    True
    """
    how, load = settings or IndexSettings(), psutil.getloadavg()[0]
    found = []
    for size in sizes:
        rng = np.random.default_rng(seed)
        items = clustered(size, dim, rng)
        vectors, seen = _users(items, max(users, batch), n_vectors, n_seen, rng)
        work = _Workload(Catalogue.of(items), vectors, seen, n)
        figures: dict[str, Any] = {"items": size, "exact": _exact_figures(work, users, batch)}
        if available():
            figures["index"] = _index_figures(work, users, how, widths)
        found.append(figures)
    return {
        "benchmark": "recommend",
        "n": n,
        "vectors": n_vectors,
        "dim": dim,
        "seen": n_seen,
        "threads": thread_count(),
        "settings": vars(how),
        "load_before": load,
        "catalogues": found,
    }


@dataclass(frozen=True)
class _Workload:
    """Items, and users with the items that they have seen."""

    items: Catalogue
    users: FloatArray  # (users, C, d)
    seen: Seen
    n: int  # length of the lists

    def seen_by(self, first: int, last: int) -> Seen:
        """Return the seen items of a range of users."""
        return self.seen[0][first : last + 1], self.seen[1]

    def exact(self, first: int, last: int) -> tuple[IntArray, FloatArray]:
        """Return the lists of a range of users by exact search."""
        return best_by_distance(self.users[first:last], self.items, self.n, self.seen_by(first, last))


def _exact_figures(work: _Workload, users: int, batch: int) -> dict[str, float]:
    work.exact(0, 1)  # compiles the kernel, or loads it
    jobs = {
        "exact": lambda: work.exact(0, batch),
        "products": lambda: _products(work.users[:batch], work.items.vectors),
    }
    seconds = best_seconds(jobs, ROUNDS)
    return {
        **_latency(lambda u: work.exact(u, u + 1), min(users, 50)),
        "users_per_second": batch / seconds["exact"],
        "share_of_matrix_product": seconds["products"] / seconds["exact"],
    }


def _index_figures(work: _Workload, users: int, how: IndexSettings, widths: Sequence[int]) -> dict[str, Any]:
    index, used = AnnIndex(work.items.vectors, how), time.process_time()
    build = seconds_of(index.build)
    used = time.process_time() - used  # of all threads; other programs do not add to it

    def near(u: int) -> tuple[IntArray, FloatArray]:
        return index.best(work.users[u : u + 1], work.n, work.seen_by(u, u + 1))

    truth, searches = work.exact(0, users)[0], []
    for width in widths:
        index.search_width(width)
        same = [len(np.intersect1d(near(u)[0][0], truth[u])) for u in range(users)]
        searches.append({"width": width, "recall": float(np.mean(same)) / work.n, **_latency(near, users)})
    return {"build_seconds": build, "build_cpu_seconds": used, "bytes": index.n_bytes, "searches": searches}


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
    items += np.float32(NOISE) * rng.standard_normal((size, dim), dtype=np.float32)
    items /= np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1)
    items *= rng.uniform(0.7, 1, (size, 1)).astype(np.float32)
    return items


def _users(
    items: FloatArray, count: int, n_vectors: int, n_seen: int, rng: np.random.Generator
) -> tuple[FloatArray, Seen]:
    """Return user vectors on the sphere, each near an item, and the seen items: the nearest ones."""
    centres = items[rng.integers(len(items), size=count * n_vectors)]
    vectors = centres + np.float32(NOISE / 2) * rng.standard_normal(centres.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    users = vectors.reshape(count, n_vectors, -1)
    near, _ = best_by_distance(users, Catalogue.of(items), 2 * n_seen, nothing_seen(count))
    liked = np.sort(near[:, ::2], axis=1).astype(np.int32)  # every other one, so that lists are not empty nearby
    return users, (np.arange(count + 1) * n_seen, liked.ravel())


def _products(users: FloatArray, items: FloatArray) -> None:
    """Multiply the vectors of users with all items, in the block sizes of exact search."""
    flat = users.reshape(-1, users.shape[2])
    for first in range(0, len(flat), VECTORS_AT_ONCE):
        some = flat[first : first + VECTORS_AT_ONCE]
        tile = max(1, CROSS_BYTES // (4 * len(some)))
        for low in range(0, len(items), tile):
            some @ items[low : low + tile].T


def _latency(job: Callable[[int], object], calls: int) -> dict[str, float]:
    median, p99 = latency(partial(job, u) for u in range(calls))
    return {"p50_ms": median, "p99_ms": p99}
