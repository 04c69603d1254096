"""Clusters of users' items against a twin in plain NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from dpcml import Interactions
from dpcml.kernels.clusters import cluster_users

ROUNDS = 10


@pytest.fixture(scope="module")
def liked():
    """30 users, the first without an item, the second with one, the third with all; 25 items."""
    rng = np.random.default_rng(0)
    likes = rng.random((30, 25)) < rng.uniform(0.1, 0.9, (30, 1))
    likes[0], likes[1], likes[2] = False, np.arange(25) == 3, True
    return Interactions.from_csr(likes)


@pytest.fixture(scope="module")
def points():
    rows = np.random.default_rng(1).standard_normal((25, 4))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def clusters(data, points, counts, rounds=ROUNDS, cuts=()):
    owner = np.full(data.n_positives, 99)
    edges = [0, *cuts, data.n_users]
    for start, stop in pairwise(edges):
        cluster_users(data.indptr, data.indices, points, counts, rounds, owner, start, stop)
    return owner


def by_twin(points, k, rounds):
    """Return the clusters of one user's items, written from the definition."""
    k = min(k, len(points))
    if k <= 1:
        return np.zeros(len(points), int)
    mean = points.sum(axis=0)
    centres = [mean / np.linalg.norm(mean)]
    for _ in range(1, k):
        nearest = (points @ np.array(centres).T).max(axis=1)
        centres.append(points[nearest.argmin()])
    centres = np.array(centres)
    for _ in range(rounds):
        owner = (points @ centres.T).argmax(axis=1)
        for c in set(owner.tolist()):
            summed = points[owner == c].sum(axis=0)
            centres[c] = summed / np.linalg.norm(summed)
    owner = (points @ centres.T).argmax(axis=1)
    order = np.argsort(-np.bincount(owner, minlength=k), kind="stable")
    return np.argsort(order)[owner]


@pytest.mark.parametrize("rounds", [0, 1, ROUNDS])
@pytest.mark.parametrize("most", [1, 2, 5, 40])
def test_clusters_are_those_of_the_twin(liked, points, most, rounds):
    counts = 1 + np.arange(liked.n_users) * 7 % most
    found = clusters(liked, points, counts, rounds)
    for user in range(liked.n_users):
        mine = slice(liked.indptr[user], liked.indptr[user + 1])
        assert found[mine].tolist() == by_twin(points[liked.of(user)], counts[user], rounds).tolist()


def test_the_largest_cluster_comes_first(liked, points):
    found = clusters(liked, points, np.full(liked.n_users, 4))
    for user in range(liked.n_users):
        sizes = np.bincount(found[liked.indptr[user] : liked.indptr[user + 1]], minlength=4)
        assert (np.diff(sizes) <= 0).all()


def test_shares_of_the_users_give_the_same(liked, points):
    counts = np.full(liked.n_users, 3)
    assert (clusters(liked, points, counts) == clusters(liked, points, counts, cuts=(1, 2, 11, 29))).all()


def test_planted_groups_are_found():
    """Two directions with noise: no cluster holds items of both."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 2, 40)
    rows = np.eye(5)[group] + 0.1 * rng.standard_normal((40, 5))
    data = Interactions.from_csr(np.ones((1, 40)))
    found = clusters(data, rows / np.linalg.norm(rows, axis=1, keepdims=True), np.array([2]))
    assert len({*zip(found.tolist(), group.tolist(), strict=True)}) == 2
