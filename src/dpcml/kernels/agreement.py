"""Agreement of two labelings of each user's items: their adjusted mutual information."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.compilation import cached_njit


@cached_njit(nogil=True)
def adjusted_mutual_information(indptr, first, second, n_first, n_second, factorial, found, start, stop):
    """Compute the adjusted mutual information of two labels for the items of each user, with the mean of the entropies.

    Parameters
    ----------
    indptr
        ``first[indptr[u]:indptr[u + 1]]`` are the labels of user u.
    first, second
        Labels from 0 to ``n_first`` and ``n_second``; parallel.
    factorial
        Logarithms of the factorials from 0 to the largest number of items of a user.
    found
        Output of shape (users,).
    """
    both = np.zeros((n_first, n_second), dtype=np.int64)
    a_size, b_size = np.zeros(n_first, dtype=np.int64), np.zeros(n_second, dtype=np.int64)
    a_labels, b_labels = np.empty(n_first, dtype=np.int64), np.empty(n_second, dtype=np.int64)
    for u in range(start, stop):
        n = indptr[u + 1] - indptr[u]
        n_a, n_b = 0, 0
        for k in range(indptr[u], indptr[u + 1]):
            a, b = first[k], second[k]
            if a_size[a] == 0:
                a_labels[n_a] = a
                n_a += 1
            if b_size[b] == 0:
                b_labels[n_b] = b
                n_b += 1
            a_size[a] += 1
            b_size[b] += 1
            both[a, b] += 1
        if n_a == n_b and (n_a <= 1 or n_a == n):  # both constant, or both with a label of its own for every item
            found[u] = 1.0
        elif n_a == 1 or n_b == 1:
            found[u] = 0.0
        else:
            mutual, expected, entropy = 0.0, 0.0, 0.0
            for a in a_labels[:n_a]:
                entropy -= a_size[a] / n * np.log(a_size[a] / n) / 2
                for b in b_labels[:n_b]:
                    if both[a, b]:
                        mutual += both[a, b] / n * np.log(both[a, b] * n / (a_size[a] * b_size[b]))
                    expected += _expected_term(a_size[a], b_size[b], n, factorial)
            for b in b_labels[:n_b]:
                entropy -= b_size[b] / n * np.log(b_size[b] / n) / 2
            found[u] = (mutual - expected) / (entropy - expected)
        for k in range(indptr[u], indptr[u + 1]):
            a_size[first[k]] = 0
            b_size[second[k]] = 0
            both[first[k], second[k]] = 0


@cached_njit(nogil=True)
def _expected_term(a, b, n, factorial):
    """Return what labels of a and b items add to the mean over all permutations: their overlap is hypergeometric."""
    total = 0.0
    for overlap in range(max(1, a + b - n), min(a, b) + 1):
        chance = factorial[a] + factorial[b] + factorial[n - a] + factorial[n - b] - factorial[n]
        chance -= factorial[overlap] + factorial[a - overlap] + factorial[b - overlap] + factorial[n - a - b + overlap]
        total += overlap / n * np.log(overlap * n / (a * b)) * np.exp(chance)
    return total
