"""Negatives: items that a user has not liked, drawn from a counter-based generator."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.options import OPTIONS
from dpcml.kernels.random import GOLDEN, below, bits_of, mix, unit

TRIES = 32  # before a negative is picked by counting instead of by trial


@njit(nogil=True, cache=True)
def fill_filters(indptr, items, filters, filter_start):
    """Set, for each user, the two bits of every item that the user likes."""
    for user in range(len(indptr) - 1):
        first = filter_start[user]
        for k in range(indptr[user], indptr[user + 1]):
            word, bits = _bits(items[k], filter_start[user + 1] - first)
            filters[first + word] |= bits


@njit(cache=True, inline="always")
def _bits(item, n_words):
    """Return the word that an item has among a user's words, and its two bits in there."""
    spread = np.uint64(item) * GOLDEN
    one, other = (spread >> np.uint64(20)) & np.uint64(63), (spread >> np.uint64(26)) & np.uint64(63)
    return below(spread, n_words), (np.uint64(1) << one) | (np.uint64(1) << other)


@njit(cache=True, inline="always")
def _perhaps(filters, first, n_words, item):
    """Say whether the bits of an item are set; where they are not, the user does not like the item."""
    word, bits = _bits(item, n_words)
    return filters[first + word] & bits == bits


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


@njit
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


@njit(**OPTIONS)
def draw_negatives(data, candidates, key, first, pairs, listed, low, high, n, chosen):
    """Write ``n`` items that the user does not like to ``chosen[k, 1:]``, for the positives ``low`` to ``high``.

    ``pairs[k]`` has user and item of a positive, ``first + listed[k]`` is its place in the epoch.

    Column 0 and those beyond the candidates hold the positive itself.
    """
    items, indptr = data.items, data.indptr
    filters, filter_start = data.filters, data.filter_start
    threshold, alias, n_items = candidates.threshold, candidates.alias, candidates.n_items
    for k in range(low, high):
        user, positive = np.int64(pairs[k, 0]), pairs[k, 1]
        words, n_words = filter_start[user], filter_start[user + 1] - filter_start[user]
        chosen[k, 0] = positive
        for s in range(n):
            bits = bits_of(key, first + listed[k], s)
            item = _candidate(threshold, alias, n_items, bits)
            if _perhaps(filters, words, n_words, item):
                item = _settle(items, indptr[user], indptr[user + 1], threshold, alias, n_items, item, bits)
            chosen[k, 1 + s] = item
        for s in range(1 + n, chosen.shape[1]):
            chosen[k, s] = positive
