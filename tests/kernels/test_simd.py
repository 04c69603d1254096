import numpy as np
import pytest
from numba import njit

from dpcml.kernels.optimizer import EmbeddingTable
from dpcml.kernels.simd import (
    LANES,
    items_at_once,
    load,
    minimum,
    nearest_distances,
    padded,
    prefetch,
    prefetch_row,
    prefetch_row_for_write,
    splat,
    sqrt,
    store,
    total,
)


@njit
def compute(a, b, row, column, factor, out, sums):
    x, y = load(a, row, column), load(b, row, column)
    prefetch_row(a, row + 1, column)
    prefetch_row_for_write(a, row + 1, column)
    prefetch(sums, 0)
    store(out, 0, 0, x + y)
    store(out, 1, 0, x - y)
    store(out, 2, 0, x * y)
    store(out, 3, 0, x / y)
    store(out, 4, 0, sqrt(y))
    store(out, 5, LANES, splat(factor))
    store(out, 6, 3, x)
    store(out, 7, 0, splat(factor) * x + y)
    store(out, 8, 0, minimum(x, y))
    sums[0], sums[1] = total(x), total(x * y)


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((3, 40)).astype(np.float32), rng.uniform(0.5, 2, (3, 40)).astype(np.float32)
    out, sums = np.zeros((9, 16), np.float32), np.zeros(2, np.float32)
    compute(a, b, 1, 24, np.float32(2.5), out, sums)
    return a[1, 24:32], b[1, 24:32], out, sums


def test_operators_are_those_of_numpy(results):
    x, y, out, _ = results
    for row, expected in enumerate((x + y, x - y, x * y, x / y, np.sqrt(y))):
        assert out[row, :8].tolist() == expected.tolist()
        assert not out[row, 8:].any(), "nothing is written beyond eight numbers"


def test_store_begins_at_any_column(results):
    x, _, out, _ = results
    assert out[5].tolist() == [0] * 8 + [2.5] * 8
    assert out[6].tolist() == [0] * 3 + x.tolist() + [0] * 5


def test_product_and_sum_may_be_one_instruction(results):
    x, y, out, _ = results
    np.testing.assert_allclose(out[7, :8], 2.5 * x.astype(float) + y, rtol=1e-6)


def test_minimum_takes_the_second_where_one_is_no_number(results):
    x, y, out, _ = results
    assert out[8, :8].tolist() == np.minimum(x, y).tolist()
    for pair, expected in ((np.nan, 2.0), 2.0), ((2.0, np.nan), np.nan):
        a, b, found = (np.full((3, 16), value, np.float32) for value in (*pair, 0.0))
        compute(a, b, 0, 0, np.float32(1), wide := np.zeros((9, 16), np.float32), found[0])
        np.testing.assert_array_equal(wide[8, :8], expected)


def test_total_adds_by_halves(results):
    x, y, _, sums = results
    for values, found in ((x, sums[0]), (x * y, sums[1])):
        four = values[:4] + values[4:]
        two = four[:2] + four[2:]
        assert found == pytest.approx(two[0] + two[1], rel=1e-6)


def test_rows_are_whole_vectors():
    assert [padded(dim) for dim in (1, 7, 8, 9, 100, 128)] == [8, 8, 8, 16, 104, 128]


@pytest.mark.parametrize(("n_vectors", "width"), [(1, 8), (2, 104), (3, 16), (5, 40), (8, 24), (11, 16)])
@pytest.mark.parametrize("groups", [2, 7])
def test_distances_are_those_of_numpy(n_vectors, width, groups):
    at_once = items_at_once(n_vectors)
    places = groups * at_once

    @njit
    def run(users, user, items, chosen, b, sums, near):
        nearest_distances(users, user, items, chosen, b, sums, near, n_vectors, width, at_once)

    rng = np.random.default_rng(n_vectors)
    rows = rng.standard_normal((4 * n_vectors, width)).astype(np.float32)
    users = EmbeddingTable(rows, (rows**2).sum(axis=1), rows)
    items = rng.standard_normal((9, width)).astype(np.float32)
    chosen = rng.integers(0, 9, (3, places)).astype(np.int32)
    sums = np.zeros((padded(places) * n_vectors, LANES), np.float32)
    near = np.full((1 + n_vectors, padded(places)), np.nan, np.float32)
    run(users, 2, items, chosen, 1, sums, near)
    mine = rows.reshape(4, n_vectors, width)[2].astype(float)
    expected = (mine**2).sum(axis=1)[:, None] - 2 * mine @ items[chosen[1]].T  # (vectors, places)
    np.testing.assert_allclose(near[1:, :places], expected, atol=1e-4)
    assert near[0].tolist() == near[1:].min(axis=0).tolist()


def test_registers_hold_all_sums_at_once():
    assert [items_at_once(n) for n in (1, 2, 3, 5, 8, 11)] == [4, 4, 3, 2, 1, 1]
