"""Item-item models: nearest neighbours by co-occurrence, random walks between items, and regressions on neighbours."""

from __future__ import annotations

import numpy as np
from numba import njit

from dpcml.kernels.compilation import PLAIN, cached_njit


@cached_njit(nogil=True)
def cosine_neighbours(
    user_ptr, items, item_ptr, users, by_user, by_item, squares, shrink, neighbours, similarities, start, stop
):
    """Find the k nearest neighbours of each item by shrunk cosine similarity.

    The similarity of i and j is ``sum_u c_ui c_uj / (sqrt(sum_u c_ui^2 sum_u c_uj^2) + shrink)``, where c is the
    confidence of a positive, 1 without weights; ties go to the lower position.

    Parameters
    ----------
    user_ptr, items
        CSR of the items of each user.
    item_ptr, users
        CSR of the users of each item.
    by_user, by_item
        Confidence of the positives of both, above 0; or of length 0 where it is 1 for all.
    squares
        Sum of the squared confidences of each item, float64.
    shrink
        Added to the denominator, to damp pairs with few common users.
    neighbours, similarities
        Outputs of shape (items, k): positions, -1 where there are fewer, and similarities, 0 there.
    """
    n_items = len(item_ptr) - 1
    weighted = len(by_user) > 0
    shared = np.zeros(n_items, np.float64)
    touched = np.empty(n_items, np.int64)
    for i in range(start, stop):
        n_touched = 0
        for a in range(item_ptr[i], item_ptr[i + 1]):
            u = users[a]
            for b in range(user_ptr[u], user_ptr[u + 1]):
                j = items[b]
                if shared[j] == 0:
                    touched[n_touched] = j
                    n_touched += 1
                shared[j] += by_item[a] * by_user[b] if weighted else 1.0
        shared[i] = 0
        near = np.sort(touched[:n_touched])
        value = np.empty(n_touched, np.float64)
        for t in range(n_touched):
            j = near[t]
            value[t] = shared[j] / (np.sqrt(squares[i] * squares[j]) + shrink)
            shared[j] = 0
        keep_largest(near, value, neighbours[i], similarities[i])


@cached_njit(nogil=True)
def keep_largest(near, value, kept, kept_values):
    """Write the items with the largest values above 0, best first; ties go to the earlier one."""
    order = np.argsort(-value, kind="mergesort")[: len(kept)]
    for place in range(len(order)):
        if value[order[place]] > 0:
            kept[place] = near[order[place]]
            kept_values[place] = value[order[place]]


@cached_njit(nogil=True)
def count_together(item_ptr, users, first, second, counts, start, stop):
    """Count the common users of each pair of items ``(first[p], second[p])``; users ascend within an item."""
    for p in range(start, stop):
        a, a_end = item_ptr[first[p]], item_ptr[first[p] + 1]
        b, b_end = item_ptr[second[p]], item_ptr[second[p] + 1]
        count = 0
        while a < a_end and b < b_end:
            left, right = users[a], users[b]
            count += left == right
            a += left <= right
            b += right <= left
        counts[p] = count


@cached_njit(nogil=True)
def walk_sources(user_ptr, items, item_ptr, users, user_weight, item_weight, penalty, sources, weights, start, stop):
    """Find the items from which two-step random walks to each item have the largest weight.

    A walk from item i over user u to item j has weight ``item_weight[i] user_weight[u] penalty[j]``; ties go to the
    lower position.

    Parameters
    ----------
    user_ptr, items
        CSR of the items of each user.
    item_ptr, users
        CSR of the users of each item.
    user_weight, item_weight, penalty
        Weights of the user, of the first item and of the last item of a walk; float64.
    sources, weights
        Outputs of shape (items, k): positions of the first items, -1 where there are fewer, and the summed weights
        of their walks, 0 there.
    """
    n_items = len(item_ptr) - 1
    total = np.zeros(n_items, np.float64)
    reached = np.zeros(n_items, np.bool_)  # not ``total > 0``: a sum may underflow to 0
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
        for t in range(n_touched):
            total[touched[t]] *= item_weight[touched[t]]
        n_best = min(sources.shape[1], n_touched)
        best_first(touched, n_touched, n_best, total)
        for place in range(n_best):
            if total[touched[place]] > 0:
                sources[j, place] = touched[place]
                weights[j, place] = np.float32(total[touched[place]]) * penalty[j]
        for t in range(n_touched):
            total[touched[t]] = 0.0
            reached[touched[t]] = False


@cached_njit(**PLAIN)
def best_first(items, n, k, value):
    """Move the k of the first n items with the largest values to the front, best first; ties go to the lower position.

    The first k places are a heap with the worst item on top. Sorting by NumPy's functions took seconds to compile.
    """
    for place in range(k // 2 - 1, -1, -1):
        sink(items, k, place, value)
    for place in range(k, n):
        if is_worse(value, items[0], items[place]):
            items[0], items[place] = items[place], items[0]
            sink(items, k, 0, value)
    for place in range(k - 1, 0, -1):
        items[0], items[place] = items[place], items[0]
        sink(items, place, 0, value)


@cached_njit(**PLAIN)
def sink(heap, size, place, value):
    """Move an item of a heap down until none of the two below it is worse."""
    item = heap[place]
    below = 2 * place + 1
    while below < size:
        if below + 1 < size and is_worse(value, heap[below + 1], heap[below]):
            below += 1
        if not is_worse(value, heap[below], item):
            break
        heap[place] = heap[below]
        place, below = below, 2 * below + 1
    heap[place] = item


@njit(inline="always")
def is_worse(value, one, other):
    """Return whether an item has a smaller value than another one, or the same and a higher position."""
    return value[one] < value[other] or (value[one] == value[other] and one > other)


@cached_njit(nogil=True)
def neighbour_regressions(gram_ptr, gram_items, gram, l2, neighbours, weights, start, stop):
    """Predict each item from its k neighbours by ridge regression: solve ``(G_NN + l2 I) b = G_Nj``.

    The neighbours N of item j are those with the largest ``n_ij / sqrt(n_i + l2)``; ties go to the lower position.

    Parameters
    ----------
    gram_ptr, gram_items, gram
        CSR of how many users like both of two items, ascending within each row; the diagonal counts an item's users.
    l2
        Ridge penalty.
    neighbours, weights
        Outputs of shape (items, k): positions, ascending, -1 where there are fewer, and weights, 0 there.
    """
    n_items = len(gram_ptr) - 1
    k = neighbours.shape[1]
    count = np.zeros(n_items, np.float64)
    for i in range(n_items):
        for p in range(gram_ptr[i], gram_ptr[i + 1]):
            if gram_items[p] == i:
                count[i] = gram[p]
    system = np.empty((k, k), np.float64)
    right = np.empty(k, np.float64)
    for j in range(start, stop):
        row = gram_items[gram_ptr[j] : gram_ptr[j + 1]]
        shared = gram[gram_ptr[j] : gram_ptr[j + 1]]
        value = shared / np.sqrt(count[row] + l2)
        value[row == j] = 0
        kept = np.sort(np.argsort(-value, kind="mergesort")[:k])
        kept = kept[value[kept] > 0]
        m = len(kept)
        near = row[kept]
        for a in range(m):
            i = near[a]
            right[a] = shared[kept[a]]
            system[a, a] = count[i] + l2
            place, end = gram_ptr[i], gram_ptr[i + 1]
            for b in range(a + 1, m):
                place += np.searchsorted(gram_items[place:end], near[b])
                found = place < end and gram_items[place] == near[b]
                system[a, b] = gram[place] if found else 0.0
        solve_upper(system[:m, :m], right[:m])
        neighbours[j, :m] = near
        weights[j, :m] = right[:m]


@cached_njit(nogil=True)
def solve_upper(system, right):
    """Solve a positive definite system, given by its upper triangle, in place; the solution replaces ``right``.

    Rows are subtracted from rows, which the compiler vectorises without changing the order of any sum.
    """
    n = len(right)
    for p in range(n):
        for q in range(p + 1, n):
            factor = system[p, q] / system[p, p]
            if factor != 0.0:
                for r in range(q, n):
                    system[q, r] -= factor * system[p, r]
                right[q] -= factor * right[p]
    for p in range(n - 1, -1, -1):
        for q in range(p + 1, n):
            right[p] -= system[p, q] * right[q]
        right[p] /= system[p, p]
