"""Random walks between items: from an item to a user who likes it, and on to another of that user's items."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.neighbours import keep_largest


@njit(nogil=True, cache=True)
def walk_sources(user_ptr, items, item_ptr, users, user_weight, item_weight, penalty, sources, weights, start, stop):
    """Find the items from which weighted walks of two steps most often lead to each item.

    A walk from i over user u to j weighs ``item_weight[i] user_weight[u] penalty[j]``; equal sums in order of position.

    Parameters
    ----------
    user_ptr, items
        CSR of the items of each user.
    item_ptr, users
        CSR of the users of each item.
    user_weight, item_weight, penalty
        Of each user on the way, each item walked from, each item walked to; float64.
    sources, weights
        Outputs of shape (items, k): positions of the items walked from, -1 where there are fewer, and the sums of the
        weights of all walks, 0 there.
    """
    n_items = len(item_ptr) - 1
    total = np.zeros(n_items, np.float64)
    reached = np.zeros(n_items, np.bool_)  # a sum may underflow to 0, so it cannot say
    touched = np.empty(n_items, np.int64)
    for j in range(start, stop):
        n_touched = 0
        for a in range(item_ptr[j], item_ptr[j + 1]):
            u = users[a]
            for b in range(user_ptr[u], user_ptr[u + 1]):
                i = items[b]
                if not reached[i]:
                    reached[i] = True
                    touched[n_touched] = i
                    n_touched += 1
                total[i] += user_weight[u]
        total[j] = 0.0
        near = np.sort(touched[:n_touched])
        value = total[near] * item_weight[near]
        total[near] = 0.0
        reached[near] = False
        keep_largest(near, value, sources[j], weights[j])
        weights[j] *= penalty[j]
