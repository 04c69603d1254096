"""Sampling of negative candidates: items that are no training positives of the user."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit
from dpcml.kernels.random import GOLDEN, below, bits_of, mix, uniform
from dpcml.kernels.simd import prefetch
from dpcml.utils.arrays import FloatArray, IntArray

TRIES = 32  # rejections before a negative is drawn by its rank among the non-positives


class Positives(NamedTuple):
    """Training positives as a CSR, and a Bloom filter per user that rules out most non-positives without a search."""

    items: IntArray  # (positives,) int32, user by user, ascending within a user
    indptr: IntArray  # (users + 1,)
    filters: IntArray  # uint64 words; each positive sets two bits in one of its user's words
    attraction: FloatArray  # (items,) float32: weight by which a positive is attracted whatever the negatives
    confidence: FloatArray  # (positives,) float32: factor of all terms of a positive, or (0,) where it is 1 for all


class Candidates(NamedTuple):
    """Distribution of candidates: an alias table over the items, or empty arrays for the uniform one."""

    threshold: FloatArray  # (items,) float64, or (0,)
    alias: IntArray  # (items,) int32, or (0,)
    n_items: int


@cached_njit(**PLAIN)
def fill_filters(indptr, items, filters):
    """Set the two bits of every positive in its user's filter."""
    for user in range(len(indptr) - 1):
        first, n_words = words_of(indptr, user)
        for k in range(indptr[user], indptr[user + 1]):
            word, bits = _filter_bits(items[k], n_words)
            filters[first + word] |= bits


@njit(inline="always")
def words_of(indptr, user):
    """Return the first word of a user's filter and its number of words: a quarter of the positives, plus one or two.

    Both are computed from ``indptr``: an array of offsets would cost one more random access to memory.
    """
    first = (indptr[user] >> 2) + user
    return first, (indptr[user + 1] >> 2) + user + 1 - first


@njit(inline="always")
def _filter_bits(item, n_words):
    """Return the word of an item in a filter of ``n_words`` words, and its two bits in that word."""
    spread = np.uint64(item) * GOLDEN
    one, other = (spread >> np.uint64(20)) & np.uint64(63), (spread >> np.uint64(26)) & np.uint64(63)
    return below(spread, n_words), (np.uint64(1) << one) | (np.uint64(1) << other)


@njit(inline="always")
def may_be_positive(filters, first, n_words, item):
    """Return False if the filter rules out that the item is a positive."""
    word, bits = _filter_bits(item, n_words)
    return filters[np.uint64(first + word)] & bits == bits


@njit(inline="always")
def prefetch_positives(data, user):
    """Prefetch a user's filter and positives: all cache lines of most users, the first a search reads of the others."""
    first, n_words = words_of(data.indptr, user)
    prefetch(data.filters, first)
    prefetch(data.filters, first + n_words - 1)
    prefetch(data.items, data.indptr[user])
    prefetch(data.items, (data.indptr[user] + data.indptr[user + 1]) >> 1)
    prefetch(data.items, data.indptr[user + 1] - 1)


@njit(inline="always")
def place_of(items, low, high, item):
    """Return the last place in ``items[low:high]``, which is sorted, with an item up to this one, else the first place.

    A binary search without branches: half of them would be mispredicted.
    """
    left = high - low
    while left > 1:
        half = left >> 1
        low += half if items[np.uint64(low + half)] <= item else 0
        left -= half
    return low


@cached_njit()
def is_positive(items, low, high, item):
    """Return whether an item is in ``items[low:high]``, which is sorted."""
    return low < high and items[np.uint64(place_of(items, low, high, item))] == item


@njit(inline="always")
def confidence_of(data, user, item):
    """Return the factor of a positive of the user."""
    if len(data.confidence) == 0:
        return np.float32(1)
    return data.confidence[place_of(data.items, data.indptr[user], data.indptr[user + 1], item)]


@cached_njit()
def nth_negative(items, start, end, n):
    """Return the n-th item, from 0, that is not in ``items[start:end]``."""
    low, high = start, end
    while low < high:  # find the first positive with more than n non-positives before it
        middle = (low + high) >> 1
        if items[middle] - (middle - start) <= n:
            low = middle + 1
        else:
            high = middle
    return n + (low - start)


@njit(inline="always")
def _by_alias(candidates, item, bits):
    """Turn a uniform draw into one from the alias table."""
    keep = uniform(mix(bits ^ GOLDEN)) < candidates.threshold[item]
    return np.int64(item) if keep else np.int64(candidates.alias[item])


@njit
def _reject_positives(data, candidates, user, item, bits):
    """Return the item, or a new draw if it is a positive of the user.

    After `TRIES` rejections, which happens to users with nearly all items, the draw is uniform over the non-positives.
    """
    items, low, high = data.items, data.indptr[user], data.indptr[user + 1]
    first, n_words = words_of(data.indptr, user)
    for _ in range(TRIES):
        if not (may_be_positive(data.filters, first, n_words, item) and is_positive(items, low, high, item)):
            return item
        bits = mix(bits + GOLDEN)
        item = below(bits, candidates.n_items)
        if len(candidates.alias):
            item = _by_alias(candidates, item, bits)
    return nth_negative(items, low, high, below(mix(bits + GOLDEN), candidates.n_items - (high - low)))


@njit(**PLAIN)
def sample_candidates(data, candidates, key, first, pairs, indices, low, high, n, chosen):
    """Sample ``n`` candidates for each of the positives ``low`` to ``high``.

    Parameters
    ----------
    data, candidates
        `Positives` of all users and the distribution of `Candidates`.
    key
        Random key of the epoch.
    first, indices
        Positive ``k`` is number ``first + indices[k]`` of the epoch.
    pairs
        User and item of each positive.
    n
        Candidates per positive.
    chosen
        Output: the positive in column 0 and in those after the candidates, the candidates in ``1:n + 1``.
    """
    filters, indptr = data.filters, data.indptr
    for k in range(low, high):
        user, position, row = np.int64(pairs[k, 0]), np.int64(first + indices[k]), chosen[k]
        for place in range(len(row)):
            row[place] = pairs[k, 1]
        for s in range(n):  # a separate loop, so that the compiler vectorises it
            row[1 + s] = below(bits_of(key, position, s), candidates.n_items)
        if len(candidates.alias):
            for s in range(n):
                row[1 + s] = _by_alias(candidates, row[1 + s], bits_of(key, position, s))
        words, n_words = words_of(indptr, user)
        for s in range(n):
            if may_be_positive(filters, words, n_words, row[1 + s]):
                row[1 + s] = _reject_positives(data, candidates, user, np.int64(row[1 + s]), bits_of(key, position, s))


@cached_njit(nogil=True)
def sample_batch(data, candidates, key, first, pairs, indices, n, chosen):
    """Sample the candidates of one batch, for models that are not trained by `dpcml.kernels.minibatch`."""
    sample_candidates(data, candidates, key, first, pairs, indices, 0, len(indices), n, chosen)
