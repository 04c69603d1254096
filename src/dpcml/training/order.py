"""The order of an epoch: random, and even over the groups of users that threads own."""

from __future__ import annotations

import numpy as np

from dpcml.arrays import IntArray
from dpcml.kernels.owners import GROUPS, groups_of
from dpcml.kernels.random import shuffle


class Order:
    """Orders in which every batch holds about the same share of each group's positives.

    With a plain shuffle one thread's users have, by chance, more positives in a batch than another's, and the others
    wait. Here the positives of a group are shuffled among themselves and spread evenly over the epoch.

    Parameters
    ----------
    users
        User of each positive.

    Examples
    --------
    >>> order = Order(np.repeat(np.arange(40), 5))
    >>> sorted(order.draw(np.uint64(1)).tolist()) == list(range(200))
    True
    """

    def __init__(self, users: IntArray) -> None:
        index = np.int32 if len(users) < 2**31 else np.int64
        groups = np.empty(len(users), dtype=np.uint8)
        groups_of(users, groups)
        self._grouped = np.argsort(groups, kind="stable").astype(index)
        sizes = np.bincount(groups, minlength=GROUPS)
        self._starts = np.concatenate([[0], sizes.cumsum()])
        rank = np.arange(len(users)) - np.repeat(self._starts[:-1], sizes)
        self._places = np.argsort((rank + 0.5) / np.repeat(sizes, sizes), kind="stable").astype(index)

    def __len__(self) -> int:
        return len(self._grouped)

    def draw(self, key: np.uint64) -> IntArray:
        """Return the positives in the order that belongs to a key."""
        shuffled = self._grouped.copy()
        shuffle(shuffled, self._starts, key)
        drawn: IntArray = shuffled[self._places]
        return drawn
