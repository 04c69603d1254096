import numpy as np
import pytest

from dpcml.models import vectors


@pytest.mark.parametrize(("n_users", "n_vectors", "dim", "n_items"), [(1, 1, 1, 1), (7, 5, 10, 30), (40, 2, 3, 11)])
def test_nearest_scores_match_all_distances(n_users, n_vectors, dim, n_items, monkeypatch):
    monkeypatch.setattr(vectors, "CROSS_BYTES", 4 * n_vectors * n_items * 3)  # several blocks of three users
    rng = np.random.default_rng(0)
    users = rng.standard_normal((n_users, n_vectors, dim), dtype=np.float32)
    items = rng.standard_normal((n_items, dim), dtype=np.float32)
    distances = ((users[:, :, None, :] - items) ** 2).sum(axis=-1)  # (users, vectors, items)
    np.testing.assert_allclose(vectors.nearest_scores(users, items), -distances.min(axis=1), atol=1e-4)
