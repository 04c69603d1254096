"""The contract that every model keeps, and what all of them can do once they can score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from dpcml.arrays import Array, FloatArray, IntArray
from dpcml.data.fitting import csr_arrays, csr_of, fitting
from dpcml.data.interactions import Interactions, as_interactions
from dpcml.errors import DataError, NotFittedError, ParameterError, did_you_mean
from dpcml.kernels import ranking
from dpcml.models.histories import likes_of
from dpcml.registry import Registry
from dpcml.threads import over_rows

MODELS: Registry[type[Recommender]] = Registry("model")

BLOCK_BYTES = 64 * 2**20  # scores held at once while recommending


@dataclass(eq=False)
class Recommender(ABC):
    """A model that scores items for users: subclasses are dataclasses whose fields are the hyper-parameters.

    A subclass implements ``_fit`` and ``score``, checks its parameters in ``_check``, names what it has learned in
    ``_shapes``, so that it can be saved, and is filed in `MODELS`; where it can serve users whom it was not trained
    on, it implements ``_score_histories`` (all that `FromHistory` asks for).
    Positions (rows and columns of the training matrix) go into ``score``; external ids go into ``score_new``, and into
    and out of ``recommend`` and ``similar_items``. Larger scores are better.
    """

    name: ClassVar[str]

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:  # noqa: B027 (most models have something to check, popularity has nothing)
        """Raise a `ParameterError` for a hyper-parameter out of range."""

    @abstractmethod
    def _fit(self, *args: Any, **options: Any) -> None:
        """Learn from ``train`` and perhaps ``valid``; fitted attributes end in an underscore."""

    @abstractmethod
    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the score of every item for some users, larger is better.

        Parameters
        ----------
        users
            Row positions in the training data.

        Returns
        -------
        FloatArray
            Shape (users, items); seen items are scored like all others.
        """

    @abstractmethod
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of each fitted array or sparse matrix of float32; ``train_`` is known by then."""

    def _arrays(self) -> dict[str, Array]:
        """Return the arrays that, with parameters and training data, are the whole fitted model."""
        arrays: dict[str, Array] = {}
        for name, shape in self._shapes().items():
            learned = vars(self).get(name)
            if isinstance(learned, sparse.csr_array):
                arrays |= csr_arrays(name, learned)
            else:
                arrays[name] = fitting(vars(self), name, shape, "f")
        return arrays

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what ``_arrays`` gave, without a copy; ``train_`` is there already."""
        for name, shape in self._shapes().items():
            if any(part.startswith(f"{name}.") for part in arrays):
                setattr(self, name, csr_of(arrays, name, (shape[0], shape[1]), "f"))
            else:
                setattr(self, name, fitting(arrays, name, shape, "f"))

    def fit(self, train: Any, valid: Any = None, **options: Any) -> Self:
        """Learn from positives.

        Parameters
        ----------
        train
            `Interactions`, a scipy matrix of shape (users, items), or a frame with user and item columns.
        valid
            Held-out positives over the same users and items, for models that stop early.
        **options
            What trained models take besides: ``checkpoint``, ``resume``, ``callbacks``, ``progress``.
        """
        data = as_interactions(train)
        if not data.n_positives:
            raise DataError(f"{type(self).__name__} cannot learn from {data!r}: training needs at least one positive")
        self._fit(data, None if valid is None else as_interactions(valid), **options)
        self.train_ = data
        return self

    def get_params(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **values: Any) -> Self:
        """Change hyper-parameters; the model must be fitted anew afterwards."""
        known = self.get_params()
        for name in values:
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}: {did_you_mean(name, known)}")
        type(self)(**{**known, **values})  # checks all of them together before any is changed
        for name, value in values.items():
            setattr(self, name, value)
        return self

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        items: Sequence[Any] | Array | None = None,
    ) -> tuple[Array, FloatArray]:
        """Return the best items for one user or several.

        Parameters
        ----------
        users
            One external user id, or a sequence of them.
        n
            How many items at most.
        exclude_seen
            Leave out the user's training positives.
        items
            External ids of the only items to choose from; all by default.

        Returns
        -------
        ids, scores
            Best first; shape (up to n,) for one user, (users, up to n) for several. Where one of several users has
            fewer candidates than the others, the rest of the row has id -1 (``None`` for text ids) and score minus
            infinity.
        """
        train = self._fitted()
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ParameterError(f"n={n!r}: ask for a whole number of at least 1")
        single = np.ndim(users) == 0
        rows = train.user_rows(np.atleast_1d(users))
        allowed = np.ones(train.n_items, dtype=bool)
        if items is not None:
            allowed[:] = False
            allowed[train.item_columns(items)] = True
        best, scores = _best(self, rows, min(int(n), train.n_items), train if exclude_seen else None, allowed)
        longest = int((best >= 0).sum(axis=1).max(initial=0))
        ids = train.item_ids[best[:, :longest]]
        if (best[:, :longest] < 0).any():
            ids[best[:, :longest] < 0] = -1 if ids.dtype.kind == "i" else None
        return (ids[0], scores[0, :longest]) if single else (ids, scores[:, :longest])

    def score_new(self, histories: Any) -> FloatArray:
        """Return the score of every item for users who were not in the training data, from what they like.

        Parameters
        ----------
        histories
            External ids of the items that one user likes, or a sequence of such sequences, one per user.

        Returns
        -------
        FloatArray
            Shape (items,) for one user, (users, items) for several; liked items are scored like all others.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> model = ItemKNN(k=2, shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
        >>> model.score_new([0])
        array([0., 1., 0.], dtype=float32)
        >>> model.score_new([[0], [2, 1]]).shape
        (2, 3)
        """
        likes, single = likes_of(histories, self._fitted())
        scores = self._score_histories(likes)
        return scores[0] if single else scores

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        """Return scores from the likes of users, known or new: ones in a matrix of shape (users, items), as scores."""
        raise ParameterError(
            f"{type(self).__name__} cannot serve users it was not trained on: fit it anew with their positives, or use"
            " itemknn, rp3beta, ease or ials"
        )

    def similar_items(self, item: Any, n: int = 10) -> tuple[Array, FloatArray]:
        """Return the items most like one item: external ids and similarities, best first."""
        train = self._fitted()
        column = train.item_columns(np.atleast_1d(item))
        similarity = self._similarity(column).astype(np.float32)
        similarity[0, column] = -np.inf
        best = np.argsort(-similarity[0], kind="stable")[: min(int(n), train.n_items - 1)]
        return train.item_ids[best], similarity[0, best]

    def _similarity(self, columns: IntArray) -> FloatArray:
        """Return the similarity of some items to all; shape (columns, items)."""
        raise ParameterError(f"{type(self).__name__} has no notion of similar items: use itemknn or ease")

    def _fitted(self) -> Interactions:
        if not hasattr(self, "train_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(train) first")
        return self.train_

    def _rows(self, users: Sequence[int] | IntArray) -> IntArray:
        """Return user positions as an array, checked against the training data."""
        rows = np.atleast_1d(np.asarray(users))
        n_users = self._fitted().n_users
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ParameterError(f"users={users!r}: pass a sequence of row positions")
        if rows.size and (rows.min() < 0 or rows.max() >= n_users):
            raise ParameterError(
                f"user row {rows.min() if rows.min() < 0 else rows.max()}: must be in 0..{n_users - 1}"
            )
        return rows.astype(np.int64)


class FromHistory(Recommender):
    """A model whose scores follow from a user's positives alone, so that new users are served like those it knows."""

    @abstractmethod
    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        """Return scores of shape (users, items) from likes of the same shape."""

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the score of every item, from what the users like; shape (users, items)."""
        rows = self._rows(users)
        return self._score_histories(self._fitted().csr[rows])


def _best(
    model: Recommender, rows: IntArray, n: int, seen: Interactions | None, allowed: Array
) -> tuple[IntArray, FloatArray]:
    """Return positions and scores of the best items of each row, block by block."""
    best = np.empty((len(rows), n), dtype=np.int64)
    best_scores = np.empty((len(rows), n), dtype=np.float32)
    indptr = np.zeros(model._fitted().n_users + 1, dtype=np.int64) if seen is None else seen.indptr
    indices = np.zeros(0, dtype=np.int32) if seen is None else seen.indices
    block = max(1, BLOCK_BYTES // (4 * len(allowed)))
    for first in range(0, len(rows), block):
        some = rows[first : first + block]
        scores = np.ascontiguousarray(model.score(some), dtype=np.float32)
        if not allowed.all():
            scores = np.where(allowed, scores, np.float32(-np.inf))
        out = best[first : first + block], best_scores[first : first + block]
        over_rows(lambda a, b: ranking.top(scores, some, indptr, indices, *out, a, b), len(some))  # noqa: B023
    return best, best_scores
