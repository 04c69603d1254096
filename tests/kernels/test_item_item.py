import numpy as np
import pytest
from scipy import sparse

from dpcml.kernels.item_item import best_first, cosine_neighbours, count_together, walk_sources


@pytest.fixture(params=range(5))
def likes(request):
    rng = np.random.default_rng(request.param)
    matrix = rng.random((25, 12)) < rng.uniform(0.05, 0.6)
    matrix[:, 3] = False  # an item nobody has
    return matrix


@pytest.mark.parametrize("weighted", [False, True])
def test_neighbours_are_the_largest_shrunk_cosines(likes, weighted):
    values = likes * np.random.default_rng(9).uniform(0.5, 3, likes.shape) if weighted else likes.astype(float)
    users, items = sparse.csr_array(values), sparse.csr_array(values.T)
    k, shrink = 4, 1.5
    neighbours = np.full((likes.shape[1], k), -1, dtype=np.int32)
    similarities = np.zeros((likes.shape[1], k), dtype=np.float32)
    together = values.T @ values
    counts = np.diag(together).copy()
    cosine_neighbours(
        users.indptr, users.indices, items.indptr, items.indices, users.data if weighted else np.zeros(0),
        items.data if weighted else np.zeros(0), counts, shrink, neighbours, similarities, 0, likes.shape[1],
    )  # fmt: skip
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


def walk(likes, k, user_weight, item_weight, penalty, ranges):
    by_user, by_item = sparse.csr_array(likes), sparse.csr_array(likes.T)
    sources = np.full((likes.shape[1], k), -1, dtype=np.int32)
    weights = np.zeros((likes.shape[1], k), dtype=np.float32)
    pairs = by_user.indptr, by_user.indices, by_item.indptr, by_item.indices
    for start, stop in ranges:
        walk_sources(*pairs, user_weight, item_weight, penalty, sources, weights, start, stop)
    return sources, weights


def test_sources_are_those_of_the_dense_product_whatever_the_ranges():
    rng = np.random.default_rng(0)
    likes = (rng.random((30, 12)) < 0.3).astype(float)
    users, items, penalty = rng.random(30), rng.random(12), rng.random(12)
    walks = (likes.T * users) @ likes * items[:, None] * penalty  # from row to column
    np.fill_diagonal(walks, 0)
    sources, weights = walk(likes, 4, users, items, penalty, [(0, 5), (5, 12)])
    for item in range(12):
        kept = sources[item] >= 0
        expected = np.argsort(-walks[:, item], kind="stable")[:4]
        expected = expected[walks[expected, item] > 0]
        assert sources[item, kept].tolist() == expected.tolist()
        np.testing.assert_allclose(weights[item, kept], walks[expected, item], rtol=1e-6)
        assert (weights[item, ~kept] == 0).all()


def test_ties_go_by_position():
    sources, _ = walk(np.ones((2, 5)), 3, np.ones(2), np.ones(5), np.ones(5), [(0, 5)])
    assert sources.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2]]


def test_weights_that_are_zero_are_no_neighbours():
    sources, weights = walk(np.ones((50, 5)), 3, np.zeros(50), np.ones(5), np.ones(5), [(0, 5)])
    assert (sources == -1).all()
    assert (weights == 0).all()


@pytest.mark.parametrize("n", [0, 1, 2, 7, 60])
def test_best_first_is_a_stable_sort_by_value(n):
    rng = np.random.default_rng(n)
    value = rng.integers(0, 9, 80) / 4  # many ties
    for k in {0, min(1, n), n // 2, n}:
        items = rng.permutation(80)[:n]
        expected = sorted(items, key=lambda item: (-value[item], item))[:k]
        every = set(items.tolist())
        best_first(items, n, k, value)
        assert items[:k].tolist() == expected
        assert set(items.tolist()) == every
