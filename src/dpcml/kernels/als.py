"""Alternating least squares: conjugate gradient steps for the vectors of one side, and the error of all pairs.

Sums over coordinates have the lanes of `simd`; all other sums have one order too, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.kernels.simd import LANES, load, multiply_add, splat, store, total

RESIDUAL, DIRECTION, PRODUCT, WORK_ROWS = 0, 1, 2, 3  # rows of the work array
ROWS_IN_CACHE = 64  # that are added to all inner products before the next ones
CONVERGED = 1e-20  # squared norm of a residual that needs no further step


@njit(inline="always")
def _dot(a, i, b, j):
    """Return the inner product of row ``i`` of one array and row ``j`` of another."""
    sums = splat(np.float32(0))
    for k in range(0, a.shape[1], LANES):
        sums = multiply_add(load(a, i, k), load(b, j, k), sums)
    return total(sums)


@njit(inline="always")
def _add(target, i, factor, source, j):
    """Add a multiple of row ``j`` of one array to row ``i`` of another."""
    factors = splat(factor)
    for k in range(0, target.shape[1], LANES):
        store(target, i, k, multiply_add(factors, load(source, j, k), load(target, i, k)))


@njit(inline="always")
def _add_four(target, i, p, q, r, s, source, j):
    """Add multiples of four rows from ``j`` on: half the loads and stores of one row after the other."""
    first, second, third, fourth = splat(p), splat(q), splat(r), splat(s)
    for k in range(0, target.shape[1], LANES):
        value = multiply_add(first, load(source, j, k), load(target, i, k))
        value = multiply_add(second, load(source, j + 1, k), value)
        value = multiply_add(third, load(source, j + 2, k), value)
        store(target, i, k, multiply_add(fourth, load(source, j + 3, k), value))


@cached_njit(**PLAIN)
def inner_products(rows, products, start, stop):
    """Write the rows ``start`` to ``stop`` of the inner products of all columns of a matrix.

    Parameters
    ----------
    rows
        The matrix, shape (n, width), float32, padded with zeros to whole lanes.
    products
        Output of shape (width, width).
    """
    n = len(rows)
    for a in range(start, stop):
        for k in range(products.shape[1]):
            products[a, k] = 0
    for first in range(0, n, ROWS_IN_CACHE):
        last = min(first + ROWS_IN_CACHE, n)
        whole = last - (last - first) % 4
        for a in range(start, stop):
            for row in range(first, whole, 4):
                _add_four(products, a, rows[row, a], rows[row + 1, a], rows[row + 2, a], rows[row + 3, a], rows, row)
            for row in range(whole, last):
                _add(products, a, rows[row, a], rows, row)


@njit(**PLAIN)
def _apply(gram, l2, others, liked, confidence, first, last, work):
    """Write ``(Y^T C Y + l2 I) v`` into the product, where v is the direction and C the confidence of all items."""
    width = work.shape[1]
    for k in range(width):
        work[PRODUCT, k] = l2 * work[DIRECTION, k]
    for j in range(0, width, 4):
        p, q, r, s = work[DIRECTION, j], work[DIRECTION, j + 1], work[DIRECTION, j + 2], work[DIRECTION, j + 3]
        _add_four(work, PRODUCT, p, q, r, s, gram, j)
    for t in range(first, last):
        item = liked[t]
        _add(work, PRODUCT, (confidence[t] - np.float32(1)) * _dot(others, item, work, DIRECTION), others, item)


@cached_njit(**PLAIN)
def solve_rows(indptr, liked, confidence, others, gram, l2, steps, rows, work, start, stop):
    """Improve vectors of one side by conjugate gradient steps, from where they are, with the other side fixed.

    The vector x of a row minimises ``sum_i c_i (p_i - x . y_i)^2 + l2 |x|^2`` over all i, where p is 1 and c the
    confidence of the row's positives, 0 and 1 for all others. A row without positives becomes 0.

    Parameters
    ----------
    indptr, liked, confidence
        CSR of the positives of each row, int64 and int32, and their confidence, float32.
    others
        Vectors of the other side, shape (others, width), padded with zeros to whole lanes.
    gram
        Their inner products ``Y^T Y``, shape (width, width).
    l2
        Ridge penalty, float32.
    steps
        Conjugate gradient steps, at most.
    rows
        Vectors of this side, shape (rows, width); those from ``start`` to ``stop`` change.
    work
        Buffer of shape (`WORK_ROWS`, width).
    """
    width = rows.shape[1]
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        if first == last:
            for k in range(width):
                rows[row, k] = 0
            continue
        for k in range(width):
            work[DIRECTION, k] = rows[row, k]
            work[RESIDUAL, k] = 0
        _apply(gram, l2, others, liked, confidence, first, last, work)
        for p in range(first, last):
            _add(work, RESIDUAL, confidence[p], others, liked[p])
        for k in range(width):
            work[RESIDUAL, k] -= work[PRODUCT, k]
            work[DIRECTION, k] = work[RESIDUAL, k]
        square = _dot(work, RESIDUAL, work, RESIDUAL)
        for _ in range(steps):
            if square < CONVERGED:
                break
            _apply(gram, l2, others, liked, confidence, first, last, work)
            rate = square / _dot(work, DIRECTION, work, PRODUCT)
            _add(rows, row, rate, work, DIRECTION)
            _add(work, RESIDUAL, -rate, work, PRODUCT)
            before, square = square, _dot(work, RESIDUAL, work, RESIDUAL)
            share = square / before
            for k in range(width):
                work[DIRECTION, k] = work[RESIDUAL, k] + share * work[DIRECTION, k]


@cached_njit(**PLAIN)
def excess_errors(indptr, liked, confidence, rows, others, errors, start, stop):
    """Write per row by how much its positives change the sum of the squares of all its scores.

    A positive of score s costs ``c (1 - s)^2`` instead of ``s^2``.

    Parameters
    ----------
    errors
        Output of shape (rows,), float64.
    """
    for row in range(start, stop):
        error = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            score = _dot(rows, row, others, liked[p])
            error += confidence[p] * (1 - score) ** 2 - score**2
        errors[row] = error
