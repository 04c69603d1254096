import numpy as np
import pytest

from dpcml.kernels.nearest import nearest_of_pairs


@pytest.mark.parametrize("shape", [(5, 1, 3), (5, 4, 8), (5, 3, 100)])
def test_the_nearest_vector_of_pairs_is_that_of_numpy(shape):
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=shape).astype(np.float32), rng.normal(size=(7, shape[2])).astype(np.float32)
    rows, columns = rng.integers(0, 5, 60), rng.integers(0, 7, 60)
    found = np.full(60, -1)
    nearest_of_pairs(users.reshape(-1, shape[2]), shape[1], items, rows, columns, found, 10, 50)
    expected = ((users[rows] - items[columns, None]) ** 2).sum(axis=2).argmin(axis=1)
    assert found[10:50].tolist() == expected[10:50].tolist()
    assert set(found[:10]) == set(found[50:]) == {-1}
