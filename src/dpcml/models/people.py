"""Whom a model is asked about: users of the training data, or people it has never met."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import IntArray


@dataclass(frozen=True, eq=False)
class People:
    """Some people and what they like.

    Parameters
    ----------
    likes
        Ones of shape (people, items).
    rows
        Their rows in the training data; None for people who are not in it.
    found
        What a model has found out about them while it answers, so that it is found once.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(3))
    >>> people = People.known(train, np.array([2, 0]))
    >>> len(people), people.liked(0).tolist(), people.part(1, 2).rows.tolist()
    (2, [2], [0])
    """

    likes: sparse.csr_array
    rows: IntArray | None = None
    found: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def known(cls, train: Interactions, rows: IntArray) -> People:
        """Return users of the training data."""
        return cls(train.csr[rows], rows)

    def __len__(self) -> int:
        return int(self.likes.shape[0])

    def liked(self, person: int) -> IntArray:
        """Return the positions of the items that somebody likes."""
        return np.asarray(self.likes.indices[self.likes.indptr[person] : self.likes.indptr[person + 1]])

    def part(self, first: int, last: int) -> People:
        """Return the people from ``first`` to ``last``."""
        if first <= 0 and last >= len(self):
            return self
        return People(self.likes[first:last], None if self.rows is None else self.rows[first:last])
