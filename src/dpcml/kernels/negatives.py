"""Negatives: items that a user has not liked, drawn from a counter-based generator."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.lanes import fetch_word
from dpcml.kernels.options import OPTIONS
from dpcml.kernels.random import GOLDEN, below, bits_of, mix, unit

TRIES = 32  # before a negative is picked by counting instead of by trial


@njit(nogil=True, cache=True)
def fill_filters(indptr, items, filters):
    """Set, for each user, the two bits of every item that the user likes."""
    for user in range(len(indptr) - 1):
        first, n_words = words_of(indptr, user)
        for k in range(indptr[user], indptr[user + 1]):
            word, bits = _bits(items[k], n_words)
            filters[first + word] |= bits


@njit(cache=True, inline="always")
def words_of(indptr, user):
    """Return the first word of a user's filter and the number of words: one for four positives, and one or two more.

    They follow from where the positives are, because a list of their own would be one more random access to memory.
    """
    first = (indptr[user] >> 2) + user
    return first, (indptr[user + 1] >> 2) + user + 1 - first


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
    return filters[np.uint64(first + word)] & bits == bits


@njit(cache=True, inline="always")
def fetch_positives(data, user):
    """Ask for a user's filter and positives: all of what most users have, and where a search among many begins."""
    first, n_words = words_of(data.indptr, user)
    fetch_word(data.filters, first)
    fetch_word(data.filters, first + n_words - 1)
    fetch_word(data.items, data.indptr[user])
    fetch_word(data.items, (data.indptr[user] + data.indptr[user + 1]) >> 1)
    fetch_word(data.items, data.indptr[user + 1] - 1)


@njit(cache=True)
def is_positive(items, low, high, item):
    """Say whether an item is among ``items[low:high]``, which ascend.

    Half of what is left is given up without a branch: a processor guesses every second one wrong.
    """
    left = high - low
    while left > 1:
        half = left >> 1
        low += half if items[np.uint64(low + half)] <= item else 0
        left -= half
    return left > 0 and items[np.uint64(low)] == item


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
def _by_weight(candidates, item, bits):
    """Turn an item that was drawn with equal chances into one drawn with those of the alias table."""
    kept = unit(mix(bits ^ GOLDEN)) < candidates.threshold[item]
    return np.int64(item) if kept else np.int64(candidates.alias[item])


@njit
def _settle(data, candidates, user, item, bits):
    """Return the item if it is no positive of the user, else another one.

    Positives are rejected; a user who likes nearly everything gets, after `TRIES` rejections, one of the remaining
    items with equal chances.
    """
    items, low, high = data.items, data.indptr[user], data.indptr[user + 1]
    words, n_words = words_of(data.indptr, user)
    for _ in range(TRIES):
        if not (_perhaps(data.filters, words, n_words, item) and is_positive(items, low, high, item)):
            return item
        bits = mix(bits + GOLDEN)
        item = below(bits, candidates.n_items)
        if len(candidates.alias):
            item = _by_weight(candidates, item, bits)
    return nth_negative(items, low, high, below(mix(bits + GOLDEN), candidates.n_items - (high - low)))


@njit(**OPTIONS)
def draw_negatives(data, candidates, key, first, pairs, listed, low, high, n, chosen):
    """Write ``n`` items that the user does not like to ``chosen[k, 1:]``, for the positives ``low`` to ``high``.

    ``pairs[k]`` has user and item of a positive, ``first + listed[k]`` is its place in the epoch.

    Column 0 and those beyond the candidates hold the positive itself.
    """
    filters, indptr = data.filters, data.indptr
    for k in range(low, high):
        user, position, row = np.int64(pairs[k, 0]), np.int64(first + listed[k]), chosen[k]
        for place in range(len(row)):
            row[place] = pairs[k, 1]
        for s in range(n):  # a loop of its own: the compiler draws several at once
            row[1 + s] = below(bits_of(key, position, s), candidates.n_items)
        if len(candidates.alias):
            for s in range(n):
                row[1 + s] = _by_weight(candidates, row[1 + s], bits_of(key, position, s))
        words, n_words = words_of(indptr, user)
        for s in range(n):
            if _perhaps(filters, words, n_words, row[1 + s]):
                row[1 + s] = _settle(data, candidates, user, np.int64(row[1 + s]), bits_of(key, position, s))
