import numpy as np
import pytest
from scipy import sparse

from dpcml import Interactions
from dpcml.training.init import INITS, _right_factor


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


def test_spectral_start_of_users_and_items_without_positives():
    liked = np.zeros((5, 6))
    liked[0, 0] = liked[1, 1] = 1
    users, items = INITS["spectral"](Interactions.from_csr(liked), 2, 4, np.random.default_rng(0))
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
