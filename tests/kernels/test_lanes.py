import numpy as np
import pytest
from numba import njit

from dpcml.kernels.lanes import (
    LANES,
    fetch_to_read,
    fetch_to_write,
    fetch_word,
    load,
    padded,
    root,
    smaller,
    splat,
    store,
    total,
)


@njit
def compute(a, b, row, column, factor, out, sums):
    x, y = load(a, row, column), load(b, row, column)
    fetch_to_read(a, row + 1, column)
    fetch_to_write(a, row + 1, column)
    fetch_word(sums, 0)
    store(out, 0, 0, x + y)
    store(out, 1, 0, x - y)
    store(out, 2, 0, x * y)
    store(out, 3, 0, x / y)
    store(out, 4, 0, root(y))
    store(out, 5, LANES, splat(factor))
    store(out, 6, 3, x)
    store(out, 7, 0, splat(factor) * x + y)
    store(out, 8, 0, smaller(x, y))
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


def test_smaller_takes_the_second_where_one_is_no_number(results):
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
