"""The order of an epoch: random, even over the groups of users that threads own, in runs of a user's positives."""

from __future__ import annotations

import numpy as np

from dpcml.arrays import IntArray
from dpcml.kernels.owners import GROUPS, groups_of
from dpcml.kernels.random import lay_out, mix, shuffle

FEWEST_RUNS = 8  # a user's positives go in no fewer runs, where there are as many
LONGEST = 4  # positives in a run by default: longer runs were hardly faster


class Order:
    """Orders in which every batch holds about the same share of each group's positives.

    With a plain shuffle one thread's users have, by chance, more positives in a batch than another's, and the others
    wait. Here the positives of a group are shuffled among themselves and spread evenly over the epoch.

    Positives can go in runs of one user, so that the user's vectors are fetched from memory and stepped once for all
    of them; who is in a run with whom changes from epoch to epoch.

    Parameters
    ----------
    users
        User of each positive, ascending.
    together
        Positives in a run at most. Users with few positives have shorter runs, so that they are still met in eight
        batches or more, or with each positive on its own.

    Examples
    --------
    >>> order = Order(np.repeat(np.arange(40), 5))
    >>> sorted(order.draw(np.uint64(1)).tolist()) == list(range(200))
    True
    """

    def __init__(self, users: IntArray, together: int = 1) -> None:
        index = np.int32 if len(users) < 2**31 else np.int64
        groups = np.empty(len(users), dtype=np.uint8)
        groups_of(users, groups)
        self._grouped = np.argsort(groups, kind="stable").astype(index)
        self._together = together
        self._user_starts, run_starts = _runs(users[self._grouped], together)
        self._run_starts = run_starts.astype(index)
        sizes = np.bincount(groups[self._grouped[run_starts[:-1]]], minlength=GROUPS)
        self._starts = np.concatenate([[0], sizes.cumsum()])
        rank = np.arange(sizes.sum()) - np.repeat(self._starts[:-1], sizes)
        self._places = np.argsort((rank + 0.5) / np.repeat(sizes, sizes), kind="stable").astype(index)

    def __len__(self) -> int:
        return len(self._grouped)

    def draw(self, key: np.uint64) -> IntArray:
        """Return the positives in the order that belongs to a key."""
        if self._together == 1:
            positives = self._grouped.copy()
            shuffle(positives, self._starts, key)
            drawn: IntArray = positives[self._places]
            return drawn
        runs = np.arange(len(self._places), dtype=self._places.dtype)
        shuffle(runs, self._starts, key)
        positives = self._grouped.copy()
        shuffle(positives, self._user_starts, np.uint64(mix(key)))
        drawn = np.empty_like(positives)
        lay_out(positives, self._run_starts, runs[self._places], drawn)
        return drawn


def usual_runs(n_positives: int, n_users: int) -> int:
    """Return how many positives of a user go together by default: an eighth of what users have on average, 1 to 4.

    Examples
    --------
    >>> usual_runs(75_000, 5_200), usual_runs(345_000, 6_000)
    (1, 4)
    """
    return min(max(n_positives // max(n_users, 1) // FEWEST_RUNS, 1), LONGEST)


def _runs(users: IntArray, together: int) -> tuple[IntArray, IntArray]:
    """Return where each user's positives begin, and where each run does; both end with the number of positives.

    Examples
    --------
    >>> [starts.tolist() for starts in _runs(np.repeat([7, 3], [2, 20]), together=4)]
    [[0, 2, 22], [0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]]
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(users)) + 1, [len(users)]]) if len(users) else np.zeros(1, int)
    sizes = np.diff(starts)
    length = np.clip(sizes // FEWEST_RUNS, 1, together)
    rank = np.arange(len(users)) - np.repeat(starts[:-1], sizes)
    opens = rank % np.repeat(length, sizes) == 0
    return starts, np.append(np.flatnonzero(opens), len(users))
