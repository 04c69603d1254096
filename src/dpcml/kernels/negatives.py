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
def is_positive(items, indptr, filters, filter_start, filter_size, user, item):
    """Say whether the user likes the item: one bit for most that are not liked, a search for the rest."""
    bit = _bit(item, filter_size[user])
    found = (filters[filter_start[user] + (bit >> 6)] >> np.uint64(bit & 63)) & np.uint64(1) != 0
    if found:
        low, high = indptr[user], indptr[user + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if items[middle] < item:
                low = middle + 1
            else:
                high = middle
        found = low < end and items[low] == item
    return found


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


@njit(cache=True, inline="always")
def draw_negatives(data, candidates, key, order, first, start, stop, n, chosen):
    """Write ``n`` items that the user does not like to ``chosen[b, 1:]``, for some positives b of a batch.

    Positives are rejected; a user who likes nearly everything gets, after `TRIES` rejections, one of the remaining
    items with equal chances. Column 0 and those beyond the candidates hold the positive itself.
    """
    users, items, indptr = data.users, data.items, data.indptr
    filters, filter_start, filter_size = data.filters, data.filter_start, data.filter_size
    threshold, alias, n_items = candidates.threshold, candidates.alias, candidates.n_items
    for b in range(start, stop):
        user = users[order[first + b]]
        for s in range(chosen.shape[1]):
            chosen[b, s] = items[order[first + b]]
        for s in range(n):
            bits = bits_of(key, first + b, s)
            tries = 0
            item = _candidate(threshold, alias, n_items, bits)
            while is_positive(items, indptr, filters, filter_start, filter_size, user, item):
                bits = mix(bits + GOLDEN)
                tries += 1
                if tries < TRIES:
                    item = _candidate(threshold, alias, n_items, bits)
                else:
                    low, high = indptr[user], indptr[user + 1]
                    item = nth_negative(items, low, high, below(bits, n_items - (high - low)))
            chosen[b, 1 + s] = item
