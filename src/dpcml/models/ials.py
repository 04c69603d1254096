"""iALS: a matrix factorisation by alternating least squares over all pairs of users and items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.kernels.als import WORK_ROWS, excess_errors, inner_products, solve_rows
from dpcml.kernels.simd import padded
from dpcml.models.implicit_mf import ImplicitMF
from dpcml.models.parameters import register
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import positive
from dpcml.utils.threads import over_rows

STEPS = 3  # of conjugate gradients per row and epoch
STEPS_NEW = 40  # for a new user, from 0: enough for single precision
SCALE = 0.01  # standard deviation of the initial item vectors

Likes = tuple[IntArray, IntArray, FloatArray]  # pointers, columns and confidence of a CSR matrix


@register("ials")
@dataclass(eq=False)
class IALS(ImplicitMF):
    """Implicit alternating least squares (Hu, Koren and Volinsky, 2008), with three conjugate gradient steps per row.

    Minimises ``sum_ui c_ui (p_ui - x_u . y_i)^2 + l2 (sum_u |x_u|^2 + sum_i |y_i|^2)`` over all pairs, where p is 1 and
    c is ``confidence`` for positives, 0 and 1 for all others. With weights, a positive has ``confidence`` times its
    `Interactions.confidence`. The loss in the history is the first sum, divided by that of all c.

    Parameters
    ----------
    dim
        Length of the vectors.
    l2
        Ridge penalty; by default the mean number of positives per user, because denser data needs more.
    confidence
        Weight of a positive; all other pairs have 1.
    epochs
        Each solves for all user vectors and then for all item vectors.
    validate_every, patience, metric
        With a validation part: evaluate ``metric`` (released protocol) every ``validate_every`` epochs, stop after
        ``patience`` evaluations without improvement (None: never), and keep the best state.
    stop_after
        End the training after this epoch; the schedule stays that of ``epochs``. `settled` sets it.
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
    stop_after: int | None = None

    uses_weights = True

    def _check(self) -> None:
        super()._check()
        if self.l2 is not None:
            positive("l2", self.l2)
        positive("confidence", self.confidence)

    def _penalty(self, train: Interactions) -> float:
        return train.n_positives / train.n_users if self.l2 is None else self.l2

    def _learner(self, train: Interactions) -> ALSLearner:
        likes = self.confidence * train.confidence
        return ALSLearner(likes, self.dim, self._penalty(train), self.random_state, self.n_threads)

    def ridge_products(self) -> FloatArray:
        """Return ``Y^T Y + l2 I``, on which the vectors of all new users depend.

        Examples
        --------
        >>> IALS(dim=3).fit(np.eye(4)).ridge_products().shape
        (3, 3)
        """
        return np.asarray(self._item_products() + self._penalty(self.check_fitted()) * np.eye(self.dim))

    def _item_products(self) -> FloatArray:
        """Return ``Y^T Y``, which is kept between calls."""
        kept = vars(self).get("_kept_products")
        if kept is None or kept[0] is not self.item_factors_:
            items = self.item_factors_.astype(np.float64)
            kept = self._kept_products = self.item_factors_, items.T @ items
        return np.asarray(kept[1])

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        # Not by LAPACK: on a busy machine the threads of BLAS wait for each other for 100 ms and more.
        items, products = _padded(self.item_factors_), _padded(_padded(self._item_products()).T)
        users, given = np.zeros((likes.shape[0], items.shape[1]), dtype=np.float32), _csr(likes)
        confidence = np.full(len(given[1]), self.confidence, dtype=np.float32)
        l2, work = np.float32(self._penalty(self.check_fitted())), np.empty((WORK_ROWS, items.shape[1]), np.float32)
        solve_rows(given[0], given[1], confidence, items, products, l2, STEPS_NEW, users, work, 0, len(users))
        return np.asarray(users[:, : self.dim] @ self.item_factors_.T)


class ALSLearner:
    """Vectors of users and items that are solved for in turn, an epoch per call.

    Parameters
    ----------
    likes
        Positives, with their confidence as values; shape (users, items).
    dim
        Length of the vectors.
    l2
        Ridge penalty.
    seed
        Seed of the initial item vectors.
    n_threads
        Threads; all cores by default.
    """

    def __init__(self, likes: sparse.csr_array, dim: int, l2: float, seed: int, n_threads: int | None) -> None:
        self.dim, self.l2, self.n_threads = dim, np.float32(l2), n_threads
        self.by_user, self.by_item = _csr(likes), _csr(sparse.csr_array(likes.T))
        self.users, self.items = (np.zeros((n, padded(dim)), dtype=np.float32) for n in likes.shape)
        drawn = np.random.default_rng(seed).standard_normal((likes.shape[1], dim), dtype=np.float32)
        self.items[:, :dim] = np.float32(SCALE) * drawn
        self.total_weight = likes.shape[0] * likes.shape[1] - likes.nnz + float(likes.data.sum(dtype=np.float64))

    def compile(self) -> None:
        """Compile the kernels, or load them from the cache, by calls for no rows."""
        products, work = np.empty((2, 1, self.items.shape[1]), dtype=np.float32)
        inner_products(self.items, products, 0, 0)
        solve_rows(*self.by_user, self.items, products, self.l2, STEPS, self.users, work, 0, 0)
        excess_errors(*self.by_user, self.users, self.items, np.empty(0), 0, 0)

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Solve for all vectors once; return the mean squared error over all pairs, by confidence."""
        self._solve(self.by_user, self.items, self._products(self.items), self.users)
        products = self._products(self.users)
        if report is not None:
            report(0.5)
        self._solve(self.by_item, self.users, products, self.items)
        squares = float(np.sum(products * self._products(self.items), dtype=np.float64))  # of all scores
        return (squares + self._error()) / self.total_weight

    def _products(self, vectors: FloatArray) -> FloatArray:
        width = vectors.shape[1]
        products = np.empty((width, width), dtype=np.float32)
        over_rows(lambda a, b: inner_products(vectors, products, a, b), width, self.n_threads)
        return products

    def _solve(self, likes: Likes, others: FloatArray, products: FloatArray, rows: FloatArray) -> None:
        def part(start: int, stop: int) -> None:
            work = np.empty((WORK_ROWS, rows.shape[1]), dtype=np.float32)
            solve_rows(*likes, others, products, self.l2, STEPS, rows, work, start, stop)

        over_rows(part, len(rows), self.n_threads)

    def _error(self) -> float:
        errors = np.empty(len(self.users))
        given = *self.by_user, self.users, self.items, errors
        over_rows(lambda a, b: excess_errors(*given, a, b), len(errors), self.n_threads)
        return float(errors.sum())

    def state(self) -> dict[str, Array]:
        """Return the vectors of users and of items, padded with zeros."""
        return {"user_factors": self.users, "item_factors": self.items}

    def learned(self) -> list[str]:
        """Return the names of the vectors."""
        return list(self.state())

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the vectors of users and of items."""
        return np.ascontiguousarray(self.users[:, : self.dim]), np.ascontiguousarray(self.items[:, : self.dim])

    def score(self, users: IntArray) -> FloatArray:
        """Return scores in the middle of training; shape (users, items)."""
        return np.asarray(self.users[users] @ self.items.T)


def _csr(likes: sparse.csr_array) -> Likes:
    """Return pointers, columns and values of a matrix in the types of the kernels."""
    return likes.indptr.astype(np.int64), likes.indices.astype(np.int32), likes.data.astype(np.float32)


def _padded(rows: FloatArray) -> FloatArray:
    """Return rows in single precision, padded with zeros to whole lanes; the same array where nothing is to do."""
    missing = padded(rows.shape[1]) - rows.shape[1]
    single = np.ascontiguousarray(rows, dtype=np.float32)
    return np.pad(single, ((0, 0), (0, missing))) if missing else single
