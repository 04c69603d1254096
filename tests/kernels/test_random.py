import numpy as np
import pytest
from numba import njit
from scipy import stats

from dpcml.kernels.random import below, bits_of, epoch_key, uniform

KEY = epoch_key(0, 0)


@njit
def grid(key, positions, draws):
    out = np.empty((len(positions), len(draws)), np.uint64)
    for i, position in enumerate(positions):
        for j, draw in enumerate(draws):
            out[i, j] = bits_of(key, position, draw)
    return out


@njit
def uniforms(bits):
    return np.array([uniform(one) for one in bits])


@njit
def wholes(bits, n):
    return np.array([below(one, n) for one in bits])


def test_bits_are_those_of_the_formula(twin):
    found = grid(KEY, np.array([0, 1, 10**9]), np.array([0, 1, 1 << 19]))
    assert found.tolist() == [[twin.bits_of(KEY, p, d) for d in (0, 1, 1 << 19)] for p in (0, 1, 10**9)]


def test_no_two_draws_are_alike():
    keys = [epoch_key(seed, epoch) for seed in range(3) for epoch in range(3)]
    found = [grid(key, np.arange(2000), np.append(np.arange(30), 1 << 19)) for key in keys]
    assert len(np.unique(np.concatenate([one.ravel() for one in found]))) == 9 * 2000 * 31


@pytest.mark.parametrize("along", ["positions", "draws", "epochs"])
def test_draws_are_uniform_and_independent_along(along):
    n = 60_000
    if along == "epochs":
        bits = np.array([grid(epoch_key(7, epoch), np.arange(1), np.arange(1))[0, 0] for epoch in range(6000)])
    else:
        one, many = np.arange(1), np.arange(n)
        bits = grid(KEY, *((many, one) if along == "positions" else (one, many))).ravel()
    numbers = uniforms(bits)
    assert stats.chisquare(np.histogram(numbers, 50, (0, 1))[0]).pvalue > 1e-3
    pairs = np.histogram2d(numbers[:-1], numbers[1:], 8, [(0, 1), (0, 1)])[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-3
    for bit in (0, 31, 32, 63):
        ones = int((bits >> np.uint64(bit) & np.uint64(1)).sum())
        assert stats.binomtest(ones, len(bits)).pvalue > 1e-3


def test_numbers_are_in_their_ranges():
    bits = np.array([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1], dtype=np.uint64)
    assert uniforms(bits).min() == 0
    assert uniforms(bits).max() < 1
    for n in (1, 2, 7, 10**6, 2**32):
        found = wholes(bits, n)
        assert found.min() == 0
        assert found.max() == n - 1


@pytest.mark.parametrize("n", [3, 17])
def test_whole_numbers_have_equal_chances(n):
    bits = grid(KEY, np.arange(30_000), np.arange(1)).ravel()
    assert stats.chisquare(np.bincount(wholes(bits, n), minlength=n)).pvalue > 1e-3


def test_epochs_and_seeds_have_keys_of_their_own():
    seeds = [*range(60), 2**63, 2**64 - 1, 10**30]
    assert len({int(epoch_key(seed, epoch)) for seed in seeds for epoch in range(100)}) == len(seeds) * 100
