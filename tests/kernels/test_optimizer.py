import numpy as np
import pytest
from numba import njit

from dpcml.kernels.optimizer import EmbeddingTable, update_by_adagrad, update_by_adam
from dpcml.training.engine import MOMENTS
from dpcml.training.engine import _optimizer_steps as steps_of

ROWS, WIDTH = 12, 16


@njit(error_model="numpy")
def adam(table, slots, touched, gradients, count, steps, k_th, on_sphere):
    update_by_adam(table, slots, touched, gradients, count, steps, k_th, on_sphere, WIDTH)


@njit(error_model="numpy")
def adagrad(table, slots, touched, gradients, count, steps, k_th, on_sphere):
    update_by_adagrad(table, slots, touched, gradients, count, steps, k_th, on_sphere, WIDTH)


STEPS = {"adam": adam, "adagrad": adagrad}


def table_of(rows, optimizer):
    return EmbeddingTable(rows, (rows**2).sum(axis=1), np.zeros((ROWS, MOMENTS[optimizer] * WIDTH), np.float32))


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
@pytest.mark.parametrize("on_sphere", [False, True])
def test_steps_are_those_of_plain_numpy(twin, optimizer, on_sphere):
    """All rows share one clock, whether a step touches them or not."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal((ROWS, WIDTH)) * 0.2
    table = table_of(start.astype(np.float32), optimizer)
    rows, state = start.copy(), (np.zeros_like(start), np.zeros_like(start), np.zeros((), int))
    slots = np.full(ROWS, -1, np.int32)
    ever = np.zeros(ROWS, bool)
    for k in range(1, 31):
        chosen = np.flatnonzero(rng.random(ROWS) < np.linspace(0.05, 0.9, ROWS))
        rng.shuffle(chosen)
        gradients = (rng.standard_normal((ROWS, WIDTH)) * 10.0 ** rng.integers(-3, 2)).astype(np.float32)
        slots[chosen] = np.arange(len(chosen))
        STEPS[optimizer](
            table,
            slots,
            chosen.astype(np.int32),
            gradients,
            len(chosen),
            steps_of(optimizer, 0.1),
            k,
            on_sphere,
        )
        dense = np.zeros_like(start)
        dense[chosen] = gradients[: len(chosen)]
        touched = np.isin(np.arange(ROWS), chosen)
        ever |= touched
        twin.step(rows, dense, touched, state, 0.1, on_sphere, optimizer)
        assert (slots == -1).all(), "slots are free again"
    np.testing.assert_allclose(table.vectors, rows, atol=2e-5)
    norms = np.linalg.norm(table.vectors, axis=1)[ever]
    assert norms.max() == pytest.approx(1, abs=1e-5), "the rate is large enough to meet the border"
    assert (norms > 1 - 1e-5).all() == on_sphere
    np.testing.assert_allclose(table.squares, (table.vectors**2).sum(axis=1), atol=1e-5)


def test_first_step_of_adam_has_the_length_of_the_rate():
    """Without the bias correction it would be a third of it."""
    table = table_of(np.zeros((ROWS, WIDTH), np.float32), "adam")
    gradients = np.array([[1e-3, -5.0] * 8], np.float32)
    adam(table, np.zeros(ROWS, np.int32), np.array([4], np.int32), gradients, 1, steps_of("adam", 0.01), 1, False)
    np.testing.assert_allclose(table.vectors[4], [-0.01, 0.01] * 8, rtol=1e-4)
    assert not np.delete(table.vectors, 4, axis=0).any()


def test_batches_beyond_the_table_of_rates_take_the_last():
    steps = steps_of("adam", 0.01)
    assert steps.rate[-1] == pytest.approx(0.01)
    assert steps.epsilon[-1] == pytest.approx(1e-8)
    table = table_of(np.zeros((ROWS, WIDTH), np.float32), "adam")
    ones = np.ones((1, WIDTH), np.float32)
    adam(table, np.zeros(ROWS, np.int32), np.array([0], np.int32), ones, 1, steps, 10**6, False)
    np.testing.assert_allclose(table.vectors[0], -0.01 * 0.1 / np.sqrt(0.001), rtol=1e-4)


def test_zero_gradient_and_zero_vector_stay_finite():
    table = table_of(np.zeros((ROWS, WIDTH), np.float32), "adagrad")
    adagrad(
        table,
        np.zeros(ROWS, np.int32),
        np.array([0], np.int32),
        np.zeros((1, WIDTH), np.float32),
        1,
        steps_of("adagrad", 0.1),
        1,
        False,
    )
    assert not table.vectors.any()
