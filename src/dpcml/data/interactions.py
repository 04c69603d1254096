"""`Interactions`: the user-item matrix of implicit feedback, with external ids."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dpcml.data.csr import (
    below_threshold,
    check_codes,
    csr_of_pairs,
    matrix_entries,
    pair_sums,
    pairs_without,
    take_rows,
)
from dpcml.data.items import ItemTable, id_array, id_row, known, unique_ids
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray, Seed, frozen
from dpcml.utils.checks import check_positions
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.names import renamed

if TYPE_CHECKING:
    from dpcml.data.split import Split

COUNTED = 2**22  # positives at once: NumPy counts in a copy of twice the size


@dataclass(frozen=True)
class Preparation:
    """What was done to the rows of a source before they became positives."""

    rows: int = 0  # rows in the source
    below_rating: int = 0  # rows under the rating threshold
    duplicates: int = 0  # further rows of a (user, item) pair
    users_dropped: int = 0  # users with too few positives
    items_dropped: int = 0  # items with too few positives (k-core), or left without any
    notes: tuple[str, ...] = ()  # what a reader guessed or found

    def lines(self) -> list[str]:
        """Return the report as lines of text; steps that changed nothing are left out."""
        counts = {
            "rows below the rating threshold": self.below_rating,
            "duplicate rows collapsed": self.duplicates,
            "users dropped, too few positives": self.users_dropped,
            "items dropped, too few positives": self.items_dropped,
        }
        return [*self.notes, *(f"{name}: {count:,}" for name, count in counts.items() if count)]


@dataclass(frozen=True, eq=False)
class Interactions:
    """Positives of users on items: a frozen CSR with external ids.

    Build one with `from_csr`, `from_frame` or `from_file`; the constructor takes arrays that are in order
    already and does not copy them.

    Parameters
    ----------
    indptr
        ``indices[indptr[u]:indptr[u + 1]]`` are the items of user ``u``; shape (users + 1,).
    indices
        Item positions, ascending and unique within each user.
    user_ids
        External user ids, integers or strings, one per row.
    items
        External item ids, titles and attributes, one per column.
    timestamps
        Time of each positive, parallel to ``indices``, if known.
    catalogue_size
        Items in the source's catalogue, liked by somebody or not, if known.
    preparation
        How the positives came about.
    split_hash
        Hash of the split that this is a part of, if any.
    low_rated
        Pairs that the source holds but that are no positives, such as ratings below the threshold; (users, items).
        No model learns from them and no metric counts them: they are only never recommended. None if there are none.
    weights
        How much each positive counts, such as hours or a number of plays, parallel to ``indices``; None if all count
        the same. See `confidence` for what models make of them.

    Examples
    --------
    >>> data = Interactions.from_csr(sparse.csr_array([[1, 0, 1], [0, 1, 0]]))
    >>> data
    Interactions(2 users, 3 items, 3 positives)
    >>> data.of(0).tolist()
    [0, 2]
    """

    indptr: IntArray
    indices: IntArray
    user_ids: Array
    items: ItemTable
    timestamps: FloatArray | None = None
    catalogue_size: int | None = None
    preparation: Preparation = field(default_factory=Preparation)
    split_hash: str | None = None
    low_rated: sparse.csr_array | None = None
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "user_ids", id_array(self.user_ids))
        for name in ("indptr", "indices", "user_ids", "timestamps", "weights"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen(np.asarray(value)))
        if self.user_ids.ndim != 1:
            raise DataError(f"user_ids has {self.user_ids.ndim} dimensions: pass one id per user")
        for name in ("indptr", "indices"):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise DataError(f"{name} of type {array.dtype} and shape {array.shape}: pass whole numbers in one row")
        if self.indptr.shape != (self.n_users + 1,) or self.indptr[-1] != self.n_positives:
            raise DataError(
                f"indptr of shape {self.indptr.shape} does not fit {self.n_users} users"
                f" and {self.n_positives} positives: it must have users + 1 entries and end in the positives"
            )
        if self.timestamps is not None and self.timestamps.shape != self.indices.shape:
            raise DataError(f"{len(self.timestamps)} timestamps for {self.n_positives} positives: pass one each")
        if self.weights is not None:
            self._check_weights(self.weights)
        # Compiled kernels do not check bounds: a position out of range would end the process.
        check_positions("indices", self.indptr, self.indices, self.n_items, ascending=True)
        if self.low_rated is not None:
            self._check_low_rated(self.low_rated)

    def _check_weights(self, weights: FloatArray) -> None:
        if weights.shape != self.indices.shape:
            raise DataError(f"weights of shape {weights.shape} for {self.n_positives} positives: pass one each")
        bad = ~(np.isfinite(weights) & (weights >= 0))
        if bad.any():
            raise DataError(f"weight {weights[bad][0]}: weights must be finite and at least 0")

    def _check_low_rated(self, pairs: sparse.csr_array) -> None:
        if pairs.shape != (self.n_users, self.n_items):
            raise DataError(f"low_rated of shape {pairs.shape}: pass ({self.n_users}, {self.n_items}), users and items")
        check_positions("low_rated", pairs.indptr, pairs.indices, self.n_items, ascending=True)

    @classmethod
    def from_csr(
        cls,
        matrix: sparse.csr_array | sparse.csr_matrix | Any,
        *,
        user_ids: Sequence[Any] | Array | None = None,
        item_ids: Sequence[Any] | Array | None = None,
        items: ItemTable | None = None,
        min_rating: float | None = None,
        weights: bool = False,
    ) -> Interactions:
        """Take the positive entries of a (users, items) matrix; empty rows and columns are kept.

        Parameters
        ----------
        matrix
            Any scipy sparse matrix, or a dense array. Zeros are no positives, stored or not; an entry that is
            stored twice counts once.
        user_ids, item_ids
            External ids of rows and columns; positions by default.
        items
            Titles and attributes; found by item id, or column by column without ``item_ids``.
        min_rating
            Entries below it are no positives. Without it, every entry must be at least 0.
        weights
            Keep the entries as weights, such as numbers of plays; an entry that is stored twice counts as their sum.

        Examples
        --------
        >>> ratings = sparse.csr_array([[5, 3], [0, 4]])
        >>> Interactions.from_csr(ratings, min_rating=4, item_ids=["alien", "heat"]).csr.toarray()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
        """
        if not (items is None or isinstance(items, ItemTable)):
            raise ParameterError(f"items={items!r}: must be an ItemTable, or None")
        entries = matrix_entries(matrix)
        low = below_threshold(entries.data, min_rating)
        keep = (entries.data != 0) & ~low
        n_users, n_items = entries.shape
        users = unique_ids(user_ids, n_users, "user_ids")
        columns = unique_ids(items.ids if item_ids is None and items is not None else item_ids, n_items, "item_ids")
        table = ItemTable(columns) if items is None else items.take(columns)
        rows, cols = entries.coords
        done = Preparation(rows=len(low), below_rating=int(low.sum()))
        known = (entries.data != 0) & low
        return cls.from_codes(
            rows[keep], cols[keep], users, table,
            preparation=done, low_rated=(rows[known], cols[known]), weights=entries.data[keep] if weights else None,
        )  # fmt: skip

    @classmethod
    def from_codes(
        cls,
        users: IntArray,
        items: IntArray,
        user_ids: Array,
        table: ItemTable,
        *,
        timestamps: FloatArray | None = None,
        catalogue_size: int | None = None,
        preparation: Preparation | None = None,
        low_rated: tuple[IntArray, IntArray] | None = None,
        weights: FloatArray | None = None,
    ) -> Interactions:
        """Build from parallel positions of users and items; of a pair that repeats, the latest counts.

        ``low_rated`` holds such positions too, of pairs that are known and no positives. The weights of a pair that
        repeats are added up.

        Examples
        --------
        >>> table = ItemTable(np.array(["a", "b"], dtype=object))
        >>> Interactions.from_codes(np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([7, 8]), table)
        Interactions(2 users, 2 items, 2 positives)
        """
        n_users, n_items = len(user_ids), len(table)
        check_codes(users, n_users, "user")
        check_codes(items, n_items, "item")
        summed = None if weights is None else pair_sums(users, items, n_items, weights)
        indptr, indices, timestamps = csr_of_pairs(users, items, (n_users, n_items), timestamps)
        done = preparation or Preparation(rows=len(users))
        done = replace(done, duplicates=done.duplicates + len(users) - len(indices))
        low = None if low_rated is None else pairs_without(*low_rated, (n_users, n_items), (indptr, indices))
        return cls(indptr, indices, user_ids, table, timestamps, catalogue_size, done, low_rated=low, weights=summed)

    @classmethod
    @renamed(min_user="min_user_interactions", min_item="min_item_interactions")
    def from_frame(
        cls,
        frame: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        time: str | None = None,
        weight: str | None = None,
        items: Any = None,
        min_rating: float | None = None,
        min_user_interactions: int = 1,
        min_item_interactions: int = 1,
        core: int = 1,
        text_ids: bool = False,
        item_space: str = "positives",
    ) -> Interactions:
        """Build from a pandas or polars frame, lazy or not; see `dpcml.data.prepare.from_frame` for the options.

        Examples
        --------
        >>> import polars as pl
        >>> likes = pl.DataFrame({"user_id": ["ann", "ann", "bob"], "item_id": [3, 5, 3]})
        >>> Interactions.from_frame(likes)
        Interactions(2 users, 2 items, 3 positives)
        """
        from dpcml.data.prepare import from_frame

        return from_frame(
            frame, user=user, item=item, rating=rating, time=time, weight=weight, items=items, min_rating=min_rating,
            min_user_interactions=min_user_interactions, min_item_interactions=min_item_interactions, core=core,
            text_ids=text_ids, item_space=item_space,
        )  # fmt: skip

    @classmethod
    def from_file(cls, path: str | Path, **options: Any) -> Interactions:
        r"""Read a CSV, TSV, Parquet, MovieLens, Steam or list file; see `dpcml.data.readers.read`.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "likes.csv"
        ...     _ = file.write_text("user,item\nann,tea\nbob,tea\n")
        ...     Interactions.from_file(file)
        Interactions(2 users, 1 items, 2 positives)
        """
        from dpcml.data.readers import read

        return read(path, **options)

    @property
    def n_users(self) -> int:
        """Number of rows."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of columns, items that nobody likes included."""
        return len(self.items)

    @property
    def n_positives(self) -> int:
        """Number of (user, item) pairs."""
        return len(self.indices)

    @property
    def item_ids(self) -> Array:
        """External item ids, one per column."""
        return self.items.ids

    @property
    def item_id_space(self) -> int:
        """Largest integer item id plus one, as the paper counts items; the number of items for other ids."""
        if self.item_ids.dtype.kind in "iu" and self.n_items:
            return int(self.item_ids.max()) + 1
        return self.n_items

    @property
    def per_user(self) -> IntArray:
        """Positives of each user; shape (users,)."""
        return np.diff(self.indptr)

    @property
    def per_item(self) -> IntArray:
        """Users of each item; shape (items,)."""
        found = np.zeros(self.n_items, dtype=np.int64)
        for first in range(0, self.n_positives, COUNTED):
            found += np.bincount(self.indices[first : first + COUNTED], minlength=self.n_items)
        return found

    @property
    def rows(self) -> IntArray:
        """User position of each positive, parallel to ``indices``."""
        return np.repeat(np.arange(self.n_users), self.per_user)

    @cached_property
    def csr(self) -> sparse.csr_array:
        """The positives as a scipy CSR of float32 ones, read-only; shape (users, items)."""
        ones = frozen(np.ones(self.n_positives, dtype=np.float32))
        return sparse.csr_array((ones, self.indices, self.indptr), shape=(self.n_users, self.n_items))

    @cached_property
    def confidence(self) -> sparse.csr_array:
        """What models that use weights take for the ones of `csr`: ``1 + log(1 + weight)``, divided by its mean.

        The logarithm keeps a game played for a thousand hours from counting a thousand times; the mean of 1 keeps other
        parameters at their scale. Without weights it is `csr`.

        Examples
        --------
        >>> import polars as pl
        >>> rows = pl.DataFrame({"user": ["ann", "ann"], "item": ["tea", "rum"], "cups": [400, 1]})
        >>> plays = Interactions.from_frame(rows, weight="cups")
        >>> plays.confidence.toarray().astype(float).round(2).tolist()
        [[0.39, 1.61]]
        """
        if self.weights is None:
            return self.csr
        values = 1 + np.log1p(self.weights)
        parts = frozen((values / values.mean()).astype(np.float32)), self.indices, self.indptr
        return sparse.csr_array(parts, shape=(self.n_users, self.n_items))

    @cached_property
    def by_item(self) -> sparse.csr_array:
        """The transpose of `csr`, shape (items, users), read-only; computed at first use."""
        turned = self.csr.T.tocsr()
        parts = self.csr.data, frozen(turned.indices), frozen(turned.indptr)  # the ones are shared
        return sparse.csr_array(parts, shape=turned.shape)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of positives, their weights and ids, the same wherever they were read from."""
        digest = hashlib.sha256(f"{self.n_users} {self.n_items} {self.n_positives}".encode())
        digest.update(np.ascontiguousarray(self.indptr, dtype="<i8").data)
        digest.update(np.ascontiguousarray(self.indices, dtype="<i4").data)
        for ids in (self.user_ids, self.item_ids):
            digest.update(b"|" + ids.dtype.kind.encode())
            if ids.dtype.kind == "i":
                digest.update(np.ascontiguousarray(ids, dtype="<i8").data)
            else:
                digest.update("\0".join(ids.tolist()).encode("utf-8", "surrogatepass"))
        if self.weights is not None:
            digest.update(np.ascontiguousarray(self.weights, dtype="<f8").data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"Interactions({self.n_users:,} users, {self.n_items:,} items, {self.n_positives:,} positives)"

    def of(self, user: int) -> IntArray:
        """Return the item positions of the user at a row."""
        return self.indices[self.indptr[user] : self.indptr[user + 1]]

    def low_rated_of(self, user: int) -> IntArray:
        """Return the item positions of the user's known pairs that are no positives.

        Examples
        --------
        >>> Interactions.from_csr(np.array([[5, 2, 0], [4, 0, 1]]), min_rating=4).low_rated_of(1).tolist()
        [2]
        """
        if self.low_rated is None:
            return self.indices[:0]
        pairs = self.low_rated
        return np.asarray(pairs.indices[pairs.indptr[user] : pairs.indptr[user + 1]])

    def users_between(self, first: int, last: int) -> Interactions:
        """Return the rows ``first`` to ``last``, the latter not included, over all items.

        Examples
        --------
        >>> Interactions.from_csr(np.eye(4)).users_between(1, 3).csr.toarray()
        array([[0., 1., 0., 0.],
               [0., 0., 1., 0.]], dtype=float32)
        """
        begin, end = self.indptr[first], self.indptr[last]
        return replace(
            self,
            indptr=self.indptr[first : last + 1] - begin,
            indices=self.indices[begin:end],
            user_ids=self.user_ids[first:last],
            timestamps=None if self.timestamps is None else self.timestamps[begin:end],
            low_rated=None if self.low_rated is None else self.low_rated[first:last],
            weights=None if self.weights is None else self.weights[begin:end],
        )

    def take_users(self, rows: IntArray) -> Interactions:
        """Return some rows over all items, without times, weights and low ratings; this object if they are all.

        Examples
        --------
        >>> Interactions.from_csr(np.eye(4)).take_users(np.array([1, 3])).csr.toarray()
        array([[0., 1., 0., 0.],
               [0., 0., 0., 1.]], dtype=float32)
        """
        if len(rows) == self.n_users and (np.diff(rows) == 1).all():
            return self
        return Interactions(*take_rows(self.indptr, self.indices, rows), self.user_ids[rows], self.items)

    def user_rows(self, ids: Sequence[Any] | Array) -> IntArray:
        """Return the row of each external user id, or say which id is unknown."""
        return known(self.user_ids, id_row(ids, "user"), "user", self.user_order)

    def item_columns(self, ids: Sequence[Any] | Array) -> IntArray:
        """Return the column of each external item id, or say which id is unknown."""
        return known(self.item_ids, id_row(ids, "item"), "item", self.items.order)

    @cached_property
    def user_order(self) -> IntArray:
        """Rows of the users by ascending id."""
        return np.argsort(self.user_ids, kind="stable")

    def select(self, keep: BoolArray, *, split_hash: str | None = None) -> Interactions:
        """Return some of the positives (a mask parallel to ``indices``); users, items and shape stay."""
        keep = np.asarray(keep)
        if keep.dtype != bool or keep.shape != self.indices.shape:
            raise ParameterError(
                f"keep of type {keep.dtype} and shape {keep.shape}: pass {self.n_positives} truth values"
            )
        # The end is padded for users without positives at the end; others without are masked, because
        # reduceat gives an empty segment the element at its start.
        counts = np.add.reduceat(np.append(keep, False), self.indptr[:-1], dtype=np.int64) * (self.per_user > 0)
        return replace(
            self,
            indptr=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]),
            indices=self.indices[keep],
            timestamps=None if self.timestamps is None else self.timestamps[keep],
            weights=None if self.weights is None else self.weights[keep],
            preparation=Preparation(rows=self.n_positives),
            split_hash=split_hash,
        )

    def with_items(self, items: ItemTable) -> Interactions:
        """Return the same positives with titles and attributes from a catalogue, found by item id."""
        return replace(self, items=items.take(self.item_ids), catalogue_size=len(items))

    def split(self, parts: Sequence[float] = (0.6, 0.2, 0.2), rng: Seed = 0) -> Split:
        """Split each user's positives at random; see `dpcml.data.split.by_ratio`.

        Examples
        --------
        >>> data = Interactions.from_csr(np.ones((3, 10)))
        >>> train, valid, test = data.split((0.6, 0.2, 0.2), np.random.default_rng(0))
        >>> train, test
        (Interactions(3 users, 10 items, 18 positives), Interactions(3 users, 10 items, 6 positives))
        """
        from dpcml.data.split import by_ratio

        return by_ratio(self, parts, rng)


def as_interactions(source: Any) -> Interactions:
    """Return `Interactions` from `Interactions`, a matrix or a data frame.

    Examples
    --------
    >>> as_interactions(np.eye(3))
    Interactions(3 users, 3 items, 3 positives)
    """
    if isinstance(source, Interactions):
        return source
    if sparse.issparse(source) or isinstance(source, np.ndarray):
        return Interactions.from_csr(source)
    return Interactions.from_frame(source)
