"""Initial vectors of users and items."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import FloatArray, unit
from dpcml.utils.registry import Registry

Init = Callable[[Interactions, int, int, np.random.Generator], tuple[FloatArray, FloatArray]]
INITS: Registry[Init] = Registry("initialisation")


@INITS.register("random")
def random_init(
    train: Interactions, n_vectors: int, dim: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw users from N(0, 0.01) and items from N(0, 1 / sqrt(d)), as the paper does.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(3))
    >>> users, items = random_init(train, 2, 4, np.random.default_rng(0))
    >>> users.shape, items.shape
    ((3, 2, 4), (3, 4))
    """
    users = rng.standard_normal((train.n_users, n_vectors, dim), dtype=np.float32)
    items = rng.standard_normal((train.n_items, dim), dtype=np.float32)
    users *= np.float32(0.01)
    items *= np.float32(1 / np.sqrt(dim))
    return users, items


@INITS.register("spectral")
def spectral_init(
    train: Interactions, n_vectors: int, dim: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Initialise items by a truncated SVD of the degree-normalised matrix, users at the mean of their items.

    Singular vectors are scaled by the square roots of the singular values. Items have norm 0.9, users norm 1. Gaussian
    noise makes a user's vectors differ. Training from here needs fewer epochs than from random vectors and reaches
    better accuracy.

    Examples
    --------
    >>> train = Interactions.from_csr(np.kron(np.eye(2), np.ones((4, 3))))
    >>> users, items = spectral_init(train, 1, 2, np.random.default_rng(0))
    >>> near = ((users[0] - items) ** 2).sum(axis=1)
    >>> bool(near[:3].max() < near[3:].min())
    True
    """
    per_user, per_item = np.maximum(train.per_user, 1), np.maximum(train.per_item, 1)
    scaled = sparse.diags_array(per_user**-0.5) @ train.csr @ sparse.diags_array(per_item**-0.5)
    items = np.zeros((train.n_items, dim))
    factor = _right_factor(scaled.tocsr(), min(dim, *scaled.shape), rng)
    items[:, : factor.shape[1]] = factor
    items = 0.9 * unit(items) + 0.01 * rng.standard_normal(items.shape)
    means = unit(train.csr @ items)
    users = means[:, None, :].astype(np.float32) + np.float32(0.03) * rng.standard_normal(
        (train.n_users, n_vectors, dim), dtype=np.float32
    )
    return users, items.astype(np.float32)


def _right_factor(matrix: sparse.csr_array, rank: int, rng: np.random.Generator, rounds: int = 6) -> FloatArray:
    """Return right singular vectors times the square roots of the singular values, by subspace iteration."""
    size = min(rank + 10, *matrix.shape)
    basis = rng.standard_normal((matrix.shape[1], size))
    for _ in range(rounds):
        basis, _ = np.linalg.qr(matrix.T @ (matrix @ basis))
    _, values, right = np.linalg.svd(matrix @ basis, full_matrices=False)
    return np.asarray((basis @ right[:rank].T) * np.sqrt(values[:rank]))
