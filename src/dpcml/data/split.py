"""Splits of positives into training, validation and test parts, with a hash that results carry."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import Array, FloatArray, IntArray, Seed, generator
from dpcml.utils.checks import at_least, choice
from dpcml.utils.errors import DataError, ParameterError

PARTS = (0.6, 0.2, 0.2)  # train, valid, test: the paper's
RELEASED_SEED = 1234  # of the paper's released code


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


def by_ratio(data: Interactions, parts: Sequence[float] = PARTS, rng: Seed = 0) -> Split:
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
    shares = check_shares(parts)
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


def by_time(data: Interactions, parts: Sequence[float] = PARTS, rng: Seed = 0) -> Split:
    """Cut all positives at points in time, so that no part looks into the future of an earlier one.

    Positives of the same time stay together: each cut is made between two times, as near to its share as
    that allows. Users who appear late have no training positives, of which a warning tells. ``rng`` is there because
    the other rules take one; nothing here is random.

    Examples
    --------
    >>> table = Interactions.from_csr(np.ones((1, 4))).items
    >>> times = np.array([4.0, 3.0, 2.0, 1.0])
    >>> data = Interactions.from_codes(np.zeros(4, int), np.arange(4), np.array([0]), table, timestamps=times)
    >>> [part.indices.tolist() for part in by_time(data, (0.5, 0.5))]
    [[2, 3], [0, 1]]
    """
    shares = check_shares(parts)
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
    split = _label(data, labels, len(shares), rule)
    tested = split.test.per_user > 0
    late = int((tested & (split.train.per_user == 0)).sum())
    if late:
        warnings.warn(
            f"{late:,} of {int(tested.sum()):,} users of the test part have no positive in the training part: no model"
            " knows anything of them, and figures are means over them too",
            stacklevel=2,
        )
    return split


def by_released_code(data: Interactions, seed: int = RELEASED_SEED) -> Split:
    """Cut each user's positives as the paper's released code does: with its generator, user after user.

    The split is the authors' own where users stand in the order of their file and items are sorted by the ids in it, as
    in files of the format ``count-then-ids`` (MovieLens-1M's ``positives.dat``, CiteULike's ``users.dat``).

    Parameters
    ----------
    data
        What to split.
    seed
        Seed of NumPy's older generator; the released code has 1234.

    Examples
    --------
    >>> data = Interactions.from_csr(np.ones((2, 5)))
    >>> by_released_code(data).train.indices.tolist()
    [0, 1, 4, 1, 2, 3]
    """
    rng = np.random.RandomState(seed)
    labels = np.empty(data.n_positives, dtype=np.int64)
    for first, last in pairwise(data.indptr.tolist()):
        order, n = np.arange(first, last), last - first
        rng.shuffle(order)
        train, valid = n * 3 // 5, n // 5
        labels[order[:train]], labels[order[train : train + valid]], labels[order[train + valid :]] = 0, 1, 2
    return _label(data, labels, 3, f"released code, seed {seed}")


SPLITS: dict[str, Callable[[Interactions, int], Split]] = {
    "ratio": lambda data, seed: by_ratio(data, rng=seed),
    "last": lambda data, seed: leave_last(data, rng=seed),
    "time": lambda data, seed: by_time(data),
    "released": lambda data, seed: by_released_code(data),
}


def split_by(data: Interactions, how: str = "ratio", seed: int = 0) -> Split:
    """Split into training, validation and test part by a rule's name, as the command line does.

    Parameters
    ----------
    data
        What to split.
    how
        ``ratio``: 60, 20 and 20 % of each user's positives at random; ``last``: each user's last positive tests, the
        one before it validates; ``time``: 60, 20 and 20 % of all positives, cut at two points in time; ``released``:
        the split of the paper's released code, see `by_released_code`.
    seed
        Seed of ``ratio``, and of the order of equal times in ``last``.

    Examples
    --------
    >>> data = Interactions.from_csr(np.ones((3, 10)))
    >>> split_by(data, "ratio", 1).rule
    'per-user ratio 0.6/0.2/0.2'
    >>> split_by(data, "last")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: this split needs the time of each positive: name its column when reading,
    time='...' (--time)
    """
    choice("split", how, tuple(SPLITS))
    return SPLITS[how](data, seed)


def check_shares(parts: Sequence[float]) -> list[float]:
    """Return two or three shares that add up to 1, or raise a `ParameterError`.

    Examples
    --------
    >>> check_shares((0.8, 0.2))
    [0.8, 0.2]
    """
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
        raise DataError("this split needs the time of each positive: name its column when reading, time='...' (--time)")
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
            raise DataError(
                f"part {part + 1} of the split is empty: {data!r} is too small for {rule}; users need several"
                " positives, or train without a split (--all)"
            )
    digest = hashlib.sha256(data.content_hash.encode() + labels.astype(np.int8).tobytes()).hexdigest()[:16]
    return Split(tuple(data.select(labels == part, split_hash=digest) for part in range(n_parts)), rule)
