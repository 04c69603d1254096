"""EASE: a linear item-item model with a closed-form solution."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import lapack

from dpcml.data.interactions import Interactions
from dpcml.models.base import FromHistory
from dpcml.models.parameters import register
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import positive
from dpcml.utils.errors import DataError, ParameterError


@register("ease")
@dataclass(eq=False)
class EASE(FromHistory):
    """Predict a user's row of the matrix from itself, with a zero diagonal and a ridge penalty (Steck, 2019).

    With ``P = (X^T X + l2 I)^-1`` the weights are ``B_ij = -P_ij / P_jj`` off the diagonal; scores are ``X B``. The
    fit needs ``16 items^2`` bytes and time that grows with ``items^3``.

    Parameters
    ----------
    l2
        Ridge penalty; larger for denser data.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> EASE(l2=1.0).fit(likes).recommend(3, n=1)[0]
    array([1])
    """

    l2: float = 100.0

    def _check(self) -> None:
        positive("l2", self.l2)

    def _fit(self, train: Interactions, valid: Interactions | None) -> None:
        n = train.n_items
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if 16 * n * n > memory:
            raise DataError(
                f"EASE on {n:,} items needs about {16 * n * n / 2**30:.0f} GiB, this machine has {memory / 2**30:.0f}:"
                " drop rare items (core=...) or use itemknn"
            )
        gram = np.asfortranarray((train.csr.T @ train.csr).toarray(), dtype=np.float64)
        gram[np.diag_indices(n)] += self.l2
        factor, failed = lapack.dpotrf(gram, lower=0, overwrite_a=1)
        inverse, broken = lapack.dpotri(factor, lower=0, overwrite_c=1)
        if failed or broken:
            raise ParameterError(f"l2={self.l2!r}: too small for this data, the system cannot be solved; raise it")
        self.weights_ = _weights(inverse)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weights_": (self.check_fitted().n_items,) * 2}

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return np.asarray(likes @ self.weights_)

    def _similarity(self, columns: IntArray) -> FloatArray:
        return np.asarray(self.weights_[columns])


def _weights(inverse: FloatArray) -> FloatArray:
    """Return ``-P_ij / P_jj`` off the diagonal from the upper triangle of P; row: liked item, column: scored item."""
    n = len(inverse)
    diagonal = np.diag(inverse).copy()
    weights = np.empty((n, n), dtype=np.float32)
    for first in range(0, n, 1024):
        rows = slice(first, min(first + 1024, n))
        block = inverse[rows].copy()  # (1024, n), right of the diagonal only
        block[:, : rows.stop] = inverse[: rows.stop, rows].T
        corner = inverse[rows, rows]
        block[:, rows] = np.triu(corner) + np.triu(corner, 1).T
        weights[rows] = block / -diagonal
    weights[np.diag_indices(n)] = 0
    return weights
