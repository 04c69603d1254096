"""Where vectors start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import FloatArray
from dpcml.utils.registry import Registry

Start = Callable[[Interactions, int, int, np.random.Generator], tuple[FloatArray, FloatArray]]
STARTS: Registry[Start] = Registry("start")


@STARTS.register("random")
def random_start(
    train: Interactions, n_vectors: int, dim: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw users from N(0, 0.01) and items from N(0, 1 / sqrt(d)), as the paper does.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(3))
    >>> users, items = random_start(train, 2, 4, np.random.default_rng(0))
    >>> users.shape, items.shape
    ((3, 2, 4), (3, 4))
    """
    users = rng.standard_normal((train.n_users, n_vectors, dim), dtype=np.float32)
    items = rng.standard_normal((train.n_items, dim), dtype=np.float32)
    users *= np.float32(0.01)
    items *= np.float32(1 / np.sqrt(dim))
    return users, items


@STARTS.register("spectral")
def spectral_start(
    train: Interactions, n_vectors: int, dim: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Place items by a truncated SVD of the degree-normalised matrix, users at the mean of their items.

    Singular values count to the power 0.5; items get norm 0.9, users norm 1; a little noise tells a user's vectors
    apart. It learns in fewer epochs than a random start and ends higher.

    Examples
    --------
    >>> train = Interactions.from_csr(np.kron(np.eye(2), np.ones((4, 3))))
    >>> users, items = spectral_start(train, 1, 2, np.random.default_rng(0))
    >>> near = ((users[0] - items) ** 2).sum(axis=1)
    >>> bool(near[:3].max() < near[3:].min())
    True
    """
    per_user, per_item = np.maximum(train.per_user, 1), np.maximum(train.per_item, 1)
    scaled = sparse.diags_array(per_user**-0.5) @ train.csr @ sparse.diags_array(per_item**-0.5)
    items = np.zeros((train.n_items, dim))
    found = _right_factor(scaled.tocsr(), min(dim, *scaled.shape), rng)
    items[:, : found.shape[1]] = found
    items = 0.9 * _unit(items) + 0.01 * rng.standard_normal(items.shape)
    centres = _unit(train.csr @ items)
    users = centres[:, None, :].astype(np.float32) + np.float32(0.03) * rng.standard_normal(
        (train.n_users, n_vectors, dim), dtype=np.float32
    )
    return users, items.astype(np.float32)


def _right_factor(matrix: sparse.csr_array, rank: int, rng: np.random.Generator, rounds: int = 6) -> FloatArray:
    """Return right singular vectors times the root of the singular values, by subspace iteration."""
    size = min(rank + 10, *matrix.shape)
    basis = rng.standard_normal((matrix.shape[1], size))
    for _ in range(rounds):
        basis, _ = np.linalg.qr(matrix.T @ (matrix @ basis))
    _, values, right = np.linalg.svd(matrix @ basis, full_matrices=False)
    return np.asarray((basis @ right[:rank].T) * np.sqrt(values[:rank]))


def _unit(rows: FloatArray) -> FloatArray:
    """Return rows of norm 1; rows of zeros stay zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12))
