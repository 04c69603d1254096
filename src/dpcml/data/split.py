"""Splits of positives into training, validation and test parts, with a hash that results carry."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import Array, FloatArray, IntArray, Seed, generator
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError, ParameterError


@dataclass(frozen=True)
class Split:
    """Parts of one data set that share users, items and shape; unpacks into them.

    Parameters
    ----------
    parts
        Two (train, test) or three (train, valid, test) parts.
    rule
        How they came about, in words.

    Examples
    --------
    >>> split = Interactions.from_csr(np.ones((2, 5))).split((0.8, 0.2), rng=1)
    >>> train, test = split
    >>> split.rule, len(split.hash), test.split_hash == split.hash
    ('per-user ratio 0.8/0.2', 16, True)
    """

    parts: tuple[Interactions, ...]
    rule: str

    @property
    def train(self) -> Interactions:
        """What models learn from."""
        return self.parts[0]

    @property
    def valid(self) -> Interactions | None:
        """What settings are chosen on, where there is such a part."""
        return self.parts[1] if len(self.parts) == 3 else None

    @property
    def test(self) -> Interactions:
        """What is reported."""
        return self.parts[-1]

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that identify data and parts."""
        return str(self.train.split_hash)

    def __iter__(self) -> Iterator[Interactions]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, part: int) -> Interactions:
        return self.parts[part]


def by_ratio(data: Interactions, parts: Sequence[float] = (0.6, 0.2, 0.2), rng: Seed = 0) -> Split:
    """Shuffle each user's positives and cut them by ratio, rounding down; the last part takes the rest.

    This is the paper's rule: of n positives ``int(0.6 n)`` train, ``int(0.2 n)`` validate, the rest test.
    A user with too few positives for that keeps one for training.

    Parameters
    ----------
    data
        What to split.
    parts
        Two or three shares that add up to 1.
    rng
        A generator, or a seed.

    Examples
    --------
    >>> split = by_ratio(Interactions.from_csr(np.ones((1, 9))), (0.6, 0.2, 0.2), rng=0)
    >>> [part.n_positives for part in split]
    [5, 1, 3]
    """
    shares = _shares(parts)
    order = np.lexsort((generator(rng).random(data.n_positives), data.rows))
    counts = data.per_user
    ends = [np.maximum(np.floor(shares[0] * counts), np.minimum(counts, 1))]
    for share in shares[1:-1]:
        ends.append(np.minimum(ends[-1] + np.floor(share * counts), counts))
    return _cut(data, order, ends, f"per-user ratio {_written(shares)}")


def leave_last(data: Interactions, n: int = 1, *, valid: bool = True, rng: Seed = 0) -> Split:
    """Hold out each user's last ``n`` positives for testing, and the ``n`` before them for validation.

    A user who would be left without a training positive keeps all of them for training. Positives of the same
    time are put in random order.

    Examples
    --------
    >>> table = Interactions.from_csr(np.ones((1, 4))).items
    >>> times = np.array([4.0, 3.0, 2.0, 1.0])
    >>> data = Interactions.from_codes(np.zeros(4, int), np.arange(4), np.array([0]), table, timestamps=times)
    >>> [part.indices.tolist() for part in leave_last(data, 1)]
    [[2, 3], [1], [0]]
    """
    at_least("n", n, 1)
    order = np.lexsort((generator(rng).random(data.n_positives), _times(data), data.rows))
    counts = data.per_user
    held = n * (2 if valid else 1)
    enough = counts > held
    ends = [np.where(enough, counts - k, counts) for k in range(held, 0, -n)]
    return _cut(data, order, ends, f"last {n} per user")


def by_time(data: Interactions, parts: Sequence[float] = (0.6, 0.2, 0.2), rng: Seed = 0) -> Split:
    """Cut all positives at points in time, so that no part looks into the future of an earlier one.

    Positives of the same time stay together: each cut is made between two times, as near to its share as
    that allows. Users who appear late have no training positives. ``rng`` is there because the other rules
    take one; nothing here is random.

    Examples
    --------
    >>> table = Interactions.from_csr(np.ones((1, 4))).items
    >>> times = np.array([4.0, 3.0, 2.0, 1.0])
    >>> data = Interactions.from_codes(np.zeros(4, int), np.arange(4), np.array([0]), table, timestamps=times)
    >>> [part.indices.tolist() for part in by_time(data, (0.5, 0.5))]
    [[2, 3], [0, 1]]
    """
    shares = _shares(parts)
    times = _times(data)
    rule = f"by time {_written(shares)}"
    ordered = np.sort(times)
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1  # a later time begins here
    if len(cuts) < len(shares) - 1:
        raise DataError(f"{len(cuts) + 1} different times are too few to split {data!r} {rule}")
    limits, first = [], 0
    for place, edge in enumerate(np.cumsum(shares)[:-1] * data.n_positives):
        last = len(cuts) - (len(shares) - 2 - place)  # leave a cut for each part to come
        chosen = first + int(np.argmin(np.abs(cuts[first:last] - edge)))
        limits.append(ordered[cuts[chosen]])
        first = chosen + 1
    labels = np.searchsorted(np.asarray(limits), times, side="right")
    return _label(data, labels, len(shares), rule)


def _shares(parts: Sequence[float]) -> list[float]:
    try:
        shares = [float(share) for share in parts]
    except (TypeError, ValueError):
        shares = []
    if len(shares) not in (2, 3) or not all(share > 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise ParameterError(f"parts={parts!r}: pass two or three positive shares that add up to 1")
    return shares


def _written(shares: Sequence[float]) -> str:
    return "/".join(f"{share:g}" for share in shares)


def _times(data: Interactions) -> FloatArray:
    if data.timestamps is None:
        raise DataError("this split needs the time of each positive: name a time column when reading")
    return data.timestamps


def _cut(data: Interactions, order: IntArray, ends: Sequence[Array], rule: str) -> Split:
    """Label the k-th positive of each user (in ``order``, grouped by user) by the part that it falls into."""
    place = np.arange(data.n_positives) - np.repeat(data.indptr[:-1], data.per_user)
    labels = np.zeros(data.n_positives, dtype=np.int64)
    for end in ends:
        labels[order] += place >= np.repeat(end, data.per_user)
    return _label(data, labels, len(ends) + 1, rule)


def _label(data: Interactions, labels: IntArray, n_parts: int, rule: str) -> Split:
    for part in range(n_parts):
        if not (labels == part).any():
            raise DataError(f"part {part + 1} of the split is empty: {data!r} is too small for {rule}")
    digest = hashlib.sha256(data.content_hash.encode() + labels.astype(np.int8).tobytes()).hexdigest()[:16]
    return Split(tuple(data.select(labels == part, split_hash=digest) for part in range(n_parts)), rule)
