"""Items that nobody likes yet: what a model knows of liked items, carried over by titles and attributes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from dpcml.data.features import content_features
from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable
from dpcml.data.merge import merge
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.checks import check_memory
from dpcml.utils.errors import DataError

L2 = 3.0  # ridge penalty, for features of unit length: chosen on held-out cold items of ML-1M
BLOCK = 512  # right-hand sides that are solved for at once
STEPS, TOLERANCE = 100, 1e-4  # of conjugate gradients; relative size of the residual


def with_new_items(train: Interactions, items: ItemTable) -> Interactions:
    """Return data with those of some items that they lack, which nobody likes; these come last.

    New items that have nothing in common with liked ones are left out, with a warning.

    Examples
    --------
    >>> films = ItemTable(np.arange(3), np.array(["Emma", "Alien one", "Alien two"], dtype=object))
    >>> likes = Interactions.from_csr(np.ones((2, 3)), items=films)
    >>> both = with_new_items(likes, ItemTable(np.array([9]), np.array(["Alien three"], dtype=object)))
    >>> both, ContentRidge.of(both).predict(np.array([[0.0], [1.0], [1.0]])).round(2).tolist()
    (Interactions(2 users, 4 items, 6 positives), [[0.8]])
    """
    new = items.select(train.items.find(items.ids) < 0)
    if not len(new):
        raise DataError(f"no new item among {len(items):,}: the model knows them all; name items that it lacks")
    nothing = np.zeros(0, dtype=np.int64)
    empty = Interactions.from_codes(
        nothing,
        nothing,
        train.user_ids[:0],
        new,
        timestamps=None if train.timestamps is None else train.timestamps[:0],
        weights=None if train.weights is None else train.weights[:0],
    )
    both = merge(train, empty)
    features = content_features(both.items, both.per_item > 0)
    placed = np.diff(features.indptr)[train.n_items :] > 0
    if placed.all():
        return both
    lacking = f"{np.count_nonzero(~placed):,} of {len(new):,} new items share no attribute or word with liked ones"
    if not placed.any():
        raise DataError(f"{lacking}: nothing says where they belong; give titles or attributes as the data have")
    warnings.warn(f"{lacking}: they are left out", UserWarning, stacklevel=3)
    return with_new_items(train, new.select(placed))


@dataclass(frozen=True, eq=False)
class ContentRidge:
    """The ridge regression of values of liked items on their features, and its predictions for all other items.

    With the features F of liked items and f of another one, it predicts ``f (F'F + l2 I)^-1 F' (y - mean) + mean``.

    Parameters
    ----------
    features
        Shape (items, features).
    liked
        Mask of the items that somebody likes; shape (items,).
    l2
        Ridge penalty.
    """

    features: sparse.csr_array
    liked: BoolArray
    l2: float = L2

    @classmethod
    def of(cls, data: Interactions, l2: float = L2) -> ContentRidge:
        """Return the regression for the items of some data that nobody likes."""
        liked = data.per_item > 0
        return cls(content_features(data.items, liked), liked, l2)

    @cached_property
    def cold(self) -> IntArray:
        """Positions of the items that nobody likes."""
        return np.flatnonzero(~self.liked)

    @cached_property
    def _known(self) -> sparse.csr_array:
        return self.features[np.flatnonzero(self.liked)]

    @cached_property
    def _system(self) -> sparse.csr_array:
        return sparse.csr_array(self._known.T @ self._known + self.l2 * sparse.eye_array(self.features.shape[1]))

    def predict(self, values: FloatArray) -> FloatArray:
        """Return the predicted values of cold items, shape (cold, d), from values of the first items, shape (n, d)."""
        known = np.asarray(values[self.liked[: len(values)]], dtype=np.float64)
        mean = known.mean(axis=0)
        weights = _solve(self._system, self._known.T @ (known - mean))  # (features, d)
        return np.asarray(self.features[self.cold] @ weights + mean, dtype=values.dtype)

    def extend(self, values: FloatArray) -> FloatArray:
        """Return values of all items, those of cold ones predicted, from values of the first items."""
        found = np.zeros((len(self.liked), values.shape[1]), dtype=values.dtype)
        found[: len(values)] = values
        found[self.cold] = self.predict(values)
        return found

    def weights(self) -> FloatArray:
        """Return what the prediction takes of each item: ``values.T @ weights``; shape (items, cold), float32."""
        n_items, n_cold = len(self.liked), len(self.cold)
        check_memory("add_items", 4 * n_items * n_cold, "add fewer items at a time")
        found = np.zeros((n_items, n_cold), dtype=np.float32)
        rows = np.flatnonzero(self.liked)
        for first in range(0, n_cold, BLOCK):
            some = self.cold[first : first + BLOCK]
            weights = self._known @ _solve(self._system, self.features[some].T.toarray())  # (liked, some)
            found[rows, first : first + BLOCK] = weights + (1 - weights.sum(axis=0)) / len(rows)  # the rest: the mean
        return found


def _solve(matrix: sparse.csr_array, wanted: FloatArray) -> FloatArray:
    """Solve a positive definite system for several right-hand sides at once, by conjugate gradients."""
    found = np.zeros_like(wanted)
    residual = wanted.copy()
    direction = residual.copy()
    squares = (residual**2).sum(axis=0)
    enough = TOLERANCE**2 * squares
    for _ in range(STEPS):
        if (squares <= enough).all():
            break
        turned = matrix @ direction
        step = squares / np.maximum((direction * turned).sum(axis=0), 1e-300)
        found += step * direction
        residual -= step * turned
        before, squares = squares, (residual**2).sum(axis=0)
        direction = residual + squares / np.maximum(before, 1e-300) * direction
    return found
