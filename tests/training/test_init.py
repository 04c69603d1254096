import numpy as np
import pytest
from scipy import sparse

from dpcml import Interactions
from dpcml.data.synthetic import planted
from dpcml.training.init import CLUSTER_DIM, INITS, LEAN, _right_factor, spectrum_of, user_clusters


@pytest.mark.parametrize("name", list(INITS))
@pytest.mark.parametrize(("n_vectors", "dim"), [(1, 1), (3, 7), (2, 200)])
def test_shapes_and_types(likes, name, n_vectors, dim):
    users, items = INITS[name](likes, n_vectors, dim, np.random.default_rng(0))
    assert users.shape == (likes.n_users, n_vectors, dim)
    assert items.shape == (likes.n_items, dim)
    assert users.dtype == items.dtype == np.float32
    assert np.isfinite(users).all()
    assert np.isfinite(items).all()
    assert np.abs(items).min() >= 0
    assert len(np.unique(users.reshape(-1, dim), axis=0)) == likes.n_users * n_vectors, "no two vectors are the same"


@pytest.mark.parametrize("name", list(INITS))
def test_same_generator_same_bits(likes, name):
    one, same, other = (INITS[name](likes, 2, 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (one[0] == same[0]).all()
    assert (one[1] == same[1]).all()
    assert (one[0] != other[0]).any()


def test_random_start_has_the_scales_of_the_paper():
    train = Interactions.from_csr(np.eye(300))
    users, items = INITS["random"](train, 4, 100, np.random.default_rng(0))
    assert users.std() == pytest.approx(0.01, rel=0.02)
    assert items.std() == pytest.approx(0.1, rel=0.02)
    assert abs(users.mean()) < 1e-4


def test_spectral_start_puts_users_near_their_items(likes):
    users, items = INITS["spectral"](likes, 3, 8, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(items, axis=1), 0.9, atol=0.1)
    np.testing.assert_allclose(np.linalg.norm(users, axis=2), 1, atol=0.25)
    distance = ((users[:, :, None] - items) ** 2).sum(axis=3).min(axis=1)
    liked = likes.csr.toarray() > 0
    assert distance[liked].mean() < 0.7 * distance[~liked].mean()


@pytest.mark.parametrize("name", ["spectral", "clusters"])
def test_start_of_users_and_items_without_positives(name):
    liked = np.zeros((5, 6))
    liked[0, 0] = liked[1, 1] = 1
    users, items = INITS[name](Interactions.from_csr(liked), 2, 4, np.random.default_rng(0))
    assert np.isfinite(users).all()
    assert np.isfinite(items).all()


def test_factor_spans_the_leading_singular_vectors():
    rng = np.random.default_rng(0)
    values = np.array([9.0, 5.0, 3.0, *[0.1] * 27])
    left, right = (np.linalg.qr(rng.standard_normal((n, 30)))[0] for n in (50, 40))
    found = _right_factor(sparse.csr_array((left * values) @ right.T), 3, rng)
    assert found.shape == (40, 3)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), np.sqrt(values[:3]), rtol=1e-4)
    np.testing.assert_allclose(np.abs(found.T @ right[:, :3]), np.diag(np.sqrt(values[:3])), atol=1e-2)


def test_clusters_are_found_in_the_leading_coordinates_but_the_first(likes):
    points = spectrum_of(likes, 20, np.random.default_rng(0))
    counts = np.full(likes.n_users, 3)
    found = user_clusters(likes, points, counts)
    other = points.copy()
    other[:, 0] = np.random.default_rng(1).standard_normal(len(points))
    other[:, 1 + CLUSTER_DIM :] = 7.0
    assert (user_clusters(likes, other, counts) == found).all()
    assert set(found.tolist()) == {0, 1, 2}


def test_cluster_start_lies_between_the_mean_of_all_items_and_of_a_cluster(likes):
    counts = 1 + np.arange(likes.n_users) % 4
    rng = np.random.default_rng(0)
    users, items = INITS["clusters"](likes, counts, 8, rng)
    assert users.shape == (likes.n_users, 4, 8)
    owner = user_clusters(likes, spectrum_of(likes, 8, np.random.default_rng(0)), counts)

    def unit(row):
        return row / np.linalg.norm(row)

    for user in range(likes.n_users):
        own, vectors = items[likes.of(user)], owner[likes.indptr[user] : likes.indptr[user + 1]]
        mean = unit(own.sum(axis=0))
        for c in set(vectors.tolist()):
            centre = unit((1 - LEAN) * mean + LEAN * unit(own[vectors == c].sum(axis=0)))
            np.testing.assert_allclose(users[user, c], centre, atol=0.15)  # noise has a deviation of 0.03
        assert vectors.max() < counts[user]


def test_cluster_start_separates_interests_better_than_the_spectral_one():
    """Of pairs of a user's items, those of one planted category are more often nearest to one vector."""
    world = planted(200, 120, seed=4)
    data, category = world.data, np.array([str(world.data.items.attributes.of(i)) for i in range(120)])

    def agreement(name):
        users, items = INITS[name](data, 3, 16, np.random.default_rng(0))
        same, other = [], []
        for user in range(data.n_users):
            own = data.of(user)
            owner = ((users[user][:, None] - items[own]) ** 2).sum(axis=2).argmin(axis=0)
            pairs = owner[:, None] == owner
            alike = category[own][:, None] == category[own]
            off = ~np.eye(len(own), dtype=bool)
            same.extend(pairs[alike & off])
            other.extend(pairs[~alike & off])
        return np.mean(same) - np.mean(other)

    assert agreement("clusters") > agreement("spectral") + 0.1


def test_clusters_have_the_same_bits_on_any_number_of_threads(likes, monkeypatch):
    def start(threads):
        monkeypatch.setenv("DPCML_THREADS", str(threads))
        return INITS["clusters"](likes, 1 + np.arange(likes.n_users) % 4, 8, np.random.default_rng(0))

    users, items = start(1)
    for threads in (2, 3, 5):
        for one, other in zip(start(threads), (users, items), strict=True):
            assert (one == other).all()
