"""Where held-out items stand in a ranking, and which items stand on top of it.

Both walk rows ``start`` to ``stop`` of a block of scores (larger is better) and release the interpreter's lock, so that
ranges of rows can run on several threads; each row is independent of the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def places(scores, users, seen_ptr, seen, held_ptr, held, ahead, tied, start, stop):
    """Count, for each held-out item, the candidates ahead of it and those level with it.

    Parameters
    ----------
    scores
        Float array of shape (block, items).
    users
        Row of each block row in the CSRs below; shape (block,).
    seen_ptr, seen
        CSR of items that are no candidates.
    held_ptr, held
        CSR of held-out items.
    ahead, tied
        Outputs, parallel to ``held``.

    Returns
    -------
    bool
        True when every score is a number.
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
            for i in range(n_items):  # vectorised: faster than skipping the few items that are seen
                above += np.int32(row[i] > mine)
                level += np.int32(row[i] == mine)
            for k in range(seen_ptr[u], seen_ptr[u + 1]):
                above -= np.int32(row[seen[k]] > mine)
                level -= np.int32(row[seen[k]] == mine)
            ahead[h] = above
            tied[h] = level - 1  # not the item itself
    return valid


@njit(nogil=True, cache=True)
def top(scores, users, seen_ptr, seen, best, best_scores, start, stop):
    """Find the items with the highest scores, best first; of equal scores, the lower position first.

    Parameters
    ----------
    scores
        Float array of shape (block, items); items at minus infinity are no candidates.
    users
        Row of each block row in the CSR of seen items; shape (block,).
    seen_ptr, seen
        CSR of items that are no candidates, ascending within each row.
    best, best_scores
        Outputs of shape (block, n): positions and scores, -1 and minus infinity where candidates run out.
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


@njit(cache=True, inline="always")
def insert(best, best_scores, row, found, item, score):
    """Put an item into a row of the ``found`` best so far, behind those with the same score; the last may drop out."""
    place = min(found, best.shape[1] - 1)
    while place > 0 and best_scores[row, place - 1] < score:
        best_scores[row, place] = best_scores[row, place - 1]
        best[row, place] = best[row, place - 1]
        place -= 1
    best_scores[row, place] = score
    best[row, place] = item
