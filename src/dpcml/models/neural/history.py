"""What users have liked, as a table of fixed width."""

from __future__ import annotations

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import IntArray


def histories(train: Interactions, size: int, seed: int) -> IntArray:
    """Return up to ``size`` items of each user, -1 where there are no more; of more items, some at random.

    Examples
    --------
    >>> train = Interactions.from_csr(np.array([[1, 1, 1], [0, 1, 0]]))
    >>> found = histories(train, 2, seed=0)
    >>> found.shape, found[1].tolist()
    ((2, 2), [1, -1])
    """
    width = max(1, min(size, int(train.per_user.max(initial=0))))
    found = np.full((train.n_users, width), -1, dtype=np.int64)
    rows = np.asarray(train.rows)
    order = np.lexsort((np.random.default_rng(seed).random(len(rows)), rows))
    place = np.arange(len(rows)) - np.asarray(train.indptr)[rows]  # rows ascend, before and after
    kept = place < width
    found[rows[kept], place[kept]] = np.asarray(train.indices)[order][kept]
    return found
