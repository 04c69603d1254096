"""`RayRanking`: ranks of held-out items, computed by workers on blocks of users, for `dpcml.evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.ranks import BLOCK_BYTES, Ranks, Scorer, rank_held_out
from dpcml.scale.pool import map_model
from dpcml.utils.arrays import IntArray
from dpcml.utils.checks import at_least
from dpcml.utils.files import full_path

TASKS_PER_WORKER = 4  # a worker with slow users does not delay the others much


@dataclass(frozen=True)
class RayRanking:
    """Ranks on Ray with a saved model; called as `dpcml.evaluation.ranks.rank_held_out` is, with the same result.

    Parameters
    ----------
    folder
        The saved model that is evaluated; all machines must see it there.
    workers, address
        See `dpcml.scale.RayRunner`.
    """

    folder: str | Path
    workers: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        at_least("workers", self.workers, 1)

    def __call__(
        self,
        model: Scorer,
        train: Interactions,
        test: Interactions,
        *,
        also_masked: Interactions | None = None,
        users: IntArray | None = None,
        top: int = 20,
        n_threads: int | None = None,
    ) -> Ranks:
        """Return the ranks; ``model`` is that of the folder."""
        rows = np.flatnonzero(test.per_user) if users is None else np.unique(np.asarray(users))
        block = max(1, BLOCK_BYTES // (4 * max(test.n_items, 1)))  # the blocks of a single process: the same bits
        step = -(-len(rows) // (block * TASKS_PER_WORKER * self.workers)) * block
        edges = [*range(0, len(rows), max(step, 1)), len(rows)]
        tasks = [(rows[first:last], top) for first, last in pairwise(edges)] or [(rows, top)]
        given: dict[str, Any] = {"workers": self.workers, "address": self.address, "n_threads": n_threads}
        shared = (train, test, also_masked)
        return joined(list(map_model(full_path(self.folder), rank_some, tasks, shared=shared, **given)))


def rank_some(model: Any, users: IntArray, top: int, train: Interactions, test: Interactions, also: Any) -> Ranks:
    """Return the ranks of some users."""
    return rank_held_out(model, train, test, also_masked=also, users=users, top=top)


def joined(parts: list[Ranks]) -> Ranks:
    """Return the ranks of all users from those of consecutive ones.

    Examples
    --------
    >>> joined([Ranks.from_places([[0, 4]]), Ranks.from_places([[2]])]).rank
    array([1., 5., 3.])
    """
    starts = np.cumsum([0, *(len(part.items) for part in parts)])
    ends = [part.indptr[1:] + start for part, start in zip(parts, starts, strict=False)]
    names = ("users", "items", "ahead", "tied", "candidates", "top")
    rest = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Ranks(indptr=np.concatenate([[0], *ends]), **rest)
