"""The order in which an epoch visits the training positives."""

from __future__ import annotations

import numpy as np

from dpcml.kernels.partition import GROUPS, gather, groups_of, write_runs
from dpcml.kernels.random import mixed, shuffle
from dpcml.utils.arrays import IntArray
from dpcml.utils.threads import over_rows

USERS_PER_BLOCK = 2**11  # their vectors and moments are some 10 MB: caches and address translation serve them well
BLOCKS_FROM = 2**16  # users; data with fewer is one block
STRETCH = 2**9  # consecutive users that share a block: their vectors lie next to each other
MIN_RUNS = 8  # a user's positives are split into at least this many runs, if there are as many positives
MAX_DEFAULT_RUN = 4  # longer runs were hardly faster
PARALLEL_FROM = 2**19  # positives; waking other threads takes longer than shuffling fewer


class Order:
    """Random orders of the positives in which every batch holds a proportional share of each user group.

    Groups of users are assigned to threads. With a plain shuffle, the users of one thread have by chance more positives
    in a batch than those of another, and the other threads wait. Here the positives of a group are shuffled among
    themselves and spread evenly over the epoch.

    Positives may come in runs of one user, so that the user's vectors are loaded and updated once per run. Which
    positives share a run changes from epoch to epoch.

    Where there are many users, an epoch visits one block of them after the other, in an order that changes, so that
    the vectors in use are near in memory. Items see a sample of all users in each block.

    Parameters
    ----------
    users, items
        User and item of each positive, int32, sorted by user.
    max_user_run
        Maximum length of a run. Users with few positives have shorter runs, so that a user with eight positives or more
        still occurs in at least eight runs.
    n_threads
        Threads to draw an order with. The result does not depend on it.

    Examples
    --------
    >>> order = Order(np.array([0, 0, 1, 1, 2, 2], np.int32), np.array([5, 6, 7, 8, 5, 9], np.int32))
    >>> sorted(order.draw(np.uint64(1)).tolist())
    [[0, 5], [0, 6], [1, 7], [1, 8], [2, 5], [2, 9]]
    """

    def __init__(self, users: IntArray, items: IntArray, max_user_run: int = 1, n_threads: int = 1) -> None:
        rows = _blocks_of_users(users)
        self._threads = n_threads
        within = n_threads if len(rows) == 1 else 1  # all threads shuffle one block, or each shuffles some
        self._blocks = [_Block(users[some], items[some], max_user_run, within) for some in rows]
        self._sizes = np.array([len(block) for block in self._blocks])

    def draw(self, key: np.uint64, out: IntArray | None = None) -> IntArray:
        """Return user and item of each positive in the random order given by ``key``.

        Parameters
        ----------
        key
            Random key of the epoch.
        out
            Array to write to, int32 of shape (positives, 2). Reuse one from epoch to epoch: page faults of a new array
            cost more than the writes.

        Returns
        -------
        IntArray
            int32 of shape (positives, 2).
        """
        pairs = np.empty((self._sizes.sum(), 2), dtype=np.int32) if out is None else out
        visited = _shuffled(len(self._blocks), key)
        starts = np.concatenate([[0], self._sizes[visited].cumsum()])

        def draw(first: int, last: int) -> None:
            for place in range(first, last):
                number = visited[place]
                block_key = key ^ mixed(np.uint64(number))  # of the first block it is the key
                self._blocks[number].draw(block_key, pairs[starts[place] : starts[place + 1]])

        over_rows(draw, len(visited), self._threads)
        return pairs


class _Block:
    """Random orders of the positives of some users, see `Order`."""

    def __init__(self, users: IntArray, items: IntArray, max_user_run: int, n_threads: int) -> None:
        self._max_user_run = max_user_run
        self._threads = n_threads if len(users) >= PARALLEL_FROM else 1
        groups = groups_of(users)
        grouped = np.argsort(groups, kind="stable")
        index = np.int32 if len(users) < 2**31 else np.int64
        user_starts, run_starts = _runs(users[grouped], max_user_run)
        sizes = np.bincount(groups[grouped[run_starts[:-1]]], minlength=GROUPS)
        self._starts = np.concatenate([[0], sizes.cumsum()])
        rank = np.arange(sizes.sum()) - np.repeat(self._starts[:-1], sizes)
        self._places = np.argsort((rank + 0.5) / np.repeat(sizes, sizes), kind="stable").astype(index)
        if max_user_run == 1:
            self._values = _as_int64(np.stack([users[grouped], items[grouped]], axis=1))
        else:
            self._values, self._user_starts = items[grouped], user_starts
            self._run_starts, self._run_users = run_starts.astype(index), users[grouped[run_starts[:-1]]]
        self._shuffled = np.empty_like(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def draw(self, key: np.uint64, pairs: IntArray) -> None:
        """Write user and item of each positive in the random order given by ``key``."""
        values = self._shuffled
        np.copyto(values, self._values)
        if self._max_user_run == 1:
            self._shuffle(values, self._starts, key)
            self._spread(values, _as_int64(pairs))
        else:
            runs = np.arange(len(self._places), dtype=self._places.dtype)
            self._shuffle(runs, self._starts, key)
            spread = self._spread(runs, np.empty_like(runs))
            self._shuffle(values, self._user_starts, mixed(key))
            self._write_runs(values, spread, pairs)

    def _shuffle(self, values: IntArray, starts: IntArray, key: np.uint64) -> None:
        """Shuffle the values within each segment ``starts[g]:starts[g + 1]``."""
        over_rows(lambda start, stop: shuffle(values, starts[start : stop + 1], key), len(starts) - 1, self._threads)

    def _spread(self, values: IntArray, out: IntArray) -> IntArray:
        """Spread values that are sorted by group evenly over the epoch."""
        over_rows(lambda start, stop: gather(values, self._places, out, start, stop), len(values), self._threads)
        return out

    def _write_runs(self, items: IntArray, runs: IntArray, out: IntArray) -> None:
        """Write user and items of each run, one run after the other."""
        users, starts = self._run_users, self._run_starts
        ends = np.diff(starts)[runs].cumsum()
        over_rows(
            lambda start, stop: write_runs(users, items, starts, runs, ends, out, start, stop), len(runs), self._threads
        )


def block_count(n_users: int) -> int:
    """Return in how many blocks an epoch visits the users.

    Examples
    --------
    >>> block_count(60_000), block_count(1_000_000)
    (1, 488)
    """
    return 1 if n_users < BLOCKS_FROM else n_users // USERS_PER_BLOCK


def _blocks_of_users(users: IntArray) -> list[IntArray | slice]:
    """Return the rows of the positives of each block of users: stretches of consecutive users, dealt in turn.

    Examples
    --------
    >>> _blocks_of_users(np.arange(9))
    [slice(None, None, None)]
    """
    n_blocks = block_count(int(users[-1]) + 1 if len(users) else 0)
    if n_blocks == 1:
        return [slice(None)]
    blocks = (users // STRETCH % n_blocks).astype(np.int32)
    sizes = np.bincount(blocks, minlength=n_blocks)
    return [*np.split(np.argsort(blocks, kind="stable"), sizes.cumsum()[:-1])]


def _shuffled(n: int, key: np.uint64) -> IntArray:
    """Return the numbers below ``n`` in random order."""
    numbers = np.arange(n)
    if n > 1:
        shuffle(numbers, np.array([0, n]), mixed(key))
    return numbers


def _as_int64(pairs: IntArray) -> IntArray:
    """Return a view of int32 pairs as one int64 each, so that a shuffle moves both at once."""
    return pairs.view(np.int64).ravel()


def default_user_run(n_positives: int, n_users: int) -> int:
    """Return the default maximum run: an eighth of the mean number of positives per user, from 1 to 4.

    Examples
    --------
    >>> default_user_run(75_000, 5_200), default_user_run(345_000, 6_000)
    (1, 4)
    """
    return min(max(n_positives // max(n_users, 1) // MIN_RUNS, 1), MAX_DEFAULT_RUN)


def _runs(users: IntArray, max_user_run: int) -> tuple[IntArray, IntArray]:
    """Return the start of each user's positives and of each run; both end with the number of positives.

    Examples
    --------
    >>> [starts.tolist() for starts in _runs(np.repeat([7, 3], [2, 20]), max_user_run=4)]
    [[0, 2, 22], [0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]]
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(users)) + 1, [len(users)]]) if len(users) else np.zeros(1, int)
    sizes = np.diff(starts)
    length = np.clip(sizes // MIN_RUNS, 1, max_user_run)
    rank = np.arange(len(users)) - np.repeat(starts[:-1], sizes)
    is_start = rank % np.repeat(length, sizes) == 0
    return starts, np.append(np.flatnonzero(is_start), len(users))
