"""The order of an epoch: random, even over the groups of users that threads own, in runs of a user's positives."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.ordering import gather, lay_out
from dpcml.kernels.owners import GROUPS, groups_of
from dpcml.kernels.random import mix, shuffle
from dpcml.utils.arrays import IntArray
from dpcml.utils.threads import over_rows

FEWEST_RUNS = 8  # a user's positives go in no fewer runs, where there are as many
WORTH_THREADS = 2**19  # positives: fewer are put into order sooner than other threads wake up
LONGEST = 4  # positives in a run by default: longer runs were hardly faster


class Order:
    """Orders in which every batch holds about the same share of each group's positives.

    With a plain shuffle one thread's users have, by chance, more positives in a batch than another's, and the others
    wait. Here the positives of a group are shuffled among themselves and spread evenly over the epoch.

    Positives can go in runs of one user, so that the user's vectors are fetched from memory and stepped once for all
    of them; who is in a run with whom changes from epoch to epoch.

    Parameters
    ----------
    users, items
        User and item of each positive, int32; users ascend.
    together
        Positives in a run at most. Users with few positives have shorter runs, so that they are still met in eight
        batches or more, or with each positive on its own.
    n_threads
        Threads that draw an order; what they draw does not depend on their number.

    Examples
    --------
    >>> order = Order(np.array([0, 0, 1, 1, 2, 2], np.int32), np.array([5, 6, 7, 8, 5, 9], np.int32))
    >>> sorted(order.draw(np.uint64(1)).tolist())
    [[0, 5], [0, 6], [1, 7], [1, 8], [2, 5], [2, 9]]
    """

    def __init__(self, users: IntArray, items: IntArray, together: int = 1, n_threads: int = 1) -> None:
        self._together = together
        self._threads = n_threads if len(users) >= WORTH_THREADS else 1
        groups = groups_of(users)
        grouped = np.argsort(groups, kind="stable")
        index = np.int32 if len(users) < 2**31 else np.int64
        user_starts, run_starts = _runs(users[grouped], together)
        sizes = np.bincount(groups[grouped[run_starts[:-1]]], minlength=GROUPS)
        self._starts = np.concatenate([[0], sizes.cumsum()])
        rank = np.arange(sizes.sum()) - np.repeat(self._starts[:-1], sizes)
        self._places = np.argsort((rank + 0.5) / np.repeat(sizes, sizes), kind="stable").astype(index)
        if together == 1:
            self._values = _as_one(np.stack([users[grouped], items[grouped]], axis=1))
        else:
            self._values, self._user_starts = items[grouped], user_starts
            self._run_starts, self._run_users = run_starts.astype(index), users[grouped[run_starts[:-1]]]
        self._shuffled = np.empty_like(self._values)

    def draw(self, key: np.uint64, out: IntArray | None = None) -> IntArray:
        """Return user and item of each positive, in the order that belongs to a key; int32 of shape (positives, 2).

        Memory that is new costs more time than what is written to it: epoch by epoch, pass an array for the output.
        """
        pairs = np.empty((len(self._values), 2), dtype=np.int32) if out is None else out
        values = self._shuffled
        np.copyto(values, self._values)
        if self._together == 1:
            self._shuffle(values, self._starts, key)
            self._spread(values, _as_one(pairs))
        else:
            runs = np.arange(len(self._places), dtype=self._places.dtype)
            self._shuffle(runs, self._starts, key)
            spread = self._spread(runs, np.empty_like(runs))
            self._shuffle(values, self._user_starts, np.uint64(mix(key)))
            self._lay_out(values, spread, pairs)
        return pairs

    def _shuffle(self, values: IntArray, starts: IntArray, key: np.uint64) -> None:
        """Put the values from each start to the next into a random order."""
        over_rows(lambda start, stop: shuffle(values, starts[start : stop + 1], key), len(starts) - 1, self._threads)

    def _spread(self, values: IntArray, out: IntArray) -> IntArray:
        """Spread values that are listed by group over the epoch."""
        over_rows(lambda start, stop: gather(values, self._places, out, start, stop), len(values), self._threads)
        return out

    def _lay_out(self, items: IntArray, runs: IntArray, out: IntArray) -> None:
        """Write user and items of the runs, one after the other."""
        users, starts = self._run_users, self._run_starts
        ends = np.diff(starts)[runs].cumsum()
        over_rows(
            lambda start, stop: lay_out(users, items, starts, runs, ends, out, start, stop), len(runs), self._threads
        )


def _as_one(pairs: IntArray) -> IntArray:
    """Return a view of pairs of int32 in which each is one number, so that both are moved at once."""
    return pairs.view(np.int64).ravel()


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
