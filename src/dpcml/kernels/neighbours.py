"""Co-occurrence of items: nearest neighbours, and how often given pairs are liked together."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def cosine_neighbours(user_ptr, items, item_ptr, users, shrink, neighbours, similarities, start, stop):
    """Find the items most often liked together with each item, by shrunk cosine.

    The similarity of i and j is ``together / (sqrt(n_i n_j) + shrink)``; equal ones in order of position.

    Parameters
    ----------
    user_ptr, items
        CSR of the items of each user.
    item_ptr, users
        CSR of the users of each item.
    shrink
        Added to the denominator: damps pairs that few users back.
    neighbours, similarities
        Outputs of shape (items, k): positions, -1 where there are fewer, and similarities, 0 there.
    """
    n_items = len(item_ptr) - 1
    together = np.zeros(n_items, np.int64)
    touched = np.empty(n_items, np.int64)
    for i in range(start, stop):
        n_touched = 0
        for a in range(item_ptr[i], item_ptr[i + 1]):
            u = users[a]
            for b in range(user_ptr[u], user_ptr[u + 1]):
                j = items[b]
                if together[j] == 0:
                    touched[n_touched] = j
                    n_touched += 1
                together[j] += 1
        together[i] = 0
        near = np.sort(touched[:n_touched])
        value = np.empty(n_touched, np.float64)
        own = item_ptr[i + 1] - item_ptr[i]
        for t in range(n_touched):
            j = near[t]
            value[t] = together[j] / (np.sqrt(own * (item_ptr[j + 1] - item_ptr[j])) + shrink)
            together[j] = 0
        keep_largest(near, value, neighbours[i], similarities[i])


@njit(nogil=True, cache=True)
def keep_largest(near, value, kept, kept_values):
    """Write the items of the largest values above 0, as many as there is room for; of equal ones the earlier first."""
    order = np.argsort(-value, kind="mergesort")[: len(kept)]
    for place in range(len(order)):
        if value[order[place]] > 0:
            kept[place] = near[order[place]]
            kept_values[place] = value[order[place]]


@njit(nogil=True, cache=True)
def count_together(item_ptr, users, first, second, together, start, stop):
    """Count the users who like both items of each pair ``(first[p], second[p])``; users ascend within an item."""
    for p in range(start, stop):
        a, a_end = item_ptr[first[p]], item_ptr[first[p] + 1]
        b, b_end = item_ptr[second[p]], item_ptr[second[p] + 1]
        count = 0
        while a < a_end and b < b_end:
            left, right = users[a], users[b]
            count += left == right
            a += left <= right
            b += right <= left
        together[p] = count
