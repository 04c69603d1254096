"""Negatives: items that a user has not liked, drawn from a counter-based generator."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.random import GOLDEN, below, bits_of, mix, unit

TRIES = 32  # before a negative is picked by counting instead of by trial


@njit(nogil=True, cache=True)
def fill_filters(indptr, items, filters, filter_start, filter_size):
    """Set, for each user, the bit of every item that the user likes."""
    for user in range(len(indptr) - 1):
        for k in range(indptr[user], indptr[user + 1]):
            bit = _bit(items[k], filter_size[user])
            filters[filter_start[user] + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@njit(cache=True, inline="always")
def _bit(item, size):
    return np.int64(((np.uint64(item) * np.uint64(0x9E3779B1)) & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - size))


@njit(cache=True, inline="always")
def _perhaps(filters, start, size, item):
    """Say whether the bit of an item is set; where it is not, the user does not like the item."""
    bit = _bit(item, size)
    return (filters[start + (bit >> 6)] >> np.uint64(bit & 63)) & np.uint64(1) != 0


@njit(cache=True)
def is_positive(items, low, high, item):
    """Say whether an item is among ``items[low:high]``, which ascend."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low < end and items[low] == item


@njit(cache=True)
def nth_negative(items, start, end, n):
    """Return the n-th position, from 0, that is not among ``items[start:end]``."""
    low, high = start, end
    while low < high:  # the first positive that has more than n non-positives before it
        middle = (low + high) >> 1
        if items[middle] - (middle - start) <= n:
            low = middle + 1
        else:
            high = middle
    return n + (low - start)


@njit(cache=True, inline="always")
def _candidate(threshold, alias, n_items, bits):
    """Turn bits into an item: equal chances, or those of the alias table."""
    item = below(bits, n_items)
    if len(alias) and unit(mix(bits ^ GOLDEN)) >= threshold[item]:
        item = np.int64(alias[item])
    return item


@njit(cache=True)
def _settle(items, low, high, threshold, alias, n_items, item, bits):
    """Return the item if it is no positive, else another one.

    Positives are rejected; a user who likes nearly everything gets, after `TRIES` rejections, one of the remaining
    items with equal chances.
    """
    for _ in range(TRIES):
        if not is_positive(items, low, high, item):
            return item
        bits = mix(bits + GOLDEN)
        item = _candidate(threshold, alias, n_items, bits)
    return nth_negative(items, low, high, below(mix(bits + GOLDEN), n_items - (high - low)))


@njit(cache=True, inline="always")
def draw_negatives(data, candidates, key, first, pairs, own, count, n, chosen):
    """Write ``n`` items that the user does not like to ``chosen[b, 1:]``, for the positives b in ``own[:count]``.

    ``pairs`` has user and item of each positive, ``first`` is the place of the first in the epoch.

    Column 0 and those beyond the candidates hold the positive itself.
    """
    items, indptr = data.items, data.indptr
    filters, filter_start, filter_size = data.filters, data.filter_start, data.filter_size
    threshold, alias, n_items = candidates.threshold, candidates.alias, candidates.n_items
    for k in range(count):
        b = own[k]
        user, positive = np.int64(pairs[b, 0]), pairs[b, 1]
        words, size = filter_start[user], filter_size[user]
        chosen[b, 0] = positive
        for s in range(n):
            bits = bits_of(key, first + b, s)
            item = _candidate(threshold, alias, n_items, bits)
            if _perhaps(filters, words, size, item):
                item = _settle(items, indptr[user], indptr[user + 1], threshold, alias, n_items, item, bits)
            chosen[b, 1 + s] = item
        for s in range(1 + n, chosen.shape[1]):
            chosen[b, s] = positive
