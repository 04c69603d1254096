"""Approximate search of the nearest items by an index, for catalogues that are too large for exact search.

The best items by the distance to the nearest of C vectors are the merge of C ordinary queries, because an item that
is among a user's n best is among the n best of the vector that it is nearest to.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import warnings
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from dpcml.retrieval.exact import Catalogue, Seen, best_by_distance
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.errors import DataError, RecoveryWarning
from dpcml.utils.files import atomic, cache_folder
from dpcml.utils.packages import require
from dpcml.utils.threads import thread_count

EXTRA = "serve"
BY_INDEX = 100  # longest lists that are searched in an index
FILTERED = 0.05  # share of the items from which candidates are searched in an index; fewer are compared one by one
SPARE = 1.5  # times the candidates that are needed on average are asked for, if only some items are candidates
MAGIC = b"dpcml index 1\n"  # begins the last bytes of a file: key and checksum follow
FOOTER = len(MAGIC) + 32 + 32
PRODUCT_BYTES = 32 * 2**20  # inner products held at once


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


def by_neighbourhood(items: FloatArray) -> IntArray:
    """Return an order of items in which similar ones follow each other: by the nearest of some of them.

    An index that is built in this order finds the neighbours of an item in memory that was just used.

    Examples
    --------
    >>> order = by_neighbourhood(np.repeat(np.eye(2, dtype=np.float32), 8, axis=0)[[0, 15, 1, 14, 2, 13]])
    >>> sorted(order[:3].tolist()) in ([0, 2, 4], [1, 3, 5])
    True
    """
    centres = items[np.random.default_rng(0).permutation(len(items))[: max(2, math.isqrt(len(items)))]]
    halves = np.einsum("cd,cd->c", centres, centres) / 2
    nearest = np.empty(len(items), dtype=np.int64)
    step = max(1, PRODUCT_BYTES // (4 * len(centres)))
    for first in range(0, len(items), step):
        nearest[first : first + step] = (items[first : first + step] @ centres.T - halves).argmax(axis=1)
    return np.argsort(nearest, kind="stable")


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
        order = by_neighbourhood(self.items)
        self._index.add(order, self.items[order], threads=thread_count(n_threads))
        return self

    def save(self, path: str | Path) -> None:
        """Write the index to a file, as a whole or not at all; the vectors themselves are not in it.

        The file ends with checksums of the vectors that the index is of, and of the index.
        """
        with atomic(path) as temporary:
            try:
                self._index.save(str(temporary))
            except RuntimeError as error:  # usearch's word for a full disk, among others
                raise DataError(f"{path}: cannot be written ({error}); make room or set DPCML_CACHE") from None
            with temporary.open("rb+") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                file.write(MAGIC + self.key + digest)  # the file is at its end

    def load(self, path: str | Path) -> AnnIndex:
        """Map an index that was saved into memory; raise `DataError` if it is damaged or of other vectors.

        The library trusts what it maps: without the check a flipped bit would end the process.
        """
        try:
            with Path(path).open("rb") as file:
                view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read ({error})") from None
        body, end = view[:-FOOTER], bytes(view[-FOOTER:])
        if not end.startswith(MAGIC) or hashlib.sha256(body).digest() != end[-32:]:
            raise DataError(f"{path}: damaged index, its checksum is not that of the file that was saved")
        if end[len(MAGIC) : -32] != self.key:
            raise DataError(f"{path}: an index of other vectors or settings")
        self._index, self._body = require("usearch.index", EXTRA).Index.restore(body, view=True), body
        self.search_width(self.settings.search_width)
        return self

    @cached_property
    def key(self) -> bytes:
        """SHA-256 of vectors, settings and the version of the library: what makes an index the right one."""
        version = require("usearch", EXTRA).__version__
        digest = hashlib.sha256(f"{self.items.shape} {self.settings} {version}".encode())
        digest.update(np.ascontiguousarray(self.items, dtype=np.float32).data)
        return digest.digest()

    def search_width(self, width: int) -> None:
        """Change how many candidates a search keeps: more find more, and take longer."""
        self._index.expansion_search = width

    @property
    def n_bytes(self) -> int:
        """Memory of the index, without the float32 vectors."""
        return int(self._index.memory_usage)

    def best(
        self, users: FloatArray, n: int, seen: Seen, allowed: BoolArray | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the items that are nearest to any of each user's vectors; takes and gives what the exact search does.

        Each query asks for more items, as the user has seen some and as ``allowed`` leaves out some, so that what is
        dropped is made up for. A row that ends early (-1) says that too few were found for one of the user's vectors,
        not that there are no more.
        """
        share = 1.0 if allowed is None else SPARE * len(allowed) / max(int(np.count_nonzero(allowed)), 1)
        n_users, n_vectors, _ = users.shape
        best = np.full((n_users, n), -1, dtype=np.int64)
        best_scores = np.full((n_users, n), -np.inf, dtype=np.float32)
        for u in range(n_users):
            known = seen[1][seen[0][u] : seen[0][u + 1]]
            wanted = min(math.ceil((n + len(known)) * share), len(self.items))
            queries = np.ascontiguousarray(users[u], dtype=np.float32)
            found = self._index.search(queries, wanted, threads=1)
            keys = np.asarray(found.keys) if n_vectors > 1 else np.asarray(found.keys)[None]
            counts = found.counts if n_vectors > 1 else [len(found)]
            rows = [row[:count].astype(np.int64) for row, count in zip(keys, counts, strict=True)]
            if allowed is not None:
                rows = [row[allowed[row]] for row in rows]
                if wanted < len(self.items) and min(np.count_nonzero(~np.isin(row, known)) for row in rows) < n:
                    continue  # a candidate that was not found may be nearer than those that were
            items = np.unique(np.concatenate(rows))
            items = items[~np.isin(items, known)]
            vectors = self.items[items]
            apart = np.einsum("id,id->i", vectors, vectors)[:, None] - 2 * vectors @ queries.T
            apart = (apart + np.einsum("cd,cd->c", queries, queries)).min(axis=1)
            order = np.argsort(apart, kind="stable")[:n]
            best[u, : len(order)], best_scores[u, : len(order)] = items[order], -apart[order]
        return best, best_scores


def best_with_index(
    index: AnnIndex, users: FloatArray, catalogue: Catalogue, n: int, seen: Seen, allowed: BoolArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Return the best items by an index, and exactly, from the catalogue, for users of whom it finds too few.

    ``allowed`` is a mask of the items that may be among them, all by default.

    Examples
    --------
    >>> items = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    >>> everything = np.array([0, 49]), np.arange(49)
    >>> best_with_index(AnnIndex(items).build(), items[None, :2], Catalogue.of(items), 2, everything)[0].tolist()
    [[49, -1]]
    """
    best, scores = index.best(users, n, seen, allowed)
    short = np.flatnonzero(best[:, -1] < 0)
    if allowed is not None and len(short):
        catalogue = catalogue.only(np.flatnonzero(allowed))
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

    A damaged file gives a `RecoveryWarning`: with ``build`` a new index takes its place, without it search is exact.
    """
    index = AnnIndex(items, settings)
    path = cache_folder() / "indexes" / f"{index.key.hex()[:32]}.index"
    if path.is_file():
        try:
            return index.load(path)
        except DataError as error:
            way = "a new one is built" if build else "search is exact; remove the file, or build the index anew"
            warnings.warn(f"{error}: {way}", RecoveryWarning, stacklevel=2)
    if not build:
        return None
    try:
        index.build().save(path)
    except DataError as error:  # it serves this process all the same
        warnings.warn(f"the index is not kept for the next start: {error}", RecoveryWarning, stacklevel=2)
    return index


class ItemSearch:
    """Search of the items nearest to users: exact, or by an index once there is one.

    Parameters
    ----------
    items
        Vectors of shape (items, d).

    Examples
    --------
    >>> items = np.eye(3, dtype=np.float32)
    >>> nothing = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32)
    >>> ItemSearch(items).best(items[None, 1:2], 1, np.ones(3, dtype=bool), nothing)[0]
    array([[1]])
    """

    def __init__(self, items: FloatArray) -> None:
        self.items = items

    @cached_property
    def catalogue(self) -> Catalogue:
        """All items, as exact search needs them."""
        return Catalogue.of(self.items)

    @cached_property
    def index(self) -> AnnIndex | None:
        """The index, if there is one already."""
        return index_of(self.items, build=False) if available() else None

    def build_index(self) -> None:
        """Build the index, or load the cached one."""
        self.index = index_of(self.items)

    def best(
        self, users: FloatArray, n: int, allowed: BoolArray, seen: Seen, *, by_index: bool = False
    ) -> tuple[IntArray, FloatArray]:
        """Return positions and scores of the items nearest to any of each user's vectors; shape (users, n).

        Parameters
        ----------
        users
            Vectors of shape (users, C, d).
        n
            Items per user.
        allowed
            Mask of the candidates, shape (items,).
        seen
            CSR of the items that are no candidates of a user.
        by_index
            Use the index, if there is one, for short lists of candidates that are not few.
        """
        count = np.count_nonzero(allowed)
        some = None if count == len(allowed) else allowed
        if by_index and n <= BY_INDEX and count >= FILTERED * len(allowed) and self.index is not None:
            return best_with_index(self.index, users, self.catalogue, n, seen, some)
        catalogue = self.catalogue if some is None else self.catalogue.only(np.flatnonzero(some))
        return best_by_distance(users, catalogue, n, seen)


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
