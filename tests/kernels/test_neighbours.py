import numpy as np
import pytest
from scipy import sparse

from dpcml.kernels.neighbours import cosine_neighbours, count_together


@pytest.fixture(params=range(5))
def likes(request):
    rng = np.random.default_rng(request.param)
    matrix = rng.random((25, 12)) < rng.uniform(0.05, 0.6)
    matrix[:, 3] = False  # an item nobody has
    return matrix


def test_neighbours_are_the_largest_shrunk_cosines(likes):
    users, items = sparse.csr_array(likes), sparse.csr_array(likes.T)
    k, shrink = 4, 1.5
    neighbours = np.full((likes.shape[1], k), -1, dtype=np.int32)
    similarities = np.zeros((likes.shape[1], k), dtype=np.float32)
    cosine_neighbours(
        users.indptr, users.indices, items.indptr, items.indices, shrink, neighbours, similarities, 0, likes.shape[1]
    )
    together = likes.T.astype(float) @ likes
    counts = np.diag(together)
    expected = together / (np.sqrt(np.outer(counts, counts)) + shrink)
    np.fill_diagonal(expected, 0)
    for item, row in enumerate(expected):
        order = np.argsort(-row, kind="stable")[:k]
        order = order[row[order] > 0]
        assert neighbours[item, : len(order)].tolist() == order.tolist()
        assert (neighbours[item, len(order) :] == -1).all()
        np.testing.assert_allclose(similarities[item, : len(order)], row[order], rtol=1e-6)


def test_count_together_is_a_matrix_product(likes):
    items = sparse.csr_array(likes.T)
    first, second = (axis.ravel() for axis in np.indices((likes.shape[1],) * 2))
    together = np.zeros(len(first), dtype=np.int64)
    count_together(items.indptr, items.indices, first, second, together, 0, len(first))
    assert together.reshape(likes.shape[1], -1).tolist() == (likes.T.astype(int) @ likes).tolist()
