"""The training step in PyTorch, twice: as the paper's released code is described, and as fast as we could make it.

`ReleasedTraining` draws negatives in Python, differentiates dense tables with autograd, takes the diversity hinge over
all users in every batch, steps Adam on every parameter and projects every vector afterwards.

`BestTraining` draws negatives for many batches at once and looks positives up in a bitmap (in sorted keys where a
bitmap would be too large). Gradients are in closed form and only of rows that a batch touches; Adam steps on those
rows, in place. Tried without gain, by processor time on one thread: `torch.compile` of mining (1%) and of the whole
step (slower), vectors and moments in one table, the nearest vector along the last axis.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.workloads import StepConfig
from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.packages import require

BITMAP_BYTES = 2**28  # larger data: binary search in sorted keys
CHUNK = 2**16  # positives whose negatives are drawn together
KEEP_FIRST, KEEP_SECOND, EPSILON = 0.9, 0.999, 1e-8


class ReleasedTraining:
    """Trains as the released code does; `run` may stop after some batches of an epoch.

    Parameters
    ----------
    train, step
        Training positives, and the step with its sizes.
    ordered_pairs
        Take the diversity hinge over ordered pairs of vectors, as the paper's formula is written. Unordered pairs
        give the same value in less than half the time.

    Examples
    --------
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((20, 30)) < 0.3)
    >>> training = ReleasedTraining(data, StepConfig(n_vectors=2, dim=8, batch_size=32))
    >>> losses = [training.run(n_batches=3) for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(self, train: Interactions, step: StepConfig, *, ordered_pairs: bool = True) -> None:
        torch = self._torch = require("torch", "neural")
        self.config, self._train, self._ordered = step, train, ordered_pairs
        users, items = step.init(train)
        self.users = torch.nn.Parameter(torch.tensor(users))  # (users, C, d)
        self.items = torch.nn.Parameter(torch.tensor(items))  # (items, d)
        self._adam = torch.optim.Adam([self.users, self.items], lr=step.learning_rate)
        self._liked = [set(train.of(user).tolist()) for user in range(train.n_users)]
        self._rng = np.random.default_rng(step.seed)
        self.n_batches = -(-train.n_positives // step.batch_size)

    def run(self, n_batches: int | None = None) -> float:
        """Train on some batches of a shuffled epoch, all by default; returns the mean loss of a batch."""
        size = self.config.batch_size
        order = self._rng.permutation(self._train.n_positives)
        losses = []
        for batch in range(min(n_batches or self.n_batches, self.n_batches)):
            some = order[batch * size : (batch + 1) * size]
            losses.append(self._step(self._train.rows[some], self._train.indices[some]))
        return float(np.mean(losses))

    def _step(self, users: IntArray, positives: IntArray) -> float:
        torch = self._torch
        negatives = self._draw(users)
        rows = torch.from_numpy(users.astype(np.int64))
        liked = torch.from_numpy(positives.astype(np.int64))
        self._adam.zero_grad()
        mine = self.users[rows]  # (B, C, d)
        near = self._distance(mine, self.items[liked][:, None, :])  # (B, 1)
        far = self._distance(mine, self.items[torch.from_numpy(negatives)])  # (B, S)
        hardest = far.min(dim=1).values
        loss = torch.relu(self.config.margin + near[:, 0] - hardest).sum()
        loss = loss + self.config.diversity_weight * self._diversity_hinge()
        loss.backward()
        self._adam.step()
        self._project()
        return float(loss.detach())

    def _draw(self, users: IntArray) -> Array:
        """Return items that each user does not like, shape (B, S), drawn user by user."""
        n_items, wanted = self._train.n_items, self.config.n_candidates
        drawn = np.empty((len(users), wanted), dtype=np.int64)
        for b, user in enumerate(users.tolist()):
            liked = self._liked[user]
            kept: list[int] = []
            while len(kept) < wanted:
                some = self._rng.integers(n_items, size=wanted - len(kept)).tolist()
                kept += [item for item in some if item not in liked]
            drawn[b] = kept
        return drawn

    @staticmethod
    def _distance(mine: Any, theirs: Any) -> Any:
        """Return the squared distance of each item to the nearest of the user's vectors; shape (B, items)."""
        return (mine[:, :, None, :] - theirs[:, None, :, :]).pow(2).sum(dim=-1).min(dim=1).values

    def _diversity_hinge(self) -> Any:
        """Return the hinge on half the squared distance of every two vectors of a user, averaged over all users."""
        if self.config.n_vectors == 1:
            return 0.0
        torch, n = self._torch, self.config.n_vectors
        lower, upper = self.config.diversity
        if self._ordered:
            apart = ~torch.eye(n, dtype=torch.bool)
            half = (self.users[:, :, None] - self.users[:, None, :]).pow(2).sum(dim=-1)[:, apart] / 2  # (users, pairs)
        else:
            first, second = torch.triu_indices(n, n, offset=1)
            half = (self.users[:, first] - self.users[:, second]).pow(2).sum(dim=-1) / 2
        return (torch.relu(lower - half) + torch.relu(half - upper)).mean()

    def _project(self) -> None:
        with self._torch.no_grad():
            self.users.div_(self.users.norm(dim=-1, keepdim=True).clamp(min=1e-12))
            self.items.div_(self.items.norm(dim=-1, keepdim=True).clamp(min=1.0))


class Rows:
    """A table of vectors with Adam's moments, updated only in the rows of a batch."""

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
    """Trains with the formulas of the package's engine.

    Examples
    --------
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((20, 30)) < 0.3)
    >>> training = BestTraining(data, StepConfig(n_vectors=2, dim=8, batch_size=32))
    >>> losses = [training.epoch() for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(self, train: Interactions, step: StepConfig) -> None:
        torch = self._torch = require("torch", "neural")
        self.config, self._n_items = step, train.n_items
        users, items = step.init(train)
        self.users, self.items = Rows(torch, users, step.learning_rate), Rows(torch, items, step.learning_rate)
        self._user_of = torch.from_numpy(train.rows.astype(np.int64))
        self._item_of = torch.from_numpy(train.indices.astype(np.int64))
        self._random = torch.Generator().manual_seed(step.seed)
        self._keys = self._user_of * train.n_items + self._item_of  # ascending
        self._bitmap = None
        if train.n_users * train.n_items <= BITMAP_BYTES:
            self._bitmap = torch.zeros(train.n_users * train.n_items, dtype=torch.bool)
            self._bitmap[self._keys] = True
        self._vectors = torch.arange(step.n_vectors)

    def epoch(self) -> float:
        """Train on every positive once, in a new order; returns the mean hinge per positive."""
        torch, size = self._torch, self.config.batch_size
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
        wanted = self.config.n_candidates
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
        torch, config = self._torch, self.config
        chosen = torch.cat([positives[:, None], candidates], dim=1)  # (B, 1 + S)
        hinge, winner, negative, negative_winner = self.mine(users, chosen)
        active = torch.nonzero(hinge > 0)[:, 0]
        first = users.index_select(0, active) * config.n_vectors
        near_rows, far_rows = first + winner.index_select(0, active), first + negative_winner.index_select(0, active)
        liked, disliked = positives.index_select(0, active), negative.index_select(0, active)
        near = (self.users.gather(near_rows) - self.items.gather(liked)).mul_(2)
        far = (self.items.gather(disliked) - self.users.gather(far_rows)).mul_(2)
        rows, gradients = [near_rows, far_rows], [near, far]
        if config.n_vectors > 1 and config.diversity_weight > 0:
            spread_rows, spread = self._diversity(users)
            rows.append(spread_rows)
            gradients.append(spread)
        item_gradients = torch.cat([near, far]).neg_()
        self.users.step(torch.cat(rows), torch.cat(gradients), on_sphere=True)
        self.items.step(torch.cat([liked, disliked]), item_gradients, on_sphere=False)
        return hinge.sum()

    def vectors_of(self, users: Any) -> Any:
        """Return all vectors of some users; shape (users, C, d)."""
        return self.users.vectors.view(-1, self.config.n_vectors, self.config.dim).index_select(0, users)

    def mine(self, users: Any, chosen: Any) -> tuple[Any, Any, Any, Any]:
        """Return hinge, the positive's nearest vector, the hardest candidate and its nearest vector; each (B,)."""
        torch, config = self._torch, self.config
        mine = self.vectors_of(users)  # (B, C, d)
        theirs = self.items.gather(chosen.reshape(-1)).view(*chosen.shape, config.dim)  # (B, 1 + S, d)
        own = torch.linalg.vecdot(mine, mine)[:, :, None]
        cross = torch.baddbmm(own, mine, theirs.transpose(1, 2), alpha=-2)  # (B, C, 1 + S)
        distance, nearest = cross.min(dim=1)
        distance += torch.linalg.vecdot(theirs, theirs)
        hardest, place = distance[:, 1:].min(dim=1)
        place = place[:, None] + 1
        hinge = torch.relu(config.margin + distance[:, 0] - hardest)
        return hinge, nearest[:, 0], chosen.gather(1, place)[:, 0], nearest.gather(1, place)[:, 0]

    def _diversity(self, users: Any) -> tuple[Any, Any]:
        """Return rows and gradients of the hinge on the diversity of the batch's users, each of them once."""
        torch, n = self._torch, self.config.n_vectors
        lower, upper = self.config.diversity
        users = torch.unique(users)
        mine = self.vectors_of(users)  # (users, C, d)
        summed = mine.sum(dim=1)
        squares = torch.linalg.vecdot(mine, mine).sum(dim=1)
        diversity = (n * squares - torch.linalg.vecdot(summed, summed)) / (n * (n - 1))
        sign = (diversity > upper).float() - (diversity < lower).float()
        out = torch.nonzero(sign)[:, 0]
        weight = sign.index_select(0, out) * (self.config.diversity_weight * 2 / (n * (n - 1)))
        gradients = (n * mine.index_select(0, out) - summed.index_select(0, out)[:, None, :]) * weight[:, None, None]
        rows = (users.index_select(0, out) * n)[:, None] + self._vectors
        return rows.reshape(-1), gradients.view(-1, self.config.dim)
