"""Pairs in order: the same as scipy makes of them, and the latest of a pair that repeats."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dpcml.data.csr import csr_of_pairs, distinct


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_same_as_scipy(kind: type[np.integer]) -> None:
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 30, 400).astype(kind), rng.integers(0, 40, 400).astype(kind)
    before = users.copy()
    indptr, indices, times = csr_of_pairs(users, items, (32, 41))
    expected = sparse.coo_array((np.ones(400), (users, items)), shape=(32, 41)).tocsr()
    expected.sort_indices()
    assert indptr.tolist() == expected.indptr.tolist()
    assert indices.tolist() == expected.indices.tolist()
    assert times is None
    assert users.tolist() == before.tolist()


def test_positions_too_large_for_32_bits_when_multiplied() -> None:
    many = 2**31 - 1
    users, items = np.array([3, 0], dtype=np.int32), np.array([many - 1, 5], dtype=np.int32)
    indptr, indices, _ = csr_of_pairs(users, items, (4, many))
    assert (indptr.tolist(), indices.tolist()) == ([0, 1, 1, 1, 2], [5, many - 1])


def test_the_latest_counts() -> None:
    users, items = np.array([0, 0, 0]), np.array([1, 1, 0])
    indptr, indices, times = csr_of_pairs(users, items, (1, 2), np.array([9.0, 4.0, 1.0]))
    assert (indptr.tolist(), indices.tolist()) == ([0, 2], [0, 1])
    assert times is not None
    assert times.tolist() == [1.0, 9.0]


def test_nothing() -> None:
    none = np.zeros(0, dtype=np.int64)
    indptr, indices, _ = csr_of_pairs(none, none, (2, 0))
    assert (indptr.tolist(), indices.tolist(), distinct(none).tolist()) == ([0, 0, 0], [], [])
