import numpy as np
import pytest
from scipy import sparse

from dpcml.retrieval import exact
from dpcml.retrieval.exact import Catalogue, best_by_distance, best_by_scores, nothing_seen, seen_of


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    users, items = rng.integers(-20, 20, (70, 3, 9)), rng.integers(-20, 20, (700, 9))  # exact in float32
    items[11] = items[5]  # a tie
    likes = sparse.csr_array(rng.random((70, 700)) < 0.05, dtype=np.float32)
    return users.astype(np.float32), items.astype(np.float32), likes


def scores_of(users, items):
    return -((users.astype(float)[:, :, None] - items.astype(float)) ** 2).sum(axis=3)  # (users, C, items)


def brute(scores, likes, n, columns):
    """Return positions by sorting: no seen items, only some columns, the lower position first."""
    found = np.full((len(scores), n), -1)
    for u, row in enumerate(scores):
        seen = set(likes[[u]].indices.tolist())
        mine = [i for i in columns if row[i] > -np.inf and i not in seen]
        mine = sorted(mine, key=lambda i: (-row[i], i))[:n]
        found[u, : len(mine)] = mine
    return found


@pytest.mark.parametrize("n", [1, 10, 700])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("tile", [exact.CROSS_BYTES, 4 * 256 * 50])
def test_the_nearest_are_found_whatever_the_tiles(world, monkeypatch, n, some, tile):
    users, items, likes = world
    monkeypatch.setattr(exact, "CROSS_BYTES", tile)
    columns, catalogue = np.arange(700), Catalogue.of(items)
    if some:
        columns = np.arange(3, 700, 7)
        catalogue = catalogue.only(columns)
    best, scores = best_by_distance(users, catalogue, n, seen_of(likes))
    truth = scores_of(users, items).max(axis=1)
    expected = brute(truth, likes, n, columns)
    there = best >= 0
    assert (scores[there] == np.take_along_axis(truth, expected, 1)[there]).all()
    assert np.isneginf(scores[~there]).all()
    assert (best == expected).all()


def test_of_equal_items_the_first_comes_first(world):
    _, items, _ = world
    best, _ = best_by_distance(items[[5]][:, None], Catalogue.of(items), 2, nothing_seen(1))
    assert best[0].tolist() == [5, 11]


def test_nobody_and_nothing():
    users, items = np.zeros((0, 2, 4), np.float32), np.zeros((5, 4), np.float32)
    assert best_by_distance(users, Catalogue.of(items), 3, nothing_seen(0))[0].shape == (0, 3)
    nothing = best_by_distance(np.zeros((2, 2, 4), np.float32), Catalogue.of(items[:0]), 3, nothing_seen(2))
    assert (nothing[0] == -1).all()


@pytest.mark.parametrize("n", [3, 600])
def test_best_by_scores_in_blocks(monkeypatch, n):
    rng = np.random.default_rng(1)
    scores = rng.integers(-50, 50, (9, 650)).astype(np.float32)
    likes = sparse.csr_array(rng.random((9, 650)) < 0.1, dtype=np.float32)
    monkeypatch.setattr(exact, "SCORE_BYTES", 4 * 650 * 2)
    allowed = rng.random(650) < 0.9
    best, values = best_by_scores(lambda a, b: scores[a:b], 9, n, seen_of(likes), allowed)
    expected = brute(np.where(allowed, scores.astype(float), -np.inf), likes, n, np.arange(650))
    assert (best == expected).all()
    assert np.isneginf(values[best < 0]).all()


@pytest.mark.parametrize(("n_users", "n_vectors", "dim", "n_items"), [(1, 1, 1, 1), (7, 5, 10, 30), (40, 2, 3, 11)])
def test_nearest_scores_match_all_distances(n_users, n_vectors, dim, n_items, monkeypatch):
    monkeypatch.setattr(exact, "NEAREST_BYTES", 4 * n_vectors * n_items * 3)  # several blocks of three users
    rng = np.random.default_rng(0)
    users = rng.standard_normal((n_users, n_vectors, dim), dtype=np.float32)
    items = rng.standard_normal((n_items, dim), dtype=np.float32)
    distances = ((users[:, :, None, :] - items) ** 2).sum(axis=-1)  # (users, vectors, items)
    np.testing.assert_allclose(exact.nearest_scores(users, items), -distances.min(axis=1), atol=1e-4)
