"""The engine's step in the best PyTorch that we could write: what remains is the price of one call per operation.

Negatives are drawn for many batches at once and looked up in a bitmap (or in sorted keys, where a bitmap would be too
large). Gradients are in closed form and only of rows that a batch touches; Adam steps on those rows, in place. Tried
without gain, by processor time on one thread: `torch.compile` of mining (1%) and of the whole step (slower), vectors
and moments in one table, the nearest vector along the last axis.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcml.benchmarks.setting import Setting
from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import FloatArray
from dpcml.utils.packages import require

BITMAP_BYTES = 2**28  # beyond that, a search in sorted keys
CHUNK = 2**16  # positives whose negatives are drawn together
KEEP_FIRST, KEEP_SECOND, EPSILON = 0.9, 0.999, 1e-8


class Rows:
    """Vectors with what Adam knows of each, changed only where a batch touches them."""

    def __init__(self, torch: Any, vectors: FloatArray, rate: float) -> None:
        self._torch = torch
        self.vectors = torch.tensor(vectors.reshape(-1, vectors.shape[-1]))  # (rows, d)
        self._first, self._second = torch.zeros_like(self.vectors), torch.zeros_like(self.vectors)
        self._steps = 0
        self._place = torch.zeros(len(self.vectors), dtype=torch.int64)
        self._rate = rate

    def gather(self, rows: Any) -> Any:
        """Return some vectors; shape (rows, d)."""
        return self.vectors.index_select(0, rows)

    def step(self, rows: Any, gradients: Any, *, on_sphere: bool) -> None:
        """Sum gradients of equal rows, take one step of Adam on each row, and project it."""
        torch = self._torch
        count = torch.arange(len(rows))
        self._place.index_copy_(0, rows, count)  # of equal rows, one wins
        wins = self._place.index_select(0, rows)
        leads = wins == count
        slot = (torch.cumsum(leads, 0) - 1).index_select(0, wins)
        touched = rows.masked_select(leads)
        gradient = torch.zeros(len(touched), gradients.shape[1]).index_add_(0, slot, gradients)
        self._steps += 1
        correction = math.sqrt(1 - KEEP_SECOND**self._steps)
        length, offset = self._rate * correction / (1 - KEEP_FIRST**self._steps), EPSILON * correction
        tables = self.vectors, self._first, self._second
        vectors, first, second = (table.index_select(0, touched) for table in tables)
        first.lerp_(gradient, 1 - KEEP_FIRST)
        second.mul_(KEEP_SECOND).addcmul_(gradient, gradient, value=1 - KEEP_SECOND)
        vectors.addcdiv_(first, second.sqrt().add_(offset), value=-length)
        norm = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        vectors.div_(norm if on_sphere else norm.clamp_(min=1.0))
        for table, values in zip(tables, (vectors, first, second), strict=True):
            table.index_copy_(0, touched, values)


class BestTraining:
    """Trains with the engine's mathematics; one call per epoch.

    Examples
    --------
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((20, 30)) < 0.3)
    >>> training = BestTraining(data, Setting(n_vectors=2, dim=8, batch_size=32))
    >>> losses = [training.epoch() for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(self, train: Interactions, setting: Setting) -> None:
        torch = self._torch = require("torch", "neural")
        self.setting, self._n_items = setting, train.n_items
        users, items = setting.start(train)
        self.users, self.items = Rows(torch, users, setting.rate), Rows(torch, items, setting.rate)
        self._user_of = torch.from_numpy(train.rows.astype(np.int64))
        self._item_of = torch.from_numpy(train.indices.astype(np.int64))
        self._random = torch.Generator().manual_seed(setting.seed)
        self._keys = self._user_of * train.n_items + self._item_of  # ascending
        self._bitmap = None
        if train.n_users * train.n_items <= BITMAP_BYTES:
            self._bitmap = torch.zeros(train.n_users * train.n_items, dtype=torch.bool)
            self._bitmap[self._keys] = True
        self._vectors = torch.arange(setting.n_vectors)

    def epoch(self) -> float:
        """Train on every positive once, in a new order; returns the mean hinge per positive."""
        torch, size = self._torch, self.setting.batch_size
        order = torch.randperm(len(self._user_of), generator=self._random)
        users, items = self._user_of[order], self._item_of[order]
        chunk = max(1, CHUNK // size) * size
        loss = 0.0
        with torch.inference_mode():
            for begin in range(0, len(order), chunk):
                some = slice(begin, begin + chunk)
                candidates = self.draw(users[some])
                batches = (whole.split(size) for whole in (users[some], items[some], candidates))
                loss += float(sum(self.step(*batch) for batch in zip(*batches, strict=True)))
        return loss / len(order)

    def draw(self, users: Any) -> Any:
        """Return items that each user does not like; shape (users, S). Positives are drawn again."""
        torch = self._torch
        wanted = self.setting.n_candidates
        drawn = torch.randint(self._n_items, (len(users) * wanted,), generator=self._random)
        keys = (users * self._n_items).repeat_interleave(wanted)
        bad = torch.nonzero(self._liked(keys + drawn))[:, 0]
        while len(bad):
            again = torch.randint(self._n_items, (len(bad),), generator=self._random)
            drawn[bad] = again
            bad = bad[self._liked(keys[bad] + again)]
        return drawn.view(-1, wanted)

    def _liked(self, keys: Any) -> Any:
        if self._bitmap is not None:
            return self._bitmap[keys]
        place = self._torch.searchsorted(self._keys, keys).clamp_(max=len(self._keys) - 1)
        return self._keys[place] == keys

    def step(self, users: Any, positives: Any, candidates: Any) -> Any:
        """Train on one batch: shapes (B,), (B,), (B, S). Returns the summed hinge."""
        torch, setting = self._torch, self.setting
        chosen = torch.cat([positives[:, None], candidates], dim=1)  # (B, 1 + S)
        hinge, winner, negative, negative_winner = self.mine(users, chosen)
        active = torch.nonzero(hinge > 0)[:, 0]
        first = users.index_select(0, active) * setting.n_vectors
        near_rows, far_rows = first + winner.index_select(0, active), first + negative_winner.index_select(0, active)
        liked, disliked = positives.index_select(0, active), negative.index_select(0, active)
        near = (self.users.gather(near_rows) - self.items.gather(liked)).mul_(2)
        far = (self.items.gather(disliked) - self.users.gather(far_rows)).mul_(2)
        rows, gradients = [near_rows, far_rows], [near, far]
        if setting.n_vectors > 1 and setting.diversity_weight > 0:
            spread_rows, spread = self._diversity(users)
            rows.append(spread_rows)
            gradients.append(spread)
        item_gradients = torch.cat([near, far]).neg_()
        self.users.step(torch.cat(rows), torch.cat(gradients), on_sphere=True)
        self.items.step(torch.cat([liked, disliked]), item_gradients, on_sphere=False)
        return hinge.sum()

    def vectors_of(self, users: Any) -> Any:
        """Return all vectors of some users; shape (users, C, d)."""
        return self.users.vectors.view(-1, self.setting.n_vectors, self.setting.dim).index_select(0, users)

    def mine(self, users: Any, chosen: Any) -> tuple[Any, Any, Any, Any]:
        """Return hinge, the positive's nearest vector, the hardest candidate and its nearest vector; each (B,)."""
        torch, setting = self._torch, self.setting
        mine = self.vectors_of(users)  # (B, C, d)
        theirs = self.items.gather(chosen.reshape(-1)).view(*chosen.shape, setting.dim)  # (B, 1 + S, d)
        own = torch.linalg.vecdot(mine, mine)[:, :, None]
        cross = torch.baddbmm(own, mine, theirs.transpose(1, 2), alpha=-2)  # (B, C, 1 + S)
        distance, nearest = cross.min(dim=1)
        distance += torch.linalg.vecdot(theirs, theirs)
        hardest, place = distance[:, 1:].min(dim=1)
        place = place[:, None] + 1
        hinge = torch.relu(setting.margin + distance[:, 0] - hardest)
        return hinge, nearest[:, 0], chosen.gather(1, place)[:, 0], nearest.gather(1, place)[:, 0]

    def _diversity(self, users: Any) -> tuple[Any, Any]:
        """Return rows and gradients of the hinge on the diversity of the batch's users, each of them once."""
        torch, n = self._torch, self.setting.n_vectors
        lower, upper = self.setting.diversity
        users = torch.unique(users)
        mine = self.vectors_of(users)  # (users, C, d)
        summed = mine.sum(dim=1)
        squares = torch.linalg.vecdot(mine, mine).sum(dim=1)
        diversity = (n * squares - torch.linalg.vecdot(summed, summed)) / (n * (n - 1))
        sign = (diversity > upper).float() - (diversity < lower).float()
        out = torch.nonzero(sign)[:, 0]
        weight = sign.index_select(0, out) * (self.setting.diversity_weight * 2 / (n * (n - 1)))
        gradients = (n * mine.index_select(0, out) - summed.index_select(0, out)[:, None, :]) * weight[:, None, None]
        rows = (users.index_select(0, out) * n)[:, None] + self._vectors
        return rows.reshape(-1), gradients.view(-1, self.setting.dim)
