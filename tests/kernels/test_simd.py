import numpy as np
import pytest
from numba import njit

from dpcml.kernels.lanes import LANES, padded
from dpcml.kernels.simd import items_at_once, nearest_distances
from dpcml.kernels.state import Table


@pytest.mark.parametrize(("n_vectors", "width"), [(1, 8), (2, 104), (3, 16), (5, 40), (8, 24), (11, 16)])
@pytest.mark.parametrize("groups", [2, 7])
def test_distances_are_those_of_numpy(n_vectors, width, groups):
    at_once = items_at_once(n_vectors)
    places = groups * at_once

    @njit
    def run(users, user, items, chosen, b, sums, near):
        nearest_distances(users, user, items, chosen, b, sums, near, n_vectors, width, at_once)

    rng = np.random.default_rng(n_vectors)
    rows = rng.standard_normal((4 * n_vectors, width)).astype(np.float32)
    users = Table(rows, (rows**2).sum(axis=1), rows)
    items = rng.standard_normal((9, width)).astype(np.float32)
    chosen = rng.integers(0, 9, (3, places)).astype(np.int32)
    sums = np.zeros((padded(places) * n_vectors, LANES), np.float32)
    near = np.full((1 + n_vectors, padded(places)), np.nan, np.float32)
    run(users, 2, items, chosen, 1, sums, near)
    mine = rows.reshape(4, n_vectors, width)[2].astype(float)
    expected = (mine**2).sum(axis=1)[:, None] - 2 * mine @ items[chosen[1]].T  # (vectors, places)
    np.testing.assert_allclose(near[1:, :places], expected, atol=1e-4)
    assert near[0].tolist() == near[1:].min(axis=0).tolist()


def test_registers_hold_all_sums_at_once():
    assert [items_at_once(n) for n in (1, 2, 3, 5, 8, 11)] == [4, 4, 3, 2, 1, 1]
