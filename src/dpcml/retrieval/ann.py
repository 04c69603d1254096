"""Approximate search of the nearest items by an index, for catalogues that are too large for exact search.

The best items by the distance to the nearest of C vectors are the merge of C ordinary queries, because an item that
is among a user's n best is among the n best of the vector that it is nearest to.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from dpcml.retrieval.exact import Catalogue, Seen, best_by_distance
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.files import atomic, cache_folder
from dpcml.utils.packages import require
from dpcml.utils.threads import thread_count

EXTRA = "serve"


@dataclass(frozen=True)
class IndexSettings:
    """How an index is built and searched.

    Parameters
    ----------
    numbers
        Type of the numbers in the index; found items are compared by their float32 vectors in any case.
    links
        Neighbours per item (M).
    build_width, search_width
        Candidates kept while an item is added, and while one is looked for (ef).
    """

    numbers: str = "f16"
    links: int = 32
    build_width: int = 128
    search_width: int = 64


class AnnIndex:
    """A graph of items (HNSW, through usearch) that is searched by squared Euclidean distance.

    Parameters
    ----------
    items
        Vectors of all items, of shape (items, d), float32.
    settings
        How it is built and searched.

    Examples
    --------
    >>> items = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
    >>> index = AnnIndex(items).build()
    >>> seen = np.array([0, 1]), np.array([3])
    >>> best, scores = index.best(items[[3]][:, None], 2, seen)
    >>> 3 in best, bool(scores[0, 0] < 0)
    (False, True)
    """

    def __init__(self, items: FloatArray, settings: IndexSettings | None = None) -> None:
        self.items, self.settings = items, settings or IndexSettings()
        self._index: Any = None

    def build(self, n_threads: int | None = None) -> AnnIndex:
        """Add all items; takes minutes for millions."""
        index, how = require("usearch.index", EXTRA), self.settings
        self._index = index.Index(
            ndim=self.items.shape[1],
            metric="l2sq",
            dtype=how.numbers,
            connectivity=how.links,
            expansion_add=how.build_width,
            expansion_search=how.search_width,
        )
        self._index.add(np.arange(len(self.items)), self.items, threads=thread_count(n_threads))
        return self

    def save(self, path: str | Path) -> None:
        """Write the index to a file, as a whole or not at all; the vectors themselves are not in it."""
        with atomic(path) as temporary:
            self._index.save(str(temporary))

    def load(self, path: str | Path) -> AnnIndex:
        """Map an index that was saved into memory."""
        self._index = require("usearch.index", EXTRA).Index.restore(str(path), view=True)
        self.search_width(self.settings.search_width)
        return self

    def search_width(self, width: int) -> None:
        """Change how many candidates a search keeps: more find more, and take longer."""
        self._index.expansion_search = width

    @property
    def n_bytes(self) -> int:
        """Memory of the index, without the float32 vectors."""
        return int(self._index.memory_usage)

    def best(self, users: FloatArray, n: int, seen: Seen) -> tuple[IntArray, FloatArray]:
        """Return the items that are nearest to any of each user's vectors; takes and gives what the exact search does.

        Each query asks for as many items as the user has seen in addition, so that what is dropped is made up for. A
        row that ends early (-1) says that too few were found, not that there are no more.
        """
        n_users, n_vectors, _ = users.shape
        best = np.full((n_users, n), -1, dtype=np.int64)
        best_scores = np.full((n_users, n), -np.inf, dtype=np.float32)
        for u in range(n_users):
            known = seen[1][seen[0][u] : seen[0][u + 1]]
            wanted = min(n + len(known), len(self.items))
            queries = np.ascontiguousarray(users[u], dtype=np.float32)
            found = self._index.search(queries, wanted, threads=1)
            keys = np.asarray(found.keys) if n_vectors > 1 else np.asarray(found.keys)[None]
            counts = found.counts if n_vectors > 1 else [len(found)]
            items = np.unique(np.concatenate([row[:count] for row, count in zip(keys, counts, strict=True)]))
            items = items[~np.isin(items, known)].astype(np.int64)
            vectors = self.items[items]
            apart = np.einsum("id,id->i", vectors, vectors)[:, None] - 2 * vectors @ queries.T
            apart = (apart + np.einsum("cd,cd->c", queries, queries)).min(axis=1)
            order = np.argsort(apart, kind="stable")[:n]
            best[u, : len(order)], best_scores[u, : len(order)] = items[order], -apart[order]
        return best, best_scores


def best_with_index(
    index: AnnIndex, users: FloatArray, catalogue: Catalogue, n: int, seen: Seen
) -> tuple[IntArray, FloatArray]:
    """Return the best items by an index, and exactly, from the catalogue, for users of whom it finds too few.

    Examples
    --------
    >>> items = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    >>> everything = np.array([0, 49]), np.arange(49)
    >>> best_with_index(AnnIndex(items).build(), items[None, :2], Catalogue.of(items), 2, everything)[0].tolist()
    [[49, -1]]
    """
    best, scores = index.best(users, n, seen)
    short = np.flatnonzero(best[:, -1] < 0)
    for u in short.tolist():
        mine = seen[0][u : u + 2], seen[1]
        best[u], scores[u] = (part[0] for part in best_by_distance(users[[u]], catalogue, n, mine))
    return best, scores


@overload
def index_of(items: FloatArray, settings: IndexSettings | None = None, build: Literal[True] = True) -> AnnIndex: ...


@overload
def index_of(items: FloatArray, settings: IndexSettings | None = None, *, build: bool) -> AnnIndex | None: ...


def index_of(items: FloatArray, settings: IndexSettings | None = None, build: bool = True) -> AnnIndex | None:
    """Return an index of items: the one in the cache folder, or a new one, which is put there.

    The file's name is a hash of vectors and settings, so that an index never serves other vectors; processes share it.

    Parameters
    ----------
    items
        Vectors of shape (items, d).
    settings
        How it is built and searched.
    build
        Whether a new one is made; without it, None comes back where there is none.
    """
    index = AnnIndex(items, settings)
    version = require("usearch", EXTRA).__version__
    digest = hashlib.sha256(f"{items.shape} {index.settings} {version}".encode())
    digest.update(np.ascontiguousarray(items, dtype=np.float32).data)
    path = cache_folder() / "indexes" / f"{digest.hexdigest()[:32]}.usearch"
    if path.is_file():
        return index.load(path)
    if not build:
        return None
    index.build().save(path)
    return index


@cache
def available() -> bool:
    """Say whether the package that indexes need is installed.

    Examples
    --------
    >>> available() in (True, False)
    True
    """
    from importlib.util import find_spec

    return find_spec("usearch") is not None
