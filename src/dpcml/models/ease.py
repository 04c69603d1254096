"""EASE in three forms: exact over pairs of items, exact over pairs of users, and sparse for large catalogues."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.kernels.item_item import neighbour_regressions
from dpcml.models.item_item import ItemItem, grown
from dpcml.models.parameters import register
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import at_least, choice, positive
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.threads import over_rows

FORMS = ("auto", "dense", "dual", "sparse")
SMALL = 5_000  # items up to which the dense form is fast, whatever the number of users
LARGEST = 20_000  # users or items of which an exact form takes all pairs: 6 GB
ROWS_AT_ONCE = 1024
DENSE = 0.02  # share of entries from which a dense product is faster than a sparse one


@register("ease")
@dataclass(eq=False)
class EASE(ItemItem):
    """Predict a user's row of the matrix from itself, with a zero diagonal and a ridge penalty (Steck, 2019).

    With ``P = (X^T X + l2 I)^-1`` the weights are ``B_ij = -P_ij / P_jj`` off the diagonal; scores are ``X B``. There
    are three forms:

    - ``dense`` inverts the matrix over pairs of items. It needs ``16 items^2`` bytes, and time that grows with
      ``items^3``.
    - ``dual`` gives the same scores from the inverse over pairs of users, ``(X X^T + l2 I)^-1``: far smaller where
      users are fewer than items. It needs ``16 users^2`` bytes; the weights are never written out.
    - ``sparse`` is an approximation. Column j of B is the ridge regression of item j on all other items; here it is
      the regression on its ``k`` best neighbours, a small system per item. Time grows with ``items k^3``.

    Parameters
    ----------
    l2
        Ridge penalty; None takes ``l2_per_like`` times the mean number of likes per item.
    form
        ``dense``, ``dual``, ``sparse``, or ``auto``: an exact form where users or items are at most 20,000 (``dense``
        if items are the fewer, or at most 5,000), else ``sparse``.
    k
        Neighbours per item of the sparse form; more are closer to the exact solution.
    beta
        How much popular items are penalised, as in `RP3Beta`: scores are divided by the item's number of likes to this
        power. 0 is Steck's model; None finds it on the validation part, from 0 to 0.3 (0 without one).
    l2_per_like
        Ridge penalty for each like of a mean item. None finds it on the validation part, from 3 to 15 (6 without one).

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> EASE(l2=1.0).fit(likes).recommend(3, n=1)[0]
    array([1])
    >>> exact, dual = (EASE(l2=1.0, form=form).fit(likes).score([3]) for form in ("dense", "dual"))
    >>> bool(np.allclose(exact, dual, atol=1e-6))
    True
    """

    l2: float | None = None
    form: Literal["auto", "dense", "dual", "sparse"] = "auto"
    k: int = 200
    beta: float | None = 0.0
    l2_per_like: float | None = 6.0

    searched = {"l2_per_like": (6.0, 3.0, 15.0), "beta": (0.0, 0.1, 0.2, 0.3)}  # noqa: RUF012

    def _check(self) -> None:
        for name in ("l2", "l2_per_like"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        if self.beta is not None:
            positive("beta", self.beta, or_zero=True)
        choice("form", self.form, FORMS)
        at_least("k", self.k, 1)

    def _fit_each(self, train: Interactions, tried: dict[str, tuple[float, ...]]) -> Iterator[None]:
        self.form_ = choose_form(train) if self.form == "auto" else self.form
        for factor in tried["l2_per_like"][: None if self.l2 is None else 1]:
            l2 = factor * train.n_positives / train.n_items if self.l2 is None else self.l2
            self.l2_per_like_ = np.array([factor], dtype=np.float32)
            if self.form_ == "dense":
                self.weights_: FloatArray | sparse.csr_array = _dense(train, l2)
            elif self.form_ == "dual":
                self.dual_, self.scale_ = _dual(train, l2)
            else:
                self.weights_ = _sparse(train, l2, self.k)
            for beta in tried["beta"]:
                self.beta_ = np.array([beta], dtype=np.float32)
                yield

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        train = self.check_fitted()
        shapes = self._common_shapes() | ({} if self.beta == 0 else {"beta_": (1,)})
        if self.form_ == "dual":
            return shapes | {"dual_": (train.n_users, train.n_users), "scale_": (train.n_items,)}
        return shapes | {"weights_": (train.n_items, train.n_items)}

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        self.form_ = "dual" if "dual_" in arrays else "dense" if "weights_" in arrays else "sparse"
        self.beta_ = np.zeros(1, dtype=np.float32)
        super()._set_arrays(arrays)

    def _grow(self, more: int) -> None:
        if self.form_ == "dual":
            self.scale_ = np.pad(self.scale_, (0, more), constant_values=1)
        elif isinstance(self.weights_, sparse.csr_array):
            self.weights_ = grown(self.weights_, more)
        else:
            self.weights_ = np.pad(self.weights_, (0, more))

    def _linear(self, likes: sparse.csr_array) -> FloatArray:
        scores = self._regress(likes)
        return scores / self._penalty() if self.beta_[0] else scores

    def _penalty(self) -> FloatArray:
        """Return what the scores of items are divided by; shape (items,)."""
        likes_of = np.maximum(self.check_fitted().per_item, 1)
        return np.asarray(np.power(likes_of, float(self.beta_[0]), dtype=np.float32))

    def _regress(self, likes: sparse.csr_array) -> FloatArray:
        """Return ``X B`` for likes of shape (users, items)."""
        if self.form_ != "dual":
            found: Any = likes @ self.weights_
            return np.asarray(found.toarray() if self.form_ == "sparse" else found)
        users = self.check_fitted().csr
        shared = likes @ users.T  # (users of the request, users): how many items they have in common
        if shared.nnz > DENSE * shared.shape[0] * shared.shape[1]:
            shared = shared.toarray()
        scores = np.asarray((shared @ self.dual_) @ users)  # (users of the request, items)
        # The diagonal of B is 0: take out what a liked item would say of itself.
        own = np.repeat(np.arange(likes.shape[0]), np.diff(likes.indptr)), likes.indices
        scores[own] -= likes.data * (1 - 1 / self.scale_[likes.indices])
        return np.ascontiguousarray(scores * self.scale_, dtype=np.float32)

    def item_weights(self) -> FloatArray:
        """Return the weight of each liked item in the score of each item, of the dense or sparse form.

        Examples
        --------
        >>> model = EASE(l2=1.0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
        >>> bool(np.allclose(np.array([[1, 0, 0]]) @ model.item_weights(), model.score_new([0])))
        True
        """
        self.check_fitted()
        if self.form_ == "dual":
            raise ParameterError("EASE in its dual form has no weights of pairs of items: fit it with form='dense'")
        return super().item_weights()

    def _similarity(self, columns: IntArray) -> FloatArray:
        ones, places = np.ones(len(columns), np.float32), np.arange(len(columns) + 1)
        single = sparse.csr_array((ones, columns, places), shape=(len(columns), self.check_fitted().n_items))
        return self._with_content(columns, self._linear(single))  # a row of B: what one liked item says of all others


def choose_form(train: Interactions) -> Literal["dense", "dual", "sparse"]:
    """Return the form that suits the size of some data.

    Examples
    --------
    >>> choose_form(Interactions.from_csr(np.eye(3)))
    'dense'
    >>> choose_form(Interactions.from_csr(sparse.csr_array((10, 30_000))))
    'dual'
    """
    users, items = train.n_users, train.n_items
    if min(users, items) > LARGEST:
        return "sparse"
    return "dense" if items <= max(users, SMALL) else "dual"


def _check_memory(form: str, needed: float, what: str) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise DataError(
            f"EASE on {what} needs about {needed / 2**30:.0f} GiB in the {form} form, this machine has"
            f" {memory / 2**30:.0f}: try form='sparse', drop rare items (core=...), or use itemknn"
        )


def _inverse(gram: sparse.csr_array, l2: float) -> FloatArray:
    """Return the upper triangle of ``(gram + l2 I)^-1``, float64."""
    from scipy.linalg import lapack  # a tenth of a second, which lists of a saved model need not wait for

    system = np.asfortranarray(gram.toarray(), dtype=np.float64)
    system[np.diag_indices(len(system))] += l2
    factor, failed = lapack.dpotrf(system, lower=0, overwrite_a=1)
    inverse, broken = lapack.dpotri(factor, lower=0, overwrite_c=1)
    if failed or broken:
        raise ParameterError(f"l2={l2!r}: too small for this data, the system cannot be solved; raise it")
    return np.asarray(inverse)


def _full_rows(inverse: FloatArray, rows: slice) -> FloatArray:
    """Return some rows of a symmetric matrix of which only the upper triangle is given."""
    block = inverse[rows].copy()  # right of the diagonal only
    block[:, : rows.stop] = inverse[: rows.stop, rows].T
    corner = inverse[rows, rows]
    block[:, rows] = np.triu(corner) + np.triu(corner, 1).T
    return np.asarray(block)


def _blocks(n: int) -> list[slice]:
    return [slice(first, min(first + ROWS_AT_ONCE, n)) for first in range(0, n, ROWS_AT_ONCE)]


def _dense(train: Interactions, l2: float) -> FloatArray:
    _check_memory("dense", 16 * train.n_items**2, f"{train.n_items:,} items")
    return _weights(_inverse(train.csr.T @ train.csr, l2))


def _weights(inverse: FloatArray) -> FloatArray:
    """Return ``-P_ij / P_jj`` off the diagonal from the upper triangle of P; row: liked item, column: scored item."""
    n = len(inverse)
    diagonal = np.diag(inverse).copy()
    weights = np.empty((n, n), dtype=np.float32)
    for rows in _blocks(n):
        weights[rows] = _full_rows(inverse, rows) / -diagonal
    weights[np.diag_indices(n)] = 0
    return weights


def _dual(train: Interactions, l2: float) -> tuple[FloatArray, FloatArray]:
    """Return ``K^-1 = (X X^T + l2 I)^-1`` and ``1 / (1 - d)``, where d is the diagonal of ``X^T K^-1 X``.

    By Woodbury's identity ``l2 P = I - X^T K^-1 X``, so that ``B_ij = (X^T K^-1 X)_ij / (1 - d_j)`` off the diagonal.
    """
    _check_memory("dual", 16 * train.n_users**2, f"{train.n_users:,} users")
    inverse = _inverse(train.csr @ train.csr.T, l2)  # (users, users)
    for rows in _blocks(len(inverse)):
        inverse[rows] = _full_rows(inverse, rows)
    diagonal = np.empty(train.n_items)
    for some in _blocks(train.n_items):
        fans = train.by_item[some].astype(np.float64)
        diagonal[some] = fans.multiply(fans @ inverse).sum(axis=1)
    return np.ascontiguousarray(inverse, dtype=np.float32), np.asarray(1 / (1 - diagonal), dtype=np.float32)


def _sparse(train: Interactions, l2: float, k: int) -> sparse.csr_array:
    """Return the weights of each item's regression on its k best neighbours; row: liked item, column: scored item."""
    pairs = float((train.per_user.astype(np.float64) ** 2).sum())
    _check_memory("sparse", 8 * min(pairs, float(train.n_items) ** 2), f"{train.n_items:,} items")
    n, k = train.n_items, min(k, max(train.n_items - 1, 1))
    counts = train.csr.astype(np.float32)  # exact up to 2^24 users
    gram = (counts.T @ counts).tocsr()
    gram.sort_indices()
    neighbours = np.full((n, k), -1, dtype=np.int32)
    weights = np.zeros((n, k), dtype=np.float32)
    given = gram.indptr, gram.indices, gram.data, float(l2)
    over_rows(lambda a, b: neighbour_regressions(*given, neighbours, weights, a, b), n)
    kept = neighbours >= 0
    scored = np.nonzero(kept)[0].astype(np.int32)
    return sparse.coo_array((weights[kept], (neighbours[kept], scored)), shape=(n, n)).tocsr()
