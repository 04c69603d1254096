import numpy as np
import pytest
from numba import njit

from dpcml.kernels.lanes import padded
from dpcml.kernels.simd import items_at_once, nearest_distances


@pytest.mark.parametrize(("n_vectors", "width"), [(1, 8), (2, 104), (3, 16), (5, 40), (8, 24), (11, 16)])
def test_distances_are_those_of_numpy(n_vectors, width):
    at_once, lanes = items_at_once(n_vectors), padded(n_vectors)

    @njit
    def run(users, user, squares, items, chosen, b, out):
        for first in range(0, chosen.shape[1], at_once):
            nearest_distances(users, user, squares, items, chosen, b, first, out, n_vectors, width, at_once)

    rng = np.random.default_rng(n_vectors)
    users = rng.standard_normal((4 * n_vectors, width)).astype(np.float32)
    items = rng.standard_normal((9, width)).astype(np.float32)
    squares = np.full((4, lanes), np.inf, np.float32)
    squares[:, :n_vectors] = (users**2).sum(axis=1).reshape(4, n_vectors)
    chosen = rng.integers(0, 9, (3, 2 * at_once)).astype(np.int32)
    out = np.full((2 * at_once, 1 + lanes), np.nan, np.float32)
    run(users, 2, squares.ravel(), items, chosen, 1, out)
    mine = users.reshape(4, n_vectors, width)[2].astype(float)
    expected = (mine**2).sum(axis=1) - 2 * items[chosen[1]] @ mine.T  # (places, vectors)
    np.testing.assert_allclose(out[:, 1 : 1 + n_vectors], expected, atol=1e-4)
    assert np.isposinf(out[:, 1 + n_vectors :]).all(), "lanes without a vector never win"
    assert out[:, 0].tolist() == out[:, 1:].min(axis=1).tolist()


def test_registers_hold_all_sums_at_once():
    assert [items_at_once(n) for n in (1, 2, 3, 5, 8, 11)] == [4, 4, 3, 2, 1, 1]
