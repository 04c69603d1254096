"""One list from the queues of a user's interests, place by place."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def mix_lists(queues, scores, wanted, weight, scale, best, best_scores, start, stop):
    """Fill each user's list greedily: at every place the interests offer their next item, and one is taken.

    Parameters
    ----------
    queues, scores
        Items of each interest and their scores, best first, -1 where they end; shape (users, C, m).
    wanted
        Part of the list that each interest should get; shape (users, C).
    weight
        From 0 (only scores count) to 1 (only how far an interest is behind its part).
    scale
        Difference of scores that is worth a place; shape (users,).
    best, best_scores
        Outputs of shape (users, n), -1 and minus infinity where items run out.
    """
    n_vectors, length = queues.shape[1], queues.shape[2]
    n = best.shape[1]
    heads = np.empty(n_vectors, dtype=np.int64)
    for u in range(start, stop):
        heads[:] = 0
        for place in range(n):
            chosen, value = -1, -np.inf
            for c in range(n_vectors):
                if heads[c] == length or queues[u, c, heads[c]] < 0:
                    continue
                offered = scores[u, c, heads[c]]
                behind = wanted[u, c] * (place + 1) - heads[c]
                mine = (1 - weight) * offered / scale[u] + weight * behind
                # rounding must not decide between interests that are equally far behind
                if chosen < 0 or mine > value + 1e-9 or (mine > value - 1e-9 and offered > best_scores[u, place]):
                    chosen, value = c, mine
                    best_scores[u, place] = offered
            if chosen < 0:
                best[u, place:] = -1
                best_scores[u, place:] = -np.inf
                break
            best[u, place] = queues[u, chosen, heads[chosen]]
            heads[chosen] += 1
