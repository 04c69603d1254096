import numpy as np
import pytest

from dpcml.kernels.spectral import cholesky, combine_rows, divide_rows, eigenvectors, gram


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((40, 7))


def gram_of(rows):
    products = np.empty((rows.shape[1], rows.shape[1]))
    gram(rows, products, 0, 3)
    gram(rows, products, 3, rows.shape[1])
    return products


def test_inner_products_of_all_columns(rows):
    np.testing.assert_allclose(gram_of(rows), rows.T @ rows, atol=1e-12)


def test_division_by_the_factor_makes_columns_orthonormal_with_the_same_span(rows):
    before, factor = rows.copy(), cholesky(gram_of(rows))
    np.testing.assert_allclose(factor.T @ factor, before.T @ before, atol=1e-12)
    divide_rows(rows, factor, 0, 25)
    divide_rows(rows, factor, 25, 40)
    np.testing.assert_allclose(rows.T @ rows, np.eye(7), atol=1e-12)
    np.testing.assert_allclose(rows @ (rows.T @ before), before, atol=1e-12)


def test_a_column_that_depends_on_others_becomes_zero(rows):
    rows[:, 3] = rows[:, 0] - 2 * rows[:, 2]
    rows[:, 5] = 0
    divide_rows(rows, cholesky(gram_of(rows)), 0, 40)
    there = np.array([1.0, 1, 1, 0, 1, 0, 1])
    np.testing.assert_allclose(rows.T @ rows, np.diag(there), atol=1e-10)


def test_eigenvectors_of_a_symmetric_matrix_largest_first(rows):
    symmetric = rows.T @ rows
    values, vectors = eigenvectors(symmetric)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric)[::-1], rtol=1e-12)
    np.testing.assert_allclose(vectors @ symmetric @ vectors.T, np.diag(values), atol=1e-10)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(7), atol=1e-12)


@pytest.mark.parametrize("symmetric", [np.zeros((3, 3)), np.eye(4), np.ones((5, 5)), np.array([[2.0]])])
def test_eigenvalues_that_are_equal_or_zero(symmetric):
    values, vectors = eigenvectors(symmetric)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric)[::-1], atol=1e-12)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(symmetric)), atol=1e-12)


def test_combined_columns(rows):
    weights = np.random.default_rng(1).standard_normal((4, 7))
    combined = np.zeros((40, 4))
    combine_rows(rows, np.ascontiguousarray(weights.T), combined, 0, 11)
    combine_rows(rows, np.ascontiguousarray(weights.T), combined, 11, 40)
    np.testing.assert_allclose(combined, rows @ weights.T, atol=1e-12)
