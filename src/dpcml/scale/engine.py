"""`SharedEngine`: the training engine on a part of the users, in step with engines of the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.sampling import Candidates, Positives
from dpcml.scale.collective import ItemSync
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.samplers import alias_table, attraction, popularity_weights
from dpcml.utils.arrays import FloatArray, IntArray


class SharedEngine(Engine):
    """An engine whose items are shared with the engines of other users every so many batches.

    Parameters
    ----------
    train, user_vectors, item_vectors, config
        See `dpcml.training.engine.Engine`; of the users of this worker.
    per_item, mean_weight
        Positives of each item, and the mean of what weights count for (see `weight_mean`), of all users.
    sync
        How the items are shared.
    """

    def __init__(
        self,
        train: Interactions,
        user_vectors: FloatArray,
        item_vectors: FloatArray,
        config: TrainConfig,
        *,
        per_item: IntArray,
        mean_weight: float,
        sync: ItemSync,
    ) -> None:
        super().__init__(train, user_vectors, item_vectors, config)
        scale = np.float32(weight_mean(train) / mean_weight)
        data = self._data
        self._data = Positives(
            data.items, data.indptr, data.filters, attraction(per_item, config.pull), data.confidence * scale
        )
        if config.sampler.exponent:
            weights = popularity_weights(per_item, config.sampler.exponent)
            self._candidates = Candidates(*alias_table(weights), train.n_items)
        self._sync = sync

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive of this worker once."""
        self._sync.start(self.items)
        return super().epoch(number, rate, report)

    def _on_all_threads(self, run: Callable[[int, int], None]) -> None:
        """Run a range of batches, cut where items are exchanged; after the last, wait for workers that have more."""
        assert isinstance(run, partial)
        order, key, steps, begin, end, done = run.args
        every, last = self._sync.every, len(self._work.losses)
        while begin < end:
            stop = min(end, (begin // every + 1) * every)
            super()._on_all_threads(partial(run.func, order, key, steps, begin, stop, done))
            for _ in range(self._sync.rounds - (stop - 1) // every if stop == last else stop % every == 0):
                self._sync(self.items)
            begin = stop


def weight_mean(train: Interactions) -> float:
    """Return the mean by which `Interactions.confidence` divides, 1 without weights.

    Examples
    --------
    >>> weight_mean(Interactions.from_csr(np.eye(2)))
    1.0
    """
    return 1.0 if train.weights is None else float((1 + np.log1p(train.weights)).mean())
