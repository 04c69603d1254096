"""Models that look at the items a user likes: their histories, and scores of all items by tables of pairs of items."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.neural.backend import load_torch, tensor
from dpcml.models.neural.base import NeuralRecommender, ParameterTable, ball_tables
from dpcml.models.neural.learner import Tensors
from dpcml.models.neural.space import UnitBall
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor

    _Neural = NeuralRecommender
else:
    _Neural = object  # at run time no further level between a model and its base class

PAIR_FLOATS = 2**22  # of a table of pairs
USER_FLOATS = 2**20  # of what some users read from it


class ReadsHistory(_Neural):
    """What a `NeuralRecommender` inherits too if its score of a user and an item reads the items that the user likes.

    What such an item has to do with the target depends on the two items, not on the user. So scores of all items take
    it from a table of pairs, made once for the items that some of the users like, not once for each user.
    """

    history: int
    space = UnitBall()
    renamed_params = {"start": "init"}  # noqa: RUF012

    def _check(self) -> None:
        super()._check()
        at_least("history", self.history, 1)

    def _tables(self, n_users: int, n_items: int) -> dict[str, ParameterTable]:
        return ball_tables(n_users, n_items, self.dim)

    def _known(self, train: Interactions, device: str) -> dict[str, Any]:
        return {"history": tensor(histories(train, self.history, self.random_state), device)}

    @abstractmethod
    def _pairs(self, p: Tensors, past: Tensor, items: Tensor) -> tuple[Tensor, ...]:
        """Return tables of items in histories (P,) and targets (K,), each of shape (P + 1, ..., K).

        The last row is for places of a history that are empty; it and the pairs of an item with itself do not count.
        """

    @abstractmethod
    def _score_pairs(
        self, p: Tensors, users: Tensor, place: Tensor, pairs: tuple[Tensor, ...], items: Tensor
    ) -> Tensor:
        """Return scores (B, K) of users (B,), whose histories are the rows ``place`` (B, H) of the tables."""

    def _blocks(self, p: Tensors, rows: IntArray, n_items: int, device: str) -> FloatArray:
        torch = load_torch()
        scores = np.empty((len(rows), n_items), dtype=np.float32)
        if not len(rows):
            return scores
        users = torch.from_numpy(rows.astype(np.int64)).to(device)
        with torch.no_grad():
            liked = p["history"][users]  # (B, H)
            lengths = (liked >= 0).sum(1)
            order = lengths.argsort(stable=True)  # users with short histories need not wait for long ones
            past, place = liked.unique(return_inverse=True)
            empty = int(past[0]) < 0
            past = past[int(empty) :] if len(past) > int(empty) else past.new_zeros(1)  # nobody likes anything: no rows
            place = torch.where(liked < 0, len(past), place - int(empty))
            floats = self._floats_per_user(1)  # per item
            width = max(1, min(n_items, PAIR_FLOATS * self.history // ((1 + len(past)) * floats)))
            height = max(1, USER_FLOATS // (floats * width))
            for items in torch.arange(n_items, device=device).split(width):
                pairs = self._pairs(p, past, items)
                columns = slice(int(items[0]), int(items[-1]) + 1)
                for some in order.split(height):
                    longest = max(1, int(lengths[some[-1]]))
                    found = self._score_pairs(p, users[some], place[some, :longest], pairs, items)
                    scores[some.cpu().numpy(), columns] = found.cpu().numpy()
        return scores


def hidden(liked: Tensor, items: Tensor) -> Tensor:
    """Return which places of a history (B, H) do not count for items (B, K): empty ones, and the item itself."""
    return (items[:, :, None] == liked[:, None, :]) | (liked < 0)[:, None, :]  # (B, K, H)


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
