"""The contract that every model keeps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.models.asked import Asked
from dpcml.models.histories import likes_of
from dpcml.models.parameters import Removed, current_params
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import check_array, csr_from_arrays, csr_to_arrays
from dpcml.utils.errors import DataError, NotFittedError, ParameterError, did_you_mean


@dataclass(eq=False)
class Recommender(Asked):
    """A model that scores items for users: subclasses are dataclasses whose fields are the hyper-parameters.

    A subclass implements ``_fit`` and ``score``, checks its parameters in ``_check``, names what it has learned in
    ``_shapes``, so that it can be saved, and is filed in `MODELS`; where it can serve users whom it was not trained
    on, it implements ``_score_histories`` (all that `FromHistory` asks for).
    Positions (rows and columns of the training matrix) go into ``score``; external ids go into ``score_new``, and into
    and out of ``recommend`` and ``similar_items``. Larger scores are better.
    """

    name: ClassVar[str]
    renamed_params: ClassVar[Mapping[str, str]] = {}  # new names by old ones, which work for one version
    removed_params: ClassVar[Mapping[str, Removed]] = {}

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
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

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays that, with parameters and training data, are the whole fitted model.

        Examples
        --------
        >>> from dpcml import Popularity
        >>> Popularity().fit(np.eye(2)).to_arrays()
        {'item_counts_': array([1., 1.], dtype=float32)}
        """
        arrays: dict[str, Array] = {}
        for name, shape in self._shapes().items():
            learned = vars(self).get(name)
            if isinstance(learned, sparse.csr_array):
                arrays |= csr_to_arrays(name, learned)
            else:
                arrays[name] = check_array(vars(self), name, shape, "f")
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], train: Interactions, parameters: Mapping[str, Any] | None = None
    ) -> Self:
        """Return the fitted model that `to_arrays` gave the arrays of; they are not copied.

        Parameters
        ----------
        arrays
            What `to_arrays` returned.
        train
            The training data.
        parameters
            Hyper-parameters; those of an older version are translated without a warning.
        """
        model = cls().set_params(**current_params(cls, parameters or {}, warn=False))
        model.train_ = train
        model._set_arrays(arrays)
        return model

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Set the fitted attributes; ``train_`` is set already."""
        for name, shape in self._shapes().items():
            if any(part.startswith(f"{name}.") for part in arrays):
                setattr(self, name, csr_from_arrays(arrays, name, (shape[0], shape[1]), "f"))
            else:
                setattr(self, name, check_array(arrays, name, shape, "f"))

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
        self._check_options(options)
        data = as_interactions(train)
        if not data.n_positives:
            raise DataError(f"{type(self).__name__} cannot learn from {data!r}: training needs at least one positive")
        self._fit(data, None if valid is None else as_interactions(valid), **options)
        self.train_ = data
        return self

    def _check_options(self, options: Mapping[str, Any]) -> None:
        taken = signature(self._fit).parameters.values()
        if any(one.kind is one.VAR_KEYWORD for one in taken):
            return
        known = [one.name for one in taken if one.kind is one.KEYWORD_ONLY]
        for name in options:
            if name not in known:
                can = f"it takes {', '.join(known)}" if known else "it learns in one step and takes no options"
                raise ParameterError(f"{type(self).__name__}.fit has no option {name!r}: {can}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters by name; ``deep`` changes nothing, as no parameter is a model.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> ItemKNN(k=5).get_params()
        {'k': 5, 'shrink': 10.0}
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **values: Any) -> Self:
        """Change hyper-parameters; the model must be fitted anew afterwards.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> ItemKNN().set_params(k=5).k
        5
        >>> ItemKNN().set_params(shrinkage=5)
        Traceback (most recent call last):
        ...
        dpcml.utils.errors.ParameterError: ItemKNN has no parameter 'shrinkage': did you mean 'shrink'?
        """
        known, values = self.get_params(), current_params(type(self), values)
        for name in values:
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}: {did_you_mean(name, known)}")
        type(self)(**{**known, **values})  # checks all of them together before any is changed
        for name, value in values.items():
            setattr(self, name, value)
        return self

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
        likes, single = likes_of(histories, self.check_fitted())
        scores = self._score_histories(likes)
        return scores[0] if single else scores

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        """Return scores from the likes of users, known or new: ones in a matrix of shape (users, items), as scores."""
        raise ParameterError(
            f"{type(self).__name__} cannot serve users it was not trained on: fit it anew with their positives, or use"
            " itemknn, rp3beta, ease, ials or dpcml"
        )

    def check_fitted(self) -> Interactions:
        """Return the training data, or raise a `NotFittedError`.

        Examples
        --------
        >>> from dpcml import Popularity
        >>> Popularity().check_fitted()
        Traceback (most recent call last):
        ...
        dpcml.utils.errors.NotFittedError: this Popularity is not fitted yet: call fit(train) first
        """
        if not hasattr(self, "train_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(train) first")
        return self.train_

    def _rows(self, users: Sequence[int] | IntArray) -> IntArray:
        """Return user positions as an array, checked against the training data."""
        rows = np.atleast_1d(np.asarray(users))
        n_users = self.check_fitted().n_users
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
        return self._score_histories(self.check_fitted().csr[rows])
