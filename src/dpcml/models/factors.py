"""What the matrix factorisations that the package implicit trains have in common. Scores are inner products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.models.epochs import InEpochs
from dpcml.training.loop import Callback, TrainingError
from dpcml.training.progress import Progress
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least
from dpcml.utils.packages import require

EXTRA = "peers"


class Factors(InEpochs):
    """A vector per user and per item, trained in epochs by implicit (Frederickson, 2016), which only ``fit`` needs."""

    dim: int
    user_factors_: FloatArray
    item_factors_: FloatArray

    @abstractmethod
    def _steps(self, train_data: Interactions) -> Steps:
        """Return what the loop trains."""

    def _check(self) -> None:
        super()._check()
        at_least("dim", self.dim, 1)

    def _fit(
        self,
        train_data: Interactions,
        valid: Interactions | None,
        *,
        callbacks: Sequence[Callback] = (),
        progress: bool | None = False,  # epochs are quick
    ) -> None:
        steps = self._steps(train_data)
        shown = Progress(self.epochs, positives=train_data.n_positives, shown=progress)
        rate = self.get_params().get("learning_rate", 0.0)
        self._train(steps, steps, train_data, valid, rate=rate, callbacks=callbacks, progress=shown)
        self.user_factors_, self.item_factors_ = steps.state().values()

    def _width(self) -> int:
        """Return the numbers per vector."""
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

    def _similarity(self, columns: IntArray) -> FloatArray:
        items = self.item_factors_[:, : self.dim]  # without a bias
        items = items / np.maximum(np.linalg.norm(items, axis=1, keepdims=True), 1e-12)
        return np.asarray(items[columns] @ items.T)


class Steps:
    """A model of implicit as the loop sees it: an epoch per call, which changes the factors in place.

    Parameters
    ----------
    model
        An unfitted model of implicit.
    train_data
        Positives.
    seed
        Decides the start and every epoch, whatever was done before it.
    loss
        The loss from what implicit tells a callback after an epoch.
    """

    def __init__(self, model: Any, train_data: Interactions, seed: int, loss: Callable[..., float]) -> None:
        # implicit wants the older kind of matrix, which it may write to
        data, indices, indptr = (
            np.array(part) for part in (train_data.csr.data, train_data.indices, train_data.indptr)
        )
        if indptr[-1] < 2**31:
            indptr = indptr.astype(indices.dtype)
        self.likes = sparse.csr_matrix((data, indices, indptr), shape=train_data.csr.shape)
        self.model, self.seed, self.loss = model, seed, loss
        self._run(0, 0)  # draws the start

    def _run(self, epochs: int, stream: int) -> list[tuple[Any, ...]]:
        told: list[tuple[Any, ...]] = []
        self.model.iterations = epochs
        self.model.random_state = np.random.default_rng((self.seed, stream))
        with one_blas_thread():
            self.model.fit(self.likes, show_progress=False, callback=lambda *figures: told.append(figures))
        return told

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on about as many draws as there are positives (BPR), or solve for all vectors once (iALS)."""
        self.model.learning_rate = rate  # iALS has no use for it
        try:
            told = self._run(1, number + 1)
        except require("implicit", EXTRA).recommender_base.ModelFitError:
            raise TrainingError(
                f"factors hold NaN in epoch {number + 1}: raise l2, or lower the learning rate if there is one"
            ) from None
        return float(self.loss(*told[0]))

    def state(self) -> dict[str, Array]:
        """Return the factors of users and of items."""
        return {"user_factors": self.model.user_factors, "item_factors": self.model.item_factors}

    def learned(self) -> list[str]:
        """Return the names of both."""
        return list(self.state())

    def score(self, users: IntArray) -> FloatArray:
        """Return scores in the middle of training; shape (users, items)."""
        return np.asarray(self.model.user_factors[users] @ self.model.item_factors.T)


def one_blas_thread() -> Any:
    """Keep BLAS to one thread within a ``with``: implicit has threads of its own, and sums keep their order."""
    return require("threadpoolctl", EXTRA).threadpool_limits(1, "blas")
