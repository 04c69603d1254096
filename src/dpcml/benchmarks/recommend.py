"""Lists from large catalogues: exact search against a matrix product, and an index against exact search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpcml.benchmarks.timing import best_seconds, machine_load, milliseconds, seconds_of
from dpcml.retrieval.ann import AnnIndex, IndexSettings, available
from dpcml.retrieval.exact import CROSS_BYTES, VECTORS_AT_ONCE, Catalogue, Seen, best_by_distance, nothing_seen
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.threads import thread_count

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
    how, load = settings or IndexSettings(), machine_load()
    found = []
    for size in sizes:
        rng = np.random.default_rng(seed)
        items = clustered(size, dim, rng)
        people, seen = _people(items, max(users, batch), n_vectors, n_seen, rng)
        world = _World(Catalogue.of(items), people, seen, n)
        figures: dict[str, Any] = {"items": size, "exact": _exact_figures(world, users, batch)}
        if available():
            figures["index"] = _index_figures(world, users, how, widths)
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
class _World:
    """Items, and people with what they have seen of them."""

    items: Catalogue
    people: FloatArray  # (people, C, d)
    seen: Seen
    n: int  # length of the lists

    def seen_by(self, first: int, last: int) -> Seen:
        """Return what some people have seen."""
        return self.seen[0][first : last + 1], self.seen[1]

    def exact(self, first: int, last: int) -> tuple[IntArray, FloatArray]:
        """Return the lists of some people, by exact search."""
        some = self.people[first:last]
        return best_by_distance(some, self.items, self.n, self.seen_by(first, last))


def _exact_figures(world: _World, users: int, batch: int) -> dict[str, float]:
    world.exact(0, 1)  # compiles the kernel, or loads it
    jobs = {
        "exact": lambda: world.exact(0, batch),
        "products": lambda: _products(world.people[:batch], world.items.vectors),
    }
    seconds = best_seconds(jobs, ROUNDS)
    return {
        **_latency(lambda u: world.exact(u, u + 1), min(users, 50)),
        "users_per_second": batch / seconds["exact"],
        "share_of_matrix_product": seconds["products"] / seconds["exact"],
    }


def _index_figures(world: _World, users: int, how: IndexSettings, widths: Sequence[int]) -> dict[str, Any]:
    index = AnnIndex(world.items.vectors, how)
    build = seconds_of(index.build)

    def near(u: int) -> tuple[IntArray, FloatArray]:
        return index.best(world.people[u : u + 1], world.n, world.seen_by(u, u + 1))

    truth, searches = world.exact(0, users)[0], []
    for width in widths:
        index.search_width(width)
        same = [len(np.intersect1d(near(u)[0][0], truth[u])) for u in range(users)]
        searches.append({"width": width, "recall": float(np.mean(same)) / world.n, **_latency(near, users)})
    return {"build_seconds": build, "bytes": index.n_bytes, "searches": searches}


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
    near, _ = best_by_distance(people, Catalogue.of(items), 2 * n_seen, nothing_seen(count))
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


def _latency(job: Callable[[int], object], calls: int) -> dict[str, float]:
    median, p99 = milliseconds(partial(job, u) for u in range(calls))
    return {"p50_ms": median, "p99_ms": p99}
