"""A counter-based random generator: each number is a function of its key, whatever the thread or the restart."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def mix(x):
    """Hash 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def bits_of(key, position, draw):
    """Return the 64 random bits of draw number ``draw`` (below 2^20) at ``position`` of the epoch ``key``."""
    return mix(key + ((np.uint64(position) << np.uint64(20)) + np.uint64(draw) + np.uint64(1)) * GOLDEN)


@njit(inline="always")
def below(bits, n):
    """Return an integer below ``n`` (at most 2^32) from the upper half of 64 random bits."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(inline="always")
def uniform(bits):
    """Return a float64 in [0, 1) from 64 random bits."""
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def choose(weights, n, total, chance):
    """Return an index below ``n`` with probability ``weights[index] / total``, by inversion of ``chance`` in [0, 1)."""
    left = chance * total
    last = 0
    for s in range(n):
        if weights[s] > 0:
            last = s
            left -= weights[s]
            if left < 0:
                break
    return last


@cached_njit(**PLAIN)
def shuffle(values, starts, key):
    """Shuffle the values of each segment ``starts[g]:starts[g + 1]``, shorter than 2^32, in place (Fisher-Yates)."""
    segment_key = mix(key ^ GOLDEN)
    for group in range(len(starts) - 1):
        first = starts[group]
        for k in range(starts[group + 1] - 1, first, -1):
            other = first + below(mix(segment_key + np.uint64(k) * GOLDEN), k + 1 - first)
            values[k], values[other] = values[other], values[k]


def mixed(x: np.uint64) -> np.uint64:
    """Return what `mix` does, without compiling it.

    Examples
    --------
    >>> bool(mixed(np.uint64(1)) == mix(np.uint64(1)))
    True
    """
    with np.errstate(over="ignore"):
        return np.uint64(mix.py_func(x))


def epoch_key(seed: int, epoch: int) -> np.uint64:
    """Return the random key of an epoch.

    Examples
    --------
    >>> bool(epoch_key(0, 1) != epoch_key(1, 0))
    True
    """
    with np.errstate(over="ignore"):
        return mixed(mixed(np.uint64(seed % 2**64) + GOLDEN) + np.uint64(epoch) * GOLDEN)
