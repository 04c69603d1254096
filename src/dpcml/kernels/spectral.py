"""Orthonormal bases and eigenvectors of small matrices, with the same bits on every processor.

BLAS and LAPACK sum in an order that depends on the processor. Here every sum has one order: inner loops run over
columns, which are independent of each other, so that the compiler may vectorise them without changing a bit.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.utils.arrays import FloatArray

DEPENDENT = 1e-11  # squared share of a column outside the span of those before it, from which on it is a direction
SWEEPS = 30  # of Jacobi rotations, at most; about eight are needed
SMALL = 1e-15  # an entry beside the diagonal that is smaller, relative to the trace, counts as zero


@cached_njit(**PLAIN)
def gram(rows, products, start, stop):
    """Write the rows ``start`` to ``stop`` of the inner products of all columns of a matrix.

    Parameters
    ----------
    rows
        The matrix, shape (n, k), float64.
    products
        Output of shape (k, k).
    """
    n, k = rows.shape
    for a in range(start, stop):
        for b in range(k):
            products[a, b] = 0
    for row in range(n):
        for a in range(start, stop):
            value = rows[row, a]
            for b in range(k):
                products[a, b] += value * rows[row, b]


def cholesky(products: FloatArray) -> FloatArray:
    """Return the upper triangle R with ``R^T R = products``; a column that depends on those before it has R_jj = 0.

    Examples
    --------
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    factor = np.zeros(products.shape)
    _cholesky(products, products.copy(), factor)
    return factor


@cached_njit(**PLAIN)
def _cholesky(products, left, factor):
    k = len(products)
    for i in range(k):
        if left[i, i] <= DEPENDENT * products[i, i]:
            continue
        root = np.sqrt(left[i, i])
        for j in range(i, k):
            factor[i, j] = left[i, j] / root
        for a in range(i + 1, k):
            value = factor[i, a]
            for j in range(a, k):
                left[a, j] -= value * factor[i, j]


@cached_njit(**PLAIN)
def divide_rows(rows, factor, start, stop):
    """Replace the rows ``start`` to ``stop`` of a matrix by ``rows R^-1``, where R is of `cholesky`.

    With the factor of the inner products of its columns this makes the columns orthonormal; those that depend on the
    columns before them become zero.
    """
    k = len(factor)
    for row in range(start, stop):
        for i in range(k):
            if factor[i, i] == 0:
                rows[row, i] = 0
                continue
            value = rows[row, i] / factor[i, i]
            rows[row, i] = value
            for j in range(i + 1, k):
                rows[row, j] -= value * factor[i, j]


@cached_njit(**PLAIN)
def combine_rows(rows, columns, combined, start, stop):
    """Add the rows ``start`` to ``stop`` of ``rows columns``, with columns of shape (k, m), to another matrix."""
    for row in range(start, stop):
        for i in range(len(columns)):
            value = rows[row, i]
            for j in range(combined.shape[1]):
                combined[row, j] += value * columns[i, j]


def eigenvectors(symmetric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, the largest first, and its eigenvectors as rows, by rotations.

    Cyclic Jacobi rotations turn the matrix into a diagonal one; a sweep goes through all pairs of coordinates.

    Examples
    --------
    >>> values, vectors = eigenvectors(np.array([[2.0, 0.0], [0.0, 3.0]]))
    >>> values.tolist(), vectors.tolist()
    ([3.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    left, vectors = symmetric.copy(), np.eye(len(symmetric))
    _diagonalise(left, vectors)
    values = np.diag(left)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[order]


@cached_njit(**PLAIN)
def _diagonalise(left, vectors):
    """Rotate a symmetric matrix until it is diagonal, and the vectors with it."""
    k = len(left)
    trace = 0.0
    for i in range(k):
        trace += left[i, i]
    small = SMALL * trace
    for _ in range(SWEEPS):
        rotated = False
        for p in range(k - 1):
            for q in range(p + 1, k):
                if abs(left[p, q]) <= small:
                    continue
                rotated = True
                theta = (left[q, q] - left[p, p]) / (2 * left[p, q])
                tangent = (1.0 if theta >= 0 else -1.0) / (abs(theta) + np.sqrt(theta * theta + 1))
                cosine = 1 / np.sqrt(tangent * tangent + 1)
                _rotate(left, p, q, cosine, tangent * cosine)
                for i in range(k):  # symmetric: columns p and q are what the rows have become
                    x, y = left[i, p], left[i, q]
                    left[i, p] = cosine * x - tangent * cosine * y
                    left[i, q] = tangent * cosine * x + cosine * y
                left[p, q] = left[q, p] = 0
                _rotate(vectors, p, q, cosine, tangent * cosine)
        if not rotated:
            break


@njit(**PLAIN)
def _rotate(matrix, p, q, cosine, sine):
    """Rotate two rows of a matrix."""
    for i in range(matrix.shape[1]):
        x, y = matrix[p, i], matrix[q, i]
        matrix[p, i] = cosine * x - sine * y
        matrix[q, i] = sine * x + cosine * y
