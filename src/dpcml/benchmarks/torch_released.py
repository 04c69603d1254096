"""DPCML2 in plain PyTorch, step by step as the paper's released code is described: the yardstick of its authors' users.

Negatives are drawn in Python, autograd differentiates dense tables, the diversity hinge goes over all users on every
batch, Adam moves every parameter, and every vector is projected afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcml.benchmarks.setting import Setting
from dpcml.data.interactions import Interactions
from dpcml.utils.arrays import Array, IntArray
from dpcml.utils.packages import require


class ReleasedTraining:
    """Trains as the released code does; an epoch can be cut short, to be extrapolated.

    Parameters
    ----------
    train, setting
        What is trained.
    ordered_pairs
        Take the diversity hinge over ordered pairs of vectors, as the paper's formula is written. Half of them give
        the same value for less than half the time; either way the step is the same.

    Examples
    --------
    >>> data = Interactions.from_csr(np.random.default_rng(0).random((20, 30)) < 0.3)
    >>> training = ReleasedTraining(data, Setting(n_vectors=2, dim=8, batch_size=32))
    >>> losses = [training.run(n_batches=3) for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(self, train: Interactions, setting: Setting, *, ordered_pairs: bool = True) -> None:
        torch = self._torch = require("torch", "neural")
        self.setting, self._train, self._ordered = setting, train, ordered_pairs
        users, items = setting.start(train)
        self.users = torch.nn.Parameter(torch.tensor(users))  # (users, C, d)
        self.items = torch.nn.Parameter(torch.tensor(items))  # (items, d)
        self._adam = torch.optim.Adam([self.users, self.items], lr=setting.rate)
        self._liked = [set(train.of(user).tolist()) for user in range(train.n_users)]
        self._rng = np.random.default_rng(setting.seed)
        self.n_batches = -(-train.n_positives // setting.batch_size)

    def run(self, n_batches: int | None = None) -> float:
        """Train on some batches of a shuffled epoch, all by default; returns the mean loss of a batch."""
        size = self.setting.batch_size
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
        loss = torch.relu(self.setting.margin + near[:, 0] - hardest).sum()
        loss = loss + self.setting.diversity_weight * self._diversity_hinge()
        loss.backward()
        self._adam.step()
        self._project()
        return float(loss.detach())

    def _draw(self, users: IntArray) -> Array:
        """Return items that each user does not like, shape (B, S), drawn user by user."""
        n_items, wanted = self._train.n_items, self.setting.n_candidates
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
        if self.setting.n_vectors == 1:
            return 0.0
        torch, n = self._torch, self.setting.n_vectors
        lower, upper = self.setting.diversity
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
