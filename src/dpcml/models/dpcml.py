"""DPCML: several vectors per user, in one metric space with the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.ranks import Scorer
from dpcml.models.base import Recommender
from dpcml.models.multi_interest import MultiInterest
from dpcml.models.parameters import register
from dpcml.models.trained import Trained
from dpcml.models.vectors import nearest_scores
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.init import INITS
from dpcml.training.order import default_user_run
from dpcml.training.samplers import SAMPLERS
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import at_least, bounds, choice, positive
from dpcml.utils.errors import ParameterError
from dpcml.utils.threads import thread_count

Bounds = tuple[float | None, float | None]
OLD_NAMES = {"together": "max_user_run", "start": "init", "optimiser": "optimizer"}


@register("dpcml")
@dataclass(eq=False)
class DPCML(MultiInterest, Trained[Engine]):
    """Diversity-Promoting Collaborative Metric Learning (Bao et al., 2022).

    A user has C vectors, an item one; the score of an item is minus its squared distance to the nearest of them. A
    hinge pulls positives closer than negatives by a margin, and a second one keeps half the mean squared distance of
    a user's vectors between two bounds (DCRS), so that they neither collapse nor scatter.

    Parameters
    ----------
    n_vectors
        Vectors per user, C.
    dim
        Dimension, d.
    margin
        How much closer a positive must be than a negative.
    negatives
        ``hard`` (of uniform candidates the closest), ``uniform``, ``popularity`` (all candidates), or ``two-stage``
        (popular candidates, one like the positive).
    n_candidates
        Candidates per positive, S; by default from 10 for dense data to 30 for sparse data, because the hardest of many
        candidates is, in dense data, often a positive that was not seen yet.
    popularity_exponent
        Candidates of ``popularity`` and ``two-stage`` are drawn by training frequency to this power.
    diversity
        Bounds (delta_1, delta_2); ``None`` leaves a bound out.
    diversity_weight
        Weight eta of the diversity hinge; 0 leaves it out.
    diversity_per
        ``user``: the hinge is on the mean over pairs, as in the paper's text; ``pair``: on each pair, as in its code.
    projection
        User vectors stay on the unit ``sphere``, or in the unit ``ball``; item vectors stay in the ball.
    init
        ``spectral`` or ``random``; see `dpcml.training.init`.
    optimizer
        ``adam`` or ``adagrad``, on touched rows.
    learning_rate, schedule
        Rate, and how it falls: ``constant``, ``linear``, ``cosine``.
    batch_size, epochs
        Positives per step, and passes over all positives.
    max_user_run
        Positives of one user that go into a batch side by side, at most: 1 shuffles all positives, as in the paper;
        more are faster on large data, where vectors come from far memory. By default from 1 to 4, an eighth of the
        positives that users have on average: with fewer, long runs cost accuracy.
    validate_every, patience, metric
        With a validation part: look every so many epochs at this metric (released protocol), stop after so many looks
        without improvement (None: never), and keep the best state.
    random_state
        Seed: the same seed gives the same bits, whatever the number of threads.
    n_threads
        Threads; all cores by default.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
    >>> model.recommend(0, n=1)[0]
    array([4])
    >>> model.user_vectors_.shape, model.item_vectors_.shape
    ((12, 2, 8), (10, 8))
    """

    n_vectors: int = 4
    dim: int = 100
    margin: float = 1.0
    negatives: str = "hard"
    n_candidates: int | None = None
    popularity_exponent: float = 1.0
    diversity: Bounds = (0.02, 0.15)
    diversity_weight: float = 10.0
    diversity_per: Literal["user", "pair"] = "user"
    projection: Literal["sphere", "ball"] = "sphere"
    init: str = "spectral"
    optimizer: Literal["adam", "adagrad"] = "adam"
    learning_rate: float = 0.003
    schedule: str = "linear"
    batch_size: int = 256
    epochs: int = 50
    max_user_run: int | None = None
    validate_every: int = 5
    patience: int | None = 4
    metric: str = "P@3"
    random_state: int = 0
    n_threads: int | None = None

    renamed_params = OLD_NAMES
    items_on_sphere: ClassVar[bool] = False

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Recommender:
        """Return a model with named settings, such as ``dpcml2``; all names are in `dpcml.models.presets.PRESETS`.

        Examples
        --------
        >>> DPCML.preset("dpcml2", epochs=5).n_candidates
        10
        """
        from dpcml.models.create import create
        from dpcml.models.presets import PRESETS

        PRESETS[name]  # says what is wrong with the name; `create` takes those of models too
        return create(name, **changes)

    def _check(self) -> None:
        super()._check()
        for field in ("n_vectors", "dim", "batch_size"):
            at_least(field, getattr(self, field), 1)
        for field in ("n_candidates", "max_user_run"):
            if getattr(self, field) is not None:
                at_least(field, getattr(self, field), 1)
        positive("margin", self.margin)
        for field in ("diversity_weight", "popularity_exponent"):
            positive(field, getattr(self, field), or_zero=True)
        choice("diversity_per", self.diversity_per, ("user", "pair"))
        choice("projection", self.projection, ("sphere", "ball"))
        choice("optimizer", self.optimizer, ("adam", "adagrad"))
        for field, registry in (("negatives", SAMPLERS), ("init", INITS)):
            choice(field, getattr(self, field), tuple(registry))
        bounds("diversity", self.diversity)

    def _learner(self, train_data: Interactions) -> Engine:
        rng = np.random.default_rng(self.random_state)
        users, items = INITS[self.init](train_data, self.n_vectors, self.dim, rng)
        return Engine(train_data, users, items, self._plan(train_data))

    def _plan(self, train_data: Interactions) -> TrainConfig:
        return TrainConfig(
            sampler=SAMPLERS[self.negatives].with_exponent(self.popularity_exponent),
            n_candidates=self.n_candidates or _candidates(train_data),
            margin=self.distance_margin(),
            diversity=bounds("diversity", self.diversity),
            diversity_weight=self.diversity_weight,
            diversity_per_pair=self.diversity_per == "pair",
            users_on_sphere=self.projection == "sphere",
            items_on_sphere=self.items_on_sphere,
            optimizer=self.optimizer,
            batch_size=self.batch_size,
            max_user_run=self.max_user_run or default_user_run(train_data.n_positives, train_data.n_users),
            seed=self.random_state,
            n_threads=thread_count(self.n_threads),
        )

    def distance_margin(self) -> float:
        """Return the margin in squared distances, the engine's terms."""
        return self.margin

    def _scorer(self, learner: Engine) -> Scorer:
        return _EngineScorer(learner)

    def _keep(self, learner: Engine) -> None:
        self.user_vectors_, self.item_vectors_ = learner.release()

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        train_data = self.check_fitted()
        return {
            "user_vectors_": (train_data.n_users, self.n_vectors, self.dim),
            "item_vectors_": (train_data.n_items, self.dim),
        }


def _candidates(train_data: Interactions) -> int:
    """Return how many candidates suit the data: about 0.15 positives' worth by chance, from 10 to 30."""
    density = train_data.n_positives / (train_data.n_users * train_data.n_items)
    return int(np.clip(round(0.15 / density), 10, 30))


@dataclass(frozen=True)
class _EngineScorer:
    """Scores of an engine in the middle of training."""

    engine: Engine

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        return nearest_scores(self.engine.padded_user_vectors[users], self.engine.items.vectors)


@register("cml")
@dataclass(eq=False)
class CML(DPCML):
    """Collaborative Metric Learning (Hsieh et al., 2017): one vector per user.

    Takes the parameters of `DPCML`; ``n_vectors`` must be 1, and those of the diversity have no effect.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> CML(dim=8, epochs=20, n_candidates=3).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    n_vectors: int = 1
    diversity_weight: float = 0.0

    def _check(self) -> None:
        super()._check()
        if self.n_vectors != 1:
            raise ParameterError(f"n_vectors={self.n_vectors}: CML has one vector per user; use DPCML for more")
