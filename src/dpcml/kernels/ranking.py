"""Ranks of held-out items, and top-k lists.

Kernels work on the rows ``start`` to ``stop`` and release the interpreter lock, so that several threads can share the
rows. Larger scores are better.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit


@cached_njit(**PLAIN)
def rank_counts(scores, users, seen_ptr, seen, held_ptr, held, ahead, tied, start, stop):
    """Count, for each held-out item, the candidates with a higher score and those with the same score.

    Parameters
    ----------
    scores
        Float array of shape (block, items).
    users
        Row of each block row in the CSRs below; shape (block,).
    seen_ptr, seen
        CSR of items that are not ranked.
    held_ptr, held
        CSR of held-out items.
    ahead, tied
        Outputs, parallel to ``held``.

    Returns
    -------
    bool
        False if a score is NaN.
    """
    n_items = scores.shape[1]
    valid = True
    for b in range(start, stop):
        row = scores[b]
        u = users[b]
        nans = 0
        for i in range(n_items):
            nans += row[i] != row[i]
        valid &= nans == 0
        for h in range(held_ptr[u], held_ptr[u + 1]):
            mine = row[held[h]]
            above = np.int32(0)
            level = np.int32(0)
            for i in range(n_items):  # the compiler vectorises this: faster than skipping the seen items
                above += np.int32(row[i] > mine)
                level += np.int32(row[i] == mine)
            for k in range(seen_ptr[u], seen_ptr[u + 1]):
                above -= np.int32(row[seen[k]] > mine)
                level -= np.int32(row[seen[k]] == mine)
            ahead[h] = above
            tied[h] = level - 1  # not the item itself
    return valid


@cached_njit(**PLAIN)
def top_k(scores, users, seen_ptr, seen, best, best_scores, start, stop):
    """Find the items with the highest scores, best first; ties go to the lower position.

    Parameters
    ----------
    scores
        Float array of shape (block, items); items at minus infinity are not ranked.
    users
        Row of each block row in the CSR of seen items; shape (block,).
    seen_ptr, seen
        CSR of items that are not ranked, ascending within each row.
    best, best_scores
        Outputs of shape (block, n): positions and scores, -1 and minus infinity where there are fewer.
    """
    n_items = scores.shape[1]
    n = best.shape[1]
    if n == 0:
        return
    for b in range(start, stop):
        row = scores[b]
        next_seen = seen_ptr[users[b]]
        end = seen_ptr[users[b] + 1]
        found = 0
        for i in range(n_items):
            if next_seen < end and seen[next_seen] == i:
                next_seen += 1
                continue
            mine = row[i]
            if mine == -np.inf or (found == n and mine <= best_scores[b, n - 1]):
                continue
            insert(best, best_scores, b, found, i, mine)
            found = min(found + 1, n)
        best_scores[b, found:] = -np.inf
        best[b, found:] = -1


@njit(inline="always")
def insert(best, best_scores, row, found, item, score):
    """Insert an item into a sorted row that has ``found`` items, after those with the same score; drops the last."""
    place = min(found, best.shape[1] - 1)
    while place > 0 and best_scores[row, place - 1] < score:
        best_scores[row, place] = best_scores[row, place - 1]
        best[row, place] = best[row, place - 1]
        place -= 1
    best_scores[row, place] = score
    best[row, place] = item


@cached_njit(**PLAIN)
def add_standardised(scores, seen_ptr, seen, weight, total, start, stop):
    """Add weighted scores to a total, after scaling each row to mean 0 and variance 1 over the items not seen.

    A row whose unseen items all have the same score adds nothing.

    Parameters
    ----------
    scores
        Float array of shape (users, items).
    seen_ptr, seen
        CSR of the items that do not count in mean and variance.
    weight
        Weight of these scores.
    total
        Output of shape (users, items).
    """
    n_items = scores.shape[1]
    for u in range(start, stop):
        row = scores[u]
        n = n_items - (seen_ptr[u + 1] - seen_ptr[u])
        if n <= 0:
            continue
        mean = 0.0
        for i in range(n_items):
            mean += row[i]
        for p in range(seen_ptr[u], seen_ptr[u + 1]):
            mean -= row[seen[p]]
        mean /= n
        squares = 0.0
        for i in range(n_items):
            squares += (row[i] - mean) ** 2
        for p in range(seen_ptr[u], seen_ptr[u + 1]):
            squares -= (row[seen[p]] - mean) ** 2
        if squares <= 1e-12 * n * max(mean * mean, 1e-12):  # only rounding is left; NaN goes on, to be seen
            continue
        factor = weight / np.sqrt(squares / n)
        for i in range(n_items):
            total[u, i] += factor * (row[i] - mean)
