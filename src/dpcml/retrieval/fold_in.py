"""Fold-in: vectors of a new user by the objective of training, with fixed item vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dpcml.kernels import fold_in as kernel
from dpcml.kernels.gradients import Objective
from dpcml.kernels.mining import CLOSEST, SIMILAR
from dpcml.kernels.optimizer import OptimizerSteps
from dpcml.kernels.random import epoch_key
from dpcml.utils.arrays import FloatArray, IntArray, unit
from dpcml.utils.errors import DataError

ROUNDS = 5  # of k-means
RATE = 0.01  # of the first step
LEAN = 0.4  # how far vectors start from the mean of all liked items towards those of their groups


@dataclass(frozen=True, eq=False)
class FoldIn:
    """Hyper-parameters of fold-in.

    Parameters
    ----------
    objective
        Numbers of the training's objective.
    n_candidates, n_negatives
        Candidates per liked item, S, and how many of them become negatives.
    choice
        Which candidates are negatives, see `dpcml.kernels.mining`.
    attraction
        Weight of each item's own squared distance if it is liked, see `dpcml.training.samplers.attraction`; none by
        default.
    weights
        Relative chances of items as candidates; all alike by default.
    seed
        Of the draws, the same for everybody.
    steps, rate
        Full-batch steps of Adam, and the first rate, which falls to 0. They were chosen on the validation parts of
        Steam-200k and MovieLens-100k.
    pool
        Items from which all negatives of a person are drawn.
    """

    objective: Objective
    n_candidates: int
    n_negatives: int = 1
    choice: int = CLOSEST
    attraction: FloatArray | None = None
    weights: FloatArray | None = None
    seed: int = 0
    steps: int = 40
    rate: float = RATE
    pool: int = 512

    def vectors(self, items: FloatArray, liked: IntArray, n_vectors: int) -> FloatArray:
        """Return the vectors of a user who likes some items.

        Parameters
        ----------
        items
            Vectors of all items, of shape (items, d), float32.
        liked
            Positions of the liked items, at least one, each once.
        n_vectors
            Vectors of the user, C.

        Returns
        -------
        FloatArray
            Shape (C, d); the same items give the same bits, in whatever order they come.

        Examples
        --------
        >>> films = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
        >>> objective = Objective(*np.float32([1, 0, 1, 1]), False, True, False, 4)
        >>> ann = FoldIn(objective, n_candidates=3).vectors(films, np.array([0, 1, 7]), 2)
        >>> bool(((ann @ films.T).max(axis=0)[[3, 9]] > (ann @ films.T).max(axis=0)[[12, 17]] + 0.5).all())
        True
        """
        liked = np.sort(liked)
        pool = self._pool(liked, len(items))
        mine, others = items[liked], items[pool]
        vectors = start_vectors(mine, n_vectors)
        similar = _similarity(mine, others) if self.choice == SIMILAR else np.zeros((0, 0), dtype=np.float32)
        key, steps = epoch_key(self.seed, 0), _steps(self.steps, self.rate)
        learned = np.concatenate([mine, others]).astype(np.float32, copy=False)
        drawn = np.zeros(len(liked), np.float32) if self.attraction is None else self.attraction[liked]
        kernel.fold_in(
            vectors, learned, drawn, similar, key, self.n_candidates, self.n_negatives, self.choice, self.objective,
            steps,
        )  # fmt: skip
        return vectors

    def _pool(self, liked: IntArray, n_items: int) -> IntArray:
        """Return items that are not liked: all of them, or as many as the pool holds."""
        if len(liked) >= n_items:
            raise DataError(f"all {n_items} items are liked: there is no negative left to learn from")
        rng = np.random.default_rng((self.seed, 1))
        if self.weights is not None:
            total = self.weights.cumsum()
            drawn = np.searchsorted(total, rng.random(2 * self.pool) * total[-1], side="right")
        elif n_items <= 2 * self.pool:
            drawn = rng.permutation(n_items)
        else:
            drawn = rng.integers(n_items, size=2 * self.pool)
        pool = drawn[~np.isin(drawn, liked)][: self.pool]
        return pool if len(pool) else np.setdiff1d(np.arange(n_items), liked)[: self.pool]


def start_vectors(liked: FloatArray, n_vectors: int) -> FloatArray:
    """Return initial unit vectors, between the mean of the liked items and the means of clusters of them.

    Groups are those of spherical k-means with a fixed start: the first centre is the mean direction; each further one
    starts at the item that all others are farthest from.

    Parameters
    ----------
    liked
        Vectors of the liked items, shape (items, d).
    n_vectors
        How many centres; where items are fewer, some centres are the same.

    Examples
    --------
    >>> liked = np.array([[1, 0], [0.9, 0], [0, 1]], dtype=np.float32)
    >>> np.round(start_vectors(liked, 2).astype(float), 2).tolist()
    [[0.96, 0.28], [0.63, 0.78]]
    """
    directions = unit(liked)
    mean = centres = unit(directions.mean(axis=0, keepdims=True))
    while len(centres) < n_vectors:
        nearest = (directions @ centres.T).max(axis=1)
        centres = np.concatenate([centres, directions[[nearest.argmin()]]])
    for _ in range(ROUNDS):
        owner = (directions @ centres.T).argmax(axis=1)
        sums = (owner == np.arange(n_vectors)[:, None]).astype(np.float32) @ directions
        there = np.abs(sums).max(axis=1) > 1e-6
        centres = np.where(there[:, None], unit(sums), centres)
    return np.ascontiguousarray(unit((1 - LEAN) * mean + LEAN * centres), dtype=np.float32)


def _similarity(liked: FloatArray, pool: FloatArray) -> FloatArray:
    """Return the chances of two-stage sampling: the inverse density of cosines above 0 on the sphere."""
    cosines = unit(liked) @ unit(pool).T
    power = (liked.shape[1] - 3) / 2
    logs = np.where(cosines > 0, -power * np.log(np.maximum(1 - cosines**2, 1e-6)), -np.inf)
    highest = logs.max(axis=1, keepdims=True)
    return np.asarray(np.exp(logs - np.where(np.isfinite(highest), highest, 0)), dtype=np.float32)


@cache
def _steps(count: int, rate: float) -> OptimizerSteps:
    """Return Adam's steps, with a rate that falls to 0."""
    return OptimizerSteps.adam(rate * (1 - np.arange(count) / max(count, 1)), np.arange(1, count + 1))
