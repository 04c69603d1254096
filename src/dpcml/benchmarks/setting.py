"""The training step that benchmarks measure, stated once for every implementation of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.models.trained import check_negatives
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.init import INITS
from dpcml.training.samplers import SAMPLERS
from dpcml.utils.arrays import FloatArray


@dataclass(frozen=True)
class Setting:
    """DPCML2 as the paper ran it on Steam-200k: hard negatives, Adam, users on the sphere, a random start.

    Examples
    --------
    >>> Setting(n_vectors=2, dim=8).mining_flops(n_positives=1)
    352
    """

    n_vectors: int = 5  # C
    dim: int = 100  # d
    n_candidates: int = 10  # S
    batch_size: int = 256
    together: int = 1  # positives of one user side by side
    margin: float = 1.0
    diversity: tuple[float, float] = (0.05, 0.25)  # delta_1, delta_2
    diversity_weight: float = 10.0  # eta
    rate: float = 3e-3
    seed: int = 0

    def mining_flops(self, n_positives: int) -> int:
        """Return the products and sums of mining: a positive and its candidates against all of a user's vectors."""
        return 2 * n_positives * (1 + self.n_candidates) * self.n_vectors * self.dim

    def start(self, train: Interactions) -> tuple[FloatArray, FloatArray]:
        """Return where vectors start: users (users, C, d) on the sphere, items (items, d) in the ball."""
        check_negatives(train)
        users, items = INITS["random"](train, self.n_vectors, self.dim, np.random.default_rng(self.seed))
        users /= np.linalg.norm(users, axis=2, keepdims=True)
        items /= np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1)
        return users, items

    def engine(self, train: Interactions, n_threads: int) -> Engine:
        """Return our engine for this step, compiled."""
        plan = TrainConfig(
            sampler=SAMPLERS["hard"],
            n_candidates=self.n_candidates,
            margin=self.margin,
            diversity=self.diversity,
            diversity_weight=self.diversity_weight,
            diversity_per_pair=False,
            users_on_sphere=True,
            items_on_sphere=False,
            optimiser="adam",
            batch_size=self.batch_size,
            max_user_run=self.together,
            seed=self.seed,
            n_threads=n_threads,
        )
        engine = Engine(train, *self.start(train), plan)
        engine.compile()
        return engine
