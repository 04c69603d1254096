"""Negative sampling, and minibatches of positives with sampled negatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.mining import ALL, HARDEST, SIMILAR
from dpcml.kernels.mining import CLOSEST as CLOSEST
from dpcml.kernels.random import epoch_key
from dpcml.kernels.sampling import Candidates, Positives, fill_filters, sample_batch
from dpcml.training.order import Order
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.names import Registry

HARD_SHARE = 0.1  # of the candidates of partial AUC that become negatives
LEAST_HARDEST = 2  # negatives of partial AUC: with one it would be hard negatives
MANY_CANDIDATES = 3  # times the candidates of other samplers are drawn for partial AUC, whose share of them is small
HALF_PULL = 50  # likes of an item at which the pull is half as strong


@dataclass(frozen=True)
class NegativeSampler:
    """How negatives are sampled: the distribution of candidates, and which candidates become negatives.

    Each positive gets its own candidates. Training positives of the user are never candidates.
    """

    about: str
    exponent: float  # candidates are drawn in proportion to item frequency to this power; 0 is uniform
    choice: int  # candidates that become negatives: ALL, the CLOSEST, the HARDEST some, or one SIMILAR to the positive

    def with_exponent(self, exponent: float) -> NegativeSampler:
        """Return the sampler with another exponent; a uniform sampler stays uniform."""
        return replace(self, exponent=exponent) if self.exponent else self

    def n_negatives(self, n_candidates: int) -> int:
        """Return how many of a positive's candidates become negatives.

        Examples
        --------
        >>> [SAMPLERS[name].n_negatives(30) for name in ("uniform", "hard", "partial-auc")]
        [30, 1, 3]
        >>> [SAMPLERS["partial-auc"].n_negatives(count) for count in (1, 2, 10, 90)]
        [1, 2, 2, 9]
        """
        if self.choice == ALL:
            return n_candidates
        return min(n_candidates, max(LEAST_HARDEST, round(HARD_SHARE * n_candidates))) if self.choice == HARDEST else 1

    def default_candidates(self, train: Interactions) -> int:
        """Return how many candidates hold about 0.15 unseen positives by chance, from 10 to 30.

        Partial AUC has three times as many: it averages over the closest tenth of them.

        Examples
        --------
        >>> train = Interactions.from_csr(np.eye(100))
        >>> [SAMPLERS[name].default_candidates(train) for name in ("hard", "partial-auc")]
        [15, 45]
        """
        density = train.n_positives / (train.n_users * train.n_items)
        count = int(np.clip(round(0.15 / density), 10, 30))
        return MANY_CANDIDATES * count if self.choice == HARDEST else count

    def candidates(self, train: Interactions) -> Candidates:
        """Return the distribution of candidates over the items of ``train``."""
        if self.exponent == 0:
            empty = np.zeros(0)
            return Candidates(empty, empty.astype(np.int32), train.n_items)
        threshold, alias = alias_table(popularity_weights(train.per_item, self.exponent))
        return Candidates(threshold, alias, train.n_items)


SAMPLERS: Registry[NegativeSampler] = Registry("negative sampler")
SAMPLERS.add("uniform", NegativeSampler("uniform candidates, all are negatives (UniS)", 0.0, ALL))
SAMPLERS.add("popularity", NegativeSampler("candidates by training frequency, all are negatives (PopS)", 1.0, ALL))
SAMPLERS.add(
    "two-stage",
    NegativeSampler(
        "candidates by training frequency, one that is similar to the positive is the negative (2stS)", 1.0, SIMILAR
    ),
)
SAMPLERS.add(
    "hard", NegativeSampler("uniform candidates, the one closest to the user is the negative (HarS)", 0.0, CLOSEST)
)
SAMPLERS.add(
    "partial-auc",
    NegativeSampler(
        "uniform candidates, the share of them that is closest to the user are negatives (one-way partial AUC)",
        0.0,
        HARDEST,
    ),
)


def popularity_weights(per_item: IntArray, exponent: float) -> FloatArray:
    """Return the weight of each item among the candidates: its training frequency to a power, and 0 if it has none.

    Where no item has a positive, all weights are 1. A user who likes all items with a weight gets negatives uniformly
    from the others, see `dpcml.kernels.sampling`.

    Examples
    --------
    >>> popularity_weights(np.array([4, 0, 1]), 0.5).tolist()
    [2.0, 0.0, 1.0]
    """
    if not per_item.any():
        return np.ones(len(per_item))
    weights = np.where(per_item > 0, np.maximum(per_item, 1).astype(np.float64) ** exponent, 0.0)
    return weights.astype(np.float32).astype(np.float64)  # the last bits of a power differ between processors


def alias_table(weights: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return thresholds and aliases for sampling in proportion to weights in constant time (Vose's method).

    To sample, draw an item uniformly and a number in [0, 1). Keep the item if the number is below its threshold, else
    take its alias.

    Examples
    --------
    >>> threshold, alias = alias_table(np.array([3.0, 1.0]))
    >>> threshold.tolist(), alias.tolist()
    ([1.0, 0.5], [0, 0])
    """
    n = len(weights)
    threshold = weights * (n / weights.sum())
    alias = np.arange(n, dtype=np.int32)
    small, large = list(np.flatnonzero(threshold < 1)[::-1]), list(np.flatnonzero(threshold >= 1)[::-1])
    while small and large:
        below, above = small.pop(), large[-1]
        alias[below] = above
        threshold[above] -= 1 - threshold[below]
        if threshold[above] < 1:
            small.append(large.pop())
    rest = np.array([*small, *large], dtype=np.int64)  # of rounding: their thresholds are 1, or nearly
    threshold[rest] = 1.0
    never = rest[weights[rest] == 0]  # a weight of 0 stays one, whatever rounding left
    threshold[never], alias[never] = 0.0, int(np.argmax(weights))
    return threshold, alias


def positives(train: Interactions, pull: float = 0.0) -> Positives:
    """Return the training positives in the form that kernels take, with a Bloom filter per user.

    A filter has 16 bits per positive, so that few non-positives need a binary search.
    """
    indptr, items = np.array(train.indptr), np.array(train.indices, dtype=np.int32)
    filters = np.zeros((train.n_positives >> 2) + train.n_users, dtype=np.uint64)  # see `words_of`
    fill_filters(indptr, items, filters)
    confidence = np.zeros(0, dtype=np.float32) if train.weights is None else np.array(train.confidence.data)
    return Positives(items, indptr, filters, attraction(train.per_item, pull), confidence)


def attraction(per_item: IntArray, pull: float) -> FloatArray:
    """Return the weight of each item's squared distance to users who like it, in the gradient: twice the pull.

    An item with few likes has learned little from hinges; what holds it is that it is near its users. So the weight
    falls with the number of likes: at `HALF_PULL` likes it is half as large.

    Examples
    --------
    >>> attraction(np.array([0, 50, 150]), 0.5).tolist()
    [1.0, 0.5, 0.25]
    """
    return np.asarray(2 * pull * HALF_PULL / (HALF_PULL + per_item), dtype=np.float32)


class BatchSampler:
    """Minibatches of shuffled positives with sampled negatives, for models that are not trained by the engine.

    Order and negatives depend on seed and epoch only.

    Parameters
    ----------
    train
        Positives to learn from.
    sampler
        Distribution of the negatives. Its ``choice`` is ignored: the model selects among the candidates itself.
    n_candidates
        Negatives per positive, S.
    batch_size
        Positives per batch.
    seed
        Seed of orders and negatives.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(6))
    >>> batches = list(BatchSampler(train, SAMPLERS["uniform"], 3, 4, seed=0).epoch(0))
    >>> [(users.shape, items.shape) for users, items in batches]
    [((4,), (4, 4)), ((2,), (2, 4))]
    >>> users, items = batches[0]
    >>> bool((items[:, 0] == users).all() and (items[:, 1:] != users[:, None]).all())
    True
    """

    def __init__(
        self, train: Interactions, sampler: NegativeSampler, n_candidates: int, batch_size: int, seed: int
    ) -> None:
        self.n_candidates, self.batch_size, self.seed = n_candidates, batch_size, seed
        self.n_items = train.n_items
        self._data = positives(train)
        self._order = Order(train.rows.astype(np.int32), self._data.items)
        self._candidates = sampler.candidates(train)
        self.n_batches = -(-len(self._data.items) // batch_size)

    def compile(self) -> None:
        """Compile the kernel, or load it from the cache on disk."""
        self._draw(np.zeros((0, 2), dtype=np.int32), np.uint64(0), 0)

    def epoch(self, number: int) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield each batch's users, shape (B,), and items, shape (B, 1 + S): the positive, then its negatives."""
        key = epoch_key(self.seed, number)
        order = self._order.draw(key)
        for first in range(0, len(order), self.batch_size):
            pairs = order[first : first + self.batch_size]
            yield pairs[:, 0], self._draw(pairs, key, first)

    def _draw(self, pairs: IntArray, key: np.uint64, first: int) -> IntArray:
        chosen = np.empty((len(pairs), 1 + self.n_candidates), dtype=np.int32)
        indices = np.arange(len(pairs), dtype=np.int32)
        sample_batch(self._data, self._candidates, key, first, pairs, indices, self.n_candidates, chosen)
        return chosen


def check_negatives(train: Interactions) -> None:
    """Raise a `DataError` if a user likes every item, so that no negative can be drawn.

    Examples
    --------
    >>> check_negatives(Interactions.from_csr(np.ones((1, 2))))
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: user 0 likes all 2 items: there is no negative to learn from; drop the user
    """
    full = np.flatnonzero(train.per_user == train.n_items)
    if len(full):
        user = train.user_ids[full[0]]
        raise DataError(
            f"user {user} likes all {train.n_items} items: there is no negative to learn from; drop the user"
        )
