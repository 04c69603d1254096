"""iALS: a matrix factorisation by weighted least squares over all pairs of users and items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from dpcml.data.interactions import Interactions
from dpcml.models.factors import EXTRA, Factors, Steps, one_blas_thread
from dpcml.models.parameters import register
from dpcml.utils.arrays import FloatArray
from dpcml.utils.checks import positive
from dpcml.utils.packages import require
from dpcml.utils.threads import thread_count


@register("ials")
@dataclass(eq=False)
class IALS(Factors):
    """Implicit alternating least squares (Hu, Koren and Volinsky, 2008), with three conjugate gradient steps per row.

    Minimises ``sum_ui c_ui (p_ui - x_u . y_i)^2 + l2 (sum_u |x_u|^2 + sum_i |y_i|^2)`` over all pairs, where p is 1 and
    c is ``confidence`` for positives, 0 and 1 for all others. Needs implicit: ``pip install 'dpcml[peers]'``.

    Parameters
    ----------
    dim
        Numbers per vector.
    l2
        Ridge penalty; by default the mean number of positives of a user, because denser data asks for more.
    confidence
        Weight of a positive; all other pairs have 1.
    epochs
        Times that all vectors of users and then of items are solved for.
    validate_every, patience, metric
        With a validation part: look every so many epochs at this metric (released protocol), stop after so many looks
        without improvement (None: never), and keep the best state.
    random_state
        Seed: the same seed gives the same bits, whatever the number of threads.
    n_threads
        Threads; all cores by default.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> model = IALS(dim=2, l2=0.1).fit(likes)
    >>> model.recommend(3, n=1)[0]
    array([1])
    >>> int(model.score_new([3]).argsort()[-2])
    2
    """

    dim: int = 256
    l2: float | None = None
    confidence: float = 4.0
    epochs: int = 20
    validate_every: int = 5
    patience: int | None = 2
    metric: str = "P@3"
    random_state: int = 0
    n_threads: int | None = None

    def _check(self) -> None:
        super()._check()
        if self.l2 is not None:
            positive("l2", self.l2)
        positive("confidence", self.confidence)

    def _penalty(self, train_data: Interactions) -> float:
        return train_data.n_positives / train_data.n_users if self.l2 is None else self.l2

    def _steps(self, train_data: Interactions) -> Steps:
        kind = require("implicit", EXTRA).cpu.als.AlternatingLeastSquares
        with one_blas_thread():  # else it warns
            model = kind(
                factors=self.dim,
                regularization=self._penalty(train_data),
                alpha=self.confidence,
                num_threads=thread_count(self.n_threads),
                calculate_training_loss=True,
            )
        return Steps(model, train_data, self.random_state, lambda epoch, seconds, loss: loss)

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        items = self.item_factors_.astype(np.float64)
        gram = items.T @ items + self._penalty(self.check_fitted()) * np.eye(self.dim)
        users = np.empty((likes.shape[0], self.dim), dtype=np.float32)
        for row in range(len(users)):
            liked = items[likes.indices[likes.indptr[row] : likes.indptr[row + 1]]]  # (items of the user, d)
            weighted = gram + (self.confidence - 1) * liked.T @ liked
            users[row] = linalg.solve(weighted, self.confidence * liked.sum(axis=0), assume_a="pos")
        return np.asarray(users @ self.item_factors_.T)
