"""The map of items: popularity has no part in it, and what items are about stands apart."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dpcml import Interactions
from dpcml.retrieval import projection
from dpcml.retrieval.projection import ItemMap, project_items, without_popularity

N = 120


@pytest.fixture(scope="module")
def world():
    """Items of three groups, whose vectors mostly say how popular they are."""
    rng = np.random.default_rng(0)
    likes = rng.permutation(np.round(np.geomspace(2, 80, N))).astype(int)
    group = np.arange(N) % 3
    matrix = np.zeros((300, N))
    for item, count in enumerate(likes):
        own = np.where(np.arange(300) % 3 == group[item], 20.0, 1.0)  # a user likes the items of one group
        matrix[rng.choice(300, count, replace=False, p=own / own.sum()), item] = 1
    vectors = 0.3 * np.eye(3)[group] @ np.eye(3, 8) + rng.normal(0, 0.03, (N, 8))
    vectors[:, 7] += np.log(likes)
    return Interactions.from_csr(matrix), vectors.astype(np.float32), group


def correlations(found: ItemMap, train: Interactions) -> list[float]:
    likes = train.per_item[found.rows]
    return [abs(float(stats.spearmanr(found.places[:, axis], likes)[0])) for axis in (0, 1)]


def apart(found: ItemMap, group) -> float:
    """Return how often an item and its nearest neighbour on the map are of one group."""
    away = ((found.places[:, None] - found.places) ** 2).sum(axis=2)
    np.fill_diagonal(away, np.inf)
    return float((group[found.rows][away.argmin(axis=1)] == group[found.rows]).mean())


def test_popularity_has_no_part(world):
    train, vectors, group = world
    found = project_items(train, vectors)
    assert max(correlations(found, train)) < 0.1
    assert apart(found, group) > 0.95
    centered = vectors - vectors.mean(axis=0)
    first = np.linalg.svd(centered)[2][0]
    assert abs(stats.spearmanr(centered @ first, train.per_item)[0]) > 0.95, "it would be the first axis"
    np.testing.assert_array_equal(project_items(train, vectors).places, found.places)


def test_models_without_vectors(world):
    train, _, group = world
    found = project_items(train)
    assert found.place(np.zeros((1, 8))) is None
    assert max(correlations(found, train)) < 0.3
    assert apart(found, group) > 0.8


def test_umap_takes_over_where_it_is_installed(world, monkeypatch):
    train, vectors, _ = world
    given = {}

    class Layout:
        def __init__(self, **options):
            given.update(options)

        def fit_transform(self, values):
            given["norms"] = np.linalg.norm(values, axis=1)
            given["axes"] = max(abs(stats.spearmanr(column, likes)[0]) for column in values.T)
            popular = np.log1p(likes) + 0.3 * values[:, 1]  # a layout by popularity, after all
            given["layout"] = abs(stats.spearmanr(popular, likes)[0])
            return np.stack([values[:, 0], popular], axis=1)

    likes = np.sort(train.per_item)[::-1]
    monkeypatch.setattr(projection, "installed", lambda name: SimpleNamespace(UMAP=Layout))
    project_items(train, vectors)
    assert not given, "few items"
    monkeypatch.setattr(projection, "UMAP_FROM", 100)
    found = project_items(train, vectors)
    assert given["random_state"] == 0, "the same map each time"
    np.testing.assert_allclose(given["norms"], 1)
    assert given["axes"] < 0.3 < 0.9 < given["layout"]
    assert max(correlations(found, train)) < 0.3
    assert np.abs(found.places).max() <= 1


def test_small_and_degenerate_data():
    for n_items in (1, 2, 3):
        found = project_items(Interactions.from_csr(np.ones((2, n_items))), np.ones((n_items, 4)))
        assert found.places.shape == (n_items, 2)
        assert np.isfinite(found.places).all()
    assert without_popularity(np.zeros((0, 2)), np.zeros(0, int)).shape == (0, 2)
    likes = np.arange(1, 50)
    assert not without_popularity(3 + 2 * np.log1p(likes)[:, None], likes).any(), "no rounding is left"


def test_real_umap_is_what_is_called():
    umap = pytest.importorskip("umap")
    assert {"random_state", "n_jobs"} <= set(umap.UMAP.__init__.__code__.co_varnames)
