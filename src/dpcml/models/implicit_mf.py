"""Matrix factorisations of positives, whose scores are inner products: their base, and BPR by the package implicit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.evaluation.ranks import Scorer
from dpcml.models.base import Recommender
from dpcml.models.parameters import register
from dpcml.retrieval.content import ContentRidge
from dpcml.training.trainer import FitOptions, Learner, Trainer, TrainingError
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least, positive
from dpcml.utils.packages import require

EXTRA = "peers"


class FactorLearner(Learner, Scorer, Protocol):
    """A learner of one vector per user and per item."""

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the vectors of users and of items."""


class ImplicitMF(Recommender):
    """A vector per user and per item, trained in epochs."""

    dim: int
    random_state: int
    user_factors_: FloatArray
    item_factors_: FloatArray

    iterative = True

    @abstractmethod
    def _learner(self, train: Interactions) -> FactorLearner:
        """Return what trains the vectors."""

    def _check(self) -> None:
        Trainer.from_params(self.get_params())
        at_least("dim", self.dim, 1)
        at_least("random_state", self.random_state, 0)

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        learner = self._learner(train)
        trainer = Trainer.from_params(self.get_params())
        self.history_ = trainer.fit(learner, learner, train, valid, options, self.identity())
        self.user_factors_, self.item_factors_ = learner.factors()

    def _width(self) -> int:
        """Return the length of the vectors."""
        return self.dim

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        data = self.check_fitted()
        return {
            "user_factors_": (data.n_users, self._width()),
            "item_factors_": (data.n_items, self._width()),
        }

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the inner products of the users' vectors with all items'; shape (users, items)."""
        rows = self._rows(users)
        return np.asarray(self.user_factors_[rows] @ self.item_factors_.T)

    def _add_items(self, both: Interactions, ridge: ContentRidge) -> None:
        self.item_factors_ = ridge.extend(self.item_factors_)

    def _similarity(self, columns: IntArray) -> FloatArray:
        items = self.item_factors_[:, : self.dim]  # without a bias
        items = items / np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1e-12)
        return np.asarray(items[columns] @ items.T)


@register("bpr")
@dataclass(eq=False)
class BPR(ImplicitMF):
    """Bayesian personalised ranking (Rendle et al., 2009): a positive should score above a negative.

    Stochastic gradient steps on ``-log sigmoid(x_ui - x_uj) + l2 |theta|^2`` with ``x_ui = p_u . q_i + b_i`` for
    samples of a positive (u, i) and another item j, drawn by training frequency and skipped if the user likes it. The
    loss in the history is the share of pairs in the wrong order. It runs on one thread: implicit's threads write to the
    same vectors without locks, so that results with several threads would vary. Only `fit` needs implicit
    (Frederickson, 2016): ``pip install -e '.[peers]'``.

    Parameters
    ----------
    dim
        Length of the vectors, without the bias of an item.
    l2
        Ridge penalty.
    learning_rate
        Step size.
    epochs
        Each has as many samples as there are positives. Too many hurt: pass a validation part too.
    validate_every, patience, metric
        With a validation part: evaluate ``metric`` (released protocol) every ``validate_every`` epochs, stop after
        ``patience`` evaluations without improvement (None: never), and keep the best state.
    stop_after
        End the training after this epoch; the schedule stays that of ``epochs``. `settled` sets it.
    random_state
        Seed: the same seed gives the same bits.

    Examples
    --------
    >>> import numpy as np
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> BPR(dim=4).fit(likes).recommend(0, n=1)[0]
    array([4])
    """

    dim: int = 64
    l2: float = 0.001
    learning_rate: float = 0.01
    epochs: int = 150
    validate_every: int = 10
    patience: int | None = 10
    metric: str = "P@3"
    random_state: int = 0
    stop_after: int | None = None

    def _check(self) -> None:
        super()._check()
        positive("l2", self.l2, or_zero=True)
        positive("learning_rate", self.learning_rate)

    def _width(self) -> int:
        return self.dim + 1  # an item's bias, and 1 for every user

    def _learner(self, train: Interactions) -> BPRLearner:
        kind = require("implicit", EXTRA).cpu.bpr.BayesianPersonalizedRanking
        return BPRLearner(kind(factors=self.dim, regularization=self.l2, num_threads=1), train.csr, self.random_state)


class BPRLearner:
    """BPR of implicit as a learner: an epoch per call, which changes the factors in place.

    Parameters
    ----------
    model
        An unfitted model of implicit.
    likes
        Positives, shape (users, items).
    seed
        Seed of the initial factors and of every epoch, whatever was run before it.
    """

    def __init__(self, model: Any, likes: sparse.csr_array, seed: int) -> None:
        # implicit wants the older kind of matrix, which it may write to
        data, indices, indptr = (np.array(part) for part in (likes.data, likes.indices, likes.indptr))
        if indptr[-1] < 2**31:
            indptr = indptr.astype(indices.dtype)
        self.likes = sparse.csr_matrix((data, indices, indptr), shape=likes.shape)
        self.model, self.seed = model, seed
        self._run(0, 0)  # draws the initial factors

    def compile(self) -> None:
        """Do nothing: implicit is compiled already."""

    def _run(self, epochs: int, stream: int) -> list[tuple[Any, ...]]:
        reported: list[tuple[Any, ...]] = []
        self.model.iterations = epochs
        self.model.random_state = np.random.default_rng((self.seed, stream))
        self.model.fit(self.likes, show_progress=False, callback=lambda *figures: reported.append(figures))
        return reported

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on about as many samples as there are positives; return the share of pairs in the wrong order."""
        self.model.learning_rate = rate
        try:
            ((_, _, correct, skipped),) = self._run(1, number + 1)
        except require("implicit", EXTRA).recommender_base.ModelFitError:
            raise TrainingError(
                f"factors hold NaN in epoch {number + 1}: raise l2 or lower the learning rate"
            ) from None
        return float(1 - correct / max(self.likes.nnz - skipped, 1))

    def state(self) -> dict[str, Array]:
        """Return the factors of users and of items."""
        return {"user_factors": self.model.user_factors, "item_factors": self.model.item_factors}

    def learned(self) -> list[str]:
        """Return the names of the factors."""
        return list(self.state())

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the factors of users and of items."""
        return self.model.user_factors, self.model.item_factors

    def score(self, users: IntArray) -> FloatArray:
        """Return scores in the middle of training; shape (users, items)."""
        return np.asarray(self.model.user_factors[users] @ self.model.item_factors.T)
