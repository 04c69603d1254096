"""`RayRanking`: ranks of held-out items, computed by workers on blocks of users, for `dpcml.evaluate`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.shards import Place, received, to_send
from dpcml.evaluation.ranks import BLOCK_BYTES, Ranks, Scorer, rank_held_out
from dpcml.scale.pool import map_model
from dpcml.utils.arrays import FloatArray, IntArray
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
        parts = train, test, also_masked
        tasks = []
        for begin in range(0, len(rows), max(step, 1)):
            some = rows[begin : begin + step]
            first, last = int(some[0]), int(some[-1]) + 1
            mine = [to_send(part and part.users_between(first, last)) for part in parts]
            tasks.append((first, some - first, top, *mine))
        given: dict[str, Any] = {"workers": self.workers, "address": self.address, "n_threads": n_threads}
        if not tasks:  # nobody has a held-out item
            return rank_held_out(model, train, test, also_masked=also_masked, users=rows, top=top)
        return joined(list(map_model(full_path(self.folder), rank_some, tasks, **given)))


@dataclass(frozen=True)
class UsersFrom:
    """The scores of a model for users from some row on."""

    model: Scorer
    first: int

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        return self.model.score(users + self.first)


def rank_some(model: Any, first: int, users: IntArray, top: int, *parts: Interactions | Place | None) -> Ranks:
    """Return the ranks of some users; the parts (training, test, also masked) begin with user ``first``."""
    train, test, also = map(received, parts)
    assert train is not None
    assert test is not None
    found = rank_held_out(UsersFrom(model, first), train, test, also_masked=also, users=users, top=top)
    return replace(found, users=found.users + first)


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
