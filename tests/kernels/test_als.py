import numpy as np
import pytest

from dpcml.kernels.als import WORK_ROWS, excess_errors, inner_products, solve_rows

L2 = 0.7


@pytest.fixture
def case():
    """Two rows with positives, one without, and vectors of width 16 for nine others, the last two coordinates 0."""
    rng = np.random.default_rng(0)
    others = rng.standard_normal((9, 16)).astype(np.float32)
    others[:, 14:] = 0
    indptr, liked = np.array([0, 3, 3, 8]), np.array([1, 4, 8, 0, 2, 3, 5, 7], dtype=np.int32)
    return indptr, liked, (1 + rng.random(8) * 5).astype(np.float32), others


def products_of(rows, splits=(5,)):
    products = np.full((rows.shape[1], rows.shape[1]), np.nan, dtype=np.float32)
    for start, stop in zip((0, *splits), (*splits, rows.shape[1]), strict=True):
        inner_products(rows, products, start, stop)
    return products


@pytest.mark.parametrize("n", [0, 1, 3, 4, 67, 200])
def test_inner_products_of_all_columns(n):
    rows = np.random.default_rng(n).standard_normal((n, 24)).astype(np.float32)
    np.testing.assert_allclose(products_of(rows), rows.T @ rows, atol=1e-4)
    assert products_of(rows).tobytes() == products_of(rows, (1, 20)).tobytes(), "however threads share the work"


def exact(indptr, liked, confidence, others, row):
    own = slice(indptr[row], indptr[row + 1])
    weights = np.ones(len(others))
    weights[liked[own]] = confidence[own]
    system = (others.T * weights) @ others + L2 * np.eye(others.shape[1])
    return np.linalg.solve(system, others[liked[own]].T @ confidence[own])


def test_enough_steps_solve_the_normal_equations(case):
    rows = np.full((3, 16), 0.5, dtype=np.float32)
    rows[:, 14:] = 0
    work = np.empty((WORK_ROWS, 16), dtype=np.float32)
    solve_rows(*case, products_of(case[3]), np.float32(L2), 40, rows, work, 0, 3)
    for row in (0, 2):
        np.testing.assert_allclose(rows[row], exact(*case, row), atol=1e-4)
    assert not rows[1].any(), "nothing is known of a row without positives"
    assert not rows[:, 14:].any(), "padding stays 0"


def test_each_step_is_one_of_conjugate_gradients(case):
    _, liked, confidence, others = case
    weights = np.ones(9)
    weights[liked[3:]] = confidence[3:]
    system = (others.T * weights) @ others + L2 * np.eye(16)
    x = np.zeros(16)
    residual = direction = others[liked[3:]].T @ confidence[3:] - system @ x
    for steps in (1, 2, 3):
        rate = residual @ residual / (direction @ system @ direction)
        x, before, residual = x + rate * direction, residual, residual - rate * system @ direction
        direction = residual + residual @ residual / (before @ before) * direction
        rows, work = np.zeros((3, 16), dtype=np.float32), np.empty((WORK_ROWS, 16), dtype=np.float32)
        solve_rows(*case, products_of(others), np.float32(L2), steps, rows, work, 2, 3)
        np.testing.assert_allclose(rows[2], x, atol=1e-4)
        assert not rows[:2].any(), "other rows are left alone"


def test_errors_of_positives(case):
    indptr, liked, confidence, others = case
    rows, errors = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32), np.full(3, np.nan)
    excess_errors(*case[:3], rows, others, errors, 0, 2)
    excess_errors(*case[:3], rows, others, errors, 2, 3)
    for row in range(3):
        own = slice(indptr[row], indptr[row + 1])
        scores = others[liked[own]] @ rows[row]
        assert errors[row] == pytest.approx(np.sum(confidence[own] * (1 - scores) ** 2 - scores**2), rel=1e-5)
