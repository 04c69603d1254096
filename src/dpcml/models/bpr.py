"""BPR: a matrix factorisation that ranks a user's positives above other items."""

from __future__ import annotations

from dataclasses import dataclass

from dpcml.data.interactions import Interactions
from dpcml.models.factors import EXTRA, Factors, Steps
from dpcml.models.parameters import register
from dpcml.utils.checks import positive
from dpcml.utils.packages import require


@register("bpr")
@dataclass(eq=False)
class BPR(Factors):
    """Bayesian personalised ranking (Rendle et al., 2009): a positive should score above an item that is none.

    Stochastic gradient steps on ``-log sigmoid(x_ui - x_uj) + l2 |theta|^2`` with ``x_ui = p_u . q_i + b_i`` for draws
    of a positive (u, i) and another item j, drawn by training frequency, which is left out where the user likes it. The
    loss in the history is the share of pairs in the wrong order. It runs on one thread: implicit's threads write to the
    same vectors without locks, so that with several no two runs would give the same. Needs implicit:
    ``pip install 'dpcml[peers]'``.

    Parameters
    ----------
    dim
        Numbers per vector, an item's bias apart.
    l2
        Ridge penalty.
    learning_rate
        Size of a step.
    epochs
        Each has as many draws as there are positives. Too many hurt, so better give a validation part too.
    validate_every, patience, metric
        With a validation part: look every so many epochs at this metric (released protocol), stop after so many looks
        without improvement (None: never), and keep the best state.
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

    def _check(self) -> None:
        super()._check()
        positive("l2", self.l2, or_zero=True)
        positive("learning_rate", self.learning_rate)

    def _width(self) -> int:
        return self.dim + 1  # an item's bias, and 1 for every user

    def _steps(self, train_data: Interactions) -> Steps:
        kind = require("implicit", EXTRA).cpu.bpr.BayesianPersonalizedRanking
        model = kind(factors=self.dim, regularization=self.l2, num_threads=1)

        def wrong(epoch: int, seconds: float, correct: int, skipped: int) -> float:
            return 1 - correct / max(train_data.n_positives - skipped, 1)

        return Steps(model, train_data, self.random_state, wrong)
