"""What benchmarks run on: data, models, and the training step that several implementations share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcml.data.datasets import DatasetStore, load_dataset
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted
from dpcml.models import Recommender, create
from dpcml.models.multi_interest import MultiInterest
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.init import INITS
from dpcml.training.samplers import SAMPLERS, check_negatives
from dpcml.utils.arrays import FloatArray
from dpcml.utils.errors import ParameterError

DEFAULT_DATA = "steam-200k"
STEAM_USERS, STEAM_ITEMS, STEAM_POSITIVES = 3757, 5113, 115_139
POSITIVES_PER_USER = 40  # of the data sets of `sized_data`
SMALLEST = (10**5, 5000)  # positives and items: the catalogue of larger data sets grows from here


def load_data(name: str | None = None) -> tuple[str, Interactions]:
    """Return the name of a data set and the data.

    Parameters
    ----------
    name
        A named data set, a file, or ``planted`` for generated data of Steam-200k's shape. By default Steam-200k if it
        is on this machine, else ``planted``.

    Examples
    --------
    >>> name, data = load_data("planted")
    >>> data.n_users, data.n_items
    (3757, 5113)
    """
    if name is None:
        name = DEFAULT_DATA if DatasetStore().locate(DEFAULT_DATA) else "planted"
    if name == "planted":
        return name, planted(STEAM_USERS, STEAM_ITEMS, positives=STEAM_POSITIVES / STEAM_USERS).data
    return name, load_dataset(name)


def sized_data(positives: int, n_items: int | None = None) -> Interactions:
    """Return generated data with about this many positives, 40 per user.

    Without ``n_items`` the catalogue grows with the square root of the positives, from 5,000 items at 10^5.

    Examples
    --------
    >>> data = sized_data(4000)
    >>> data.n_users, data.n_items
    (100, 1000)
    """
    items = n_items or round(SMALLEST[1] * (positives / SMALLEST[0]) ** 0.5)
    return planted(max(1, positives // POSITIVES_PER_USER), items, positives=POSITIVES_PER_USER).data


def fitted(
    wanted: Recommender, train: Interactions, valid: Interactions | None, known: Sequence[Recommender] = ()
) -> Recommender:
    """Return a model fitted, with its random state, on some data: one that is known, if it is the same.

    Members of a blend need not be fitted twice.

    Examples
    --------
    >>> data = planted(50, 40, seed=1).data
    >>> once = fitted(create("itemknn"), data, None)
    >>> fitted(create("itemknn"), data, None, [once]) is once
    True
    """
    same = (one for one in known if one.identity() == wanted.identity())
    return next(same, None) or wanted.fit(train, valid)


def with_seed(model: Recommender, seed: int) -> Recommender:
    """Return the model with a random state, if it takes one.

    Examples
    --------
    >>> with_seed(create("cml"), 3).random_state
    3
    """
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def multi_interest_model(name: str, **parameters: Any) -> MultiInterest:
    """Return an unfitted model with user vectors.

    Examples
    --------
    >>> multi_interest_model("cml", dim=8).dim
    8
    >>> multi_interest_model("ease")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: ease: has no user vectors; use dpcml, cml or gfja
    """
    model = create(name)
    if not isinstance(model, MultiInterest):
        raise ParameterError(f"{name}: has no user vectors; use dpcml, cml or gfja")
    return model.set_params(**parameters)


@dataclass(frozen=True)
class StepConfig:
    """The training step of DPCML2 as the paper ran it on Steam-200k: hard negatives, Adam, users on the sphere.

    Examples
    --------
    >>> StepConfig(n_vectors=2, dim=8).mining_flops(n_positives=1)
    352
    """

    n_vectors: int = 5  # C
    dim: int = 100  # d
    n_candidates: int = 10  # S
    batch_size: int = 256
    max_user_run: int = 1  # positives of one user that follow each other in an epoch
    margin: float = 1.0
    diversity: tuple[float, float] = (0.05, 0.25)  # delta_1, delta_2
    diversity_weight: float = 10.0  # eta
    learning_rate: float = 3e-3
    seed: int = 0

    def mining_flops(self, n_positives: int) -> int:
        """Return the multiplications and additions of mining: 1 + S items against C vectors for every positive."""
        return 2 * n_positives * (1 + self.n_candidates) * self.n_vectors * self.dim

    def init(self, train: Interactions) -> tuple[FloatArray, FloatArray]:
        """Return random initial vectors: users (users, C, d) on the sphere, items (items, d) in the ball."""
        check_negatives(train)
        users, items = INITS["random"](train, self.n_vectors, self.dim, np.random.default_rng(self.seed))
        users /= np.linalg.norm(users, axis=2, keepdims=True)
        items /= np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1)
        return users, items

    def engine(self, train: Interactions, n_threads: int) -> Engine:
        """Return the package's engine for this step, compiled."""
        config = TrainConfig(
            sampler=SAMPLERS["hard"],
            n_candidates=self.n_candidates,
            n_negatives=1,
            margin=self.margin,
            pull=0.0,
            diversity=self.diversity,
            diversity_weight=self.diversity_weight,
            diversity_per_pair=False,
            users_on_sphere=True,
            items_on_sphere=False,
            optimizer="adam",
            batch_size=self.batch_size,
            max_user_run=self.max_user_run,
            seed=self.seed,
            average=0.0,
            n_threads=n_threads,
        )
        engine = Engine(train, *self.init(train), config)
        engine.compile()
        return engine
