"""Batches of positives with their negatives, for models that are trained outside the engine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.drawing import drawing_kernel
from dpcml.kernels.random import epoch_key
from dpcml.training.order import Order
from dpcml.training.samplers import Sampler, positives
from dpcml.utils.arrays import IntArray


class Draws:
    """Deals the positives out in batches, each with negatives of its own; a function of seed and epoch only.

    Parameters
    ----------
    train
        Positives to learn from.
    sampler
        Where negatives come from; choosing among them is left to the model.
    n_candidates
        Negatives per positive, S.
    batch_size
        Positives per batch.
    seed
        Of orders and negatives.

    Examples
    --------
    >>> from dpcml.training.samplers import SAMPLERS
    >>> train = Interactions.from_csr(np.eye(6))
    >>> batches = list(Draws(train, SAMPLERS["uniform"], 3, 4, seed=0).epoch(0))
    >>> [(users.shape, items.shape) for users, items in batches]
    [((4,), (4, 4)), ((2,), (2, 4))]
    >>> users, items = batches[0]
    >>> bool((items[:, 0] == users).all() and (items[:, 1:] != users[:, None]).all())
    True
    """

    def __init__(self, train: Interactions, sampler: Sampler, n_candidates: int, batch_size: int, seed: int) -> None:
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
        listed = np.arange(len(pairs), dtype=np.int32)
        drawing_kernel()(self._data, self._candidates, key, first, pairs, listed, self.n_candidates, chosen)
        return chosen
