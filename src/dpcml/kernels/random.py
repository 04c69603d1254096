"""Random numbers without state: a number is a function of its key, so threads and restarts cannot change it."""

from __future__ import annotations

import numpy as np
from numba import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, inline="always")
def mix(x):
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def bits_of(key, position, draw):
    """Return the 64 bits that belong to draw number ``draw`` (below 2^20) at ``position`` of the epoch ``key``."""
    return mix(key + ((np.uint64(position) << np.uint64(20)) + np.uint64(draw) + np.uint64(1)) * GOLDEN)


@njit(cache=True, inline="always")
def below(bits, n):
    """Turn the upper half of 64 bits into a whole number below ``n`` (at most 2^32)."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def unit(bits):
    """Turn 64 bits into a number in [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def shuffle(values, starts, key):
    """Put the values from each start to the next, fewer than 2^32, into a random order (Fisher and Yates)."""
    own = mix(key ^ GOLDEN)
    for group in range(len(starts) - 1):
        first = starts[group]
        for k in range(starts[group + 1] - 1, first, -1):
            other = first + below(mix(own + np.uint64(k) * GOLDEN), k + 1 - first)
            values[k], values[other] = values[other], values[k]


def epoch_key(seed: int, epoch: int) -> np.uint64:
    """Return the key of an epoch's draws.

    Examples
    --------
    >>> bool(epoch_key(0, 1) != epoch_key(1, 0))
    True
    """
    with np.errstate(over="ignore"):
        first = mix(np.uint64(seed % 2**64) + GOLDEN)
        return np.uint64(mix(np.uint64(first) + np.uint64(epoch) * GOLDEN))
