"""Initial vectors where users are shared out: those of the items once, those of users by their worker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.multi_interest import MultiInterest
from dpcml.training.init import between_clusters, spectral_items, spectrum_of, user_clusters
from dpcml.utils.arrays import FloatArray, IntArray, unit
from dpcml.utils.names import Registry

BLOCK = 2**16  # users at once: in double precision they take more memory than what is trained
NOISE = 0.03  # of the users' vectors, as in `dpcml.training.init`
SAMPLE, SAMPLE_PER_ITEM = 2**22, 16  # positives of the users by whom items start, at most the larger number


@dataclass(frozen=True)
class ItemInit:
    """How items start, and what users need to start."""

    init: str  # name in `INITIALIZERS`
    vectors: FloatArray  # (items, d)
    spectrum: FloatArray  # (items, coordinates); none for random vectors
    most: int  # vectors of a user, at most
    seed: int

    def users(self, train: Interactions, n_vectors: IntArray, rank: int) -> FloatArray:
        """Return initial vectors of the users of one worker; shape (users, most, d)."""
        rng = np.random.default_rng([self.seed, rank])
        found = np.empty((train.n_users, self.most, self.vectors.shape[1]), dtype=np.float32)
        for first in range(0, train.n_users, BLOCK):
            last = min(first + BLOCK, train.n_users)
            some = train.users_between(first, last)
            found[first:last] = INITIALIZERS[self.init].users(some, self, n_vectors[first:last], rng)
        return found


class Initializer(ABC):
    """Initial vectors of items from all users, and of users from their own positives; one for each name in `INITS`."""

    @abstractmethod
    def items(self, train: Interactions, dim: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return vectors and spectral coordinates of the items."""

    @abstractmethod
    def users(self, train: Interactions, init: ItemInit, n_vectors: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return vectors of some users."""


INITIALIZERS: Registry[Initializer] = Registry("initialisation on several workers")


class RandomInit(Initializer):
    """The distributions of ``init="random"``."""

    def items(self, train: Interactions, dim: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw the items."""
        return rng.standard_normal((train.n_items, dim)) / np.sqrt(dim), np.zeros((train.n_items, 0))

    def users(self, train: Interactions, init: ItemInit, n_vectors: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw the users."""
        shape = train.n_users, init.most, init.vectors.shape[1]
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.01)


class SpectralInit(Initializer):
    """Items and users of ``init="spectral"``."""

    def items(self, train: Interactions, dim: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the items at their spectral coordinates."""
        spectrum = spectrum_of(train, dim, rng)
        return spectral_items(spectrum, dim, rng), spectrum

    def users(self, train: Interactions, init: ItemInit, n_vectors: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return the users at the centres of their items, with noise that makes their vectors differ."""
        shape = train.n_users, init.most, init.vectors.shape[1]
        noise = rng.standard_normal(shape, dtype=np.float32)
        return np.asarray(self._centres(train, init, n_vectors).astype(np.float32) + np.float32(NOISE) * noise)

    def _centres(self, train: Interactions, init: ItemInit, n_vectors: IntArray) -> FloatArray:
        return unit(train.csr @ init.vectors)[:, None, :]


class ClusterInit(SpectralInit):
    """Items and users of ``init="clusters"``."""

    def _centres(self, train: Interactions, init: ItemInit, n_vectors: IntArray) -> FloatArray:
        return between_clusters(train, init.vectors, user_clusters(train, init.spectrum, n_vectors), init.most)


INITIALIZERS.add("random", RandomInit())
INITIALIZERS.add("spectral", SpectralInit())
INITIALIZERS.add("clusters", ClusterInit())


def init_items(model: MultiInterest, train: Interactions) -> ItemInit:
    """Return the start of the items, from a `sample` of the users."""
    rng = np.random.default_rng(model.random_state)
    vectors, spectrum = INITIALIZERS[model.init].items(train.take_users(sample(train)), model.trained_dim, rng)
    most = int(model.vector_counts(train.per_user).max(initial=1))
    return ItemInit(model.init, vectors, spectrum, most, model.random_state)


def sample(train: Interactions) -> IntArray:
    """Return rows of users by whom items start: every k-th, so that memory does not grow with the positives.

    Examples
    --------
    >>> sample(Interactions.from_csr(np.eye(3))).tolist()
    [0, 1, 2]
    """
    most = max(SAMPLE, SAMPLE_PER_ITEM * train.n_items)
    return np.arange(0, train.n_users, max(1, -(-train.n_positives // most)))
