"""Collectives between workers, and how they share the item vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpcml.kernels.optimizer import EmbeddingTable
from dpcml.utils.arrays import Array, FloatArray
from dpcml.utils.packages import require

POWER = 0.5  # of the number of workers that have moved an item, by which their movements are divided
MEET_SECONDS = 600  # that a worker waits for the others at the start; Ray's own 30 are too few on a busy machine


class LostWorkerError(RuntimeError):
    """A worker of the group is gone, so that the others cannot go on."""


class Group(Protocol):
    """Workers that train one model together."""

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""

    @property
    def size(self) -> int:
        """Number of workers."""

    def sum(self, values: Array) -> Array:
        """Replace the values by their sum over all workers, the same bits on each, and return them."""


def largest(group: Group, value: int) -> int:
    """Return the largest of the workers' values.

    Examples
    --------
    >>> largest(Alone(), 7)
    7
    """
    all_values = np.zeros(group.size, dtype=np.int64)
    all_values[group.rank] = value
    return int(group.sum(all_values).max())


@dataclass(frozen=True)
class Alone:
    """The only worker.

    Examples
    --------
    >>> Alone().sum(np.arange(2)).tolist()
    [0, 1]
    """

    rank: int = 0
    size: int = 1

    def sum(self, values: Array) -> Array:
        """Return the values."""
        return values


class RayGroup:
    """Workers on Ray that reduce with `ray.util.collective`, by gloo of PyTorch.

    Gloo adds in an order that depends on rank and size only: the same values give the same bits.

    Parameters
    ----------
    rank, size
        Of this worker, and workers.
    name
        Of the group; a new one for each start of the workers.
    """

    def __init__(self, rank: int, size: int, name: str) -> None:
        require("torch", "ray")
        self._collective: Any = require("ray.util.collective", "ray")
        self.rank = rank
        self.size = size
        self._name = name
        try:
            self._collective.init_collective_group(
                size, rank, backend="gloo", group_name=name, gloo_timeout=1000 * MEET_SECONDS
            )
        except (RuntimeError, TimeoutError) as error:
            raise LostWorkerError(f"worker {rank} did not find the others ({error})") from None

    def sum(self, values: Array) -> Array:
        """Add the values of all workers in place."""
        try:
            self._collective.allreduce(values, group_name=self._name)
        except RuntimeError as error:  # gloo's word on a connection that was closed
            raise LostWorkerError(f"worker {self.rank} lost the connection to another one ({error})") from None
        return values


class ItemSync:
    """Shares item vectors: after some batches, each worker gets the movements of all.

    The movements of an item since the last time are added up and divided by a power of the number of workers that have
    moved it. A mean (power 1) slows down what the workers learn, a sum (power 0) overshoots where they move an item in
    the same direction; the root is between. The moments of the optimizer stay with the worker.

    Parameters
    ----------
    group
        The workers.
    every
        Batches between two times.
    n_batches
        Batches of this worker in an epoch.
    on_sphere
        Items stay on the unit sphere, else in the ball.
    power
        Of the number of workers.
    """

    def __init__(self, group: Group, every: int, n_batches: int, on_sphere: bool, power: float = POWER) -> None:
        self.every = every
        powers = np.maximum(np.arange(group.size + 1), 1).astype(np.float64) ** power
        self._divisors = powers.astype(np.float32)  # the last bits of a power differ between processors
        self.rounds = largest(group, -(-n_batches // every))
        self._group, self._on_sphere = group, on_sphere
        self._before = np.zeros((0, 0), dtype=np.float32)

    def start(self, items: EmbeddingTable) -> None:
        """Begin an epoch, with the same vectors on all workers."""
        self._before = items.vectors.copy()

    def __call__(self, items: EmbeddingTable) -> None:
        """Replace the vectors by those of all workers together."""
        n_items, width = items.vectors.shape
        moved = np.empty((n_items, width + 1), dtype=np.float32)
        np.subtract(items.vectors, self._before, out=moved[:, :width])
        moved[:, width] = moved[:, :width].any(axis=1)
        self._group.sum(moved)
        movers = moved[:, width].astype(np.int64)
        items.vectors[...] = self._before + moved[:, :width] / self._divisors[movers][:, None]
        items.squares[...] = project(items.vectors, self._on_sphere)
        self._before[...] = items.vectors


def project(vectors: FloatArray, on_sphere: bool) -> FloatArray:
    """Put vectors onto the unit sphere or into the ball, in place, and return their squared norms.

    Examples
    --------
    >>> vectors = np.array([[3.0, 4.0], [0.0, 0.5]], dtype=np.float32)
    >>> project(vectors, False).round(2).tolist(), vectors.round(2).tolist()
    ([1.0, 0.25], [[0.6..., 0.8...], [0.0, 0.5]])
    """
    squares: FloatArray = np.einsum("rd,rd->r", vectors, vectors)
    far = np.flatnonzero(squares > (0 if on_sphere else 1))
    vectors[far] /= np.sqrt(squares[far])[:, None]
    squares[far] = 1
    return squares
