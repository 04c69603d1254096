"""`Estimator`: what each model implements: hyper-parameters, `fit`, fitted arrays and scores."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from scipy import sparse

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.data.items import ItemTable
from dpcml.models.parameters import Removed, check_sizes, current_params
from dpcml.models.runners import Runner, RunOptions
from dpcml.retrieval.content import L2, ContentRidge, with_new_items
from dpcml.retrieval.request import UserBatch, likes_of
from dpcml.training.checkpoint import Checkpoint, with_old_keywords
from dpcml.training.trainer import Callback, FitOptions
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.checks import check_array, check_memory, check_rows, csr_from_arrays, csr_to_arrays, positive
from dpcml.utils.errors import DataError, NotFittedError, ParameterError, did_you_mean

STATES = 3  # copies of the vectors while training: themselves and, for each number, two of the optimizer


@dataclass(eq=False)
class Estimator(ABC):
    """A model that learns arrays by `fit` and scores items, by the conventions of scikit-learn.

    Only `Recommender` derives from it; it adds what follows from scores and is the same for every model.
    """

    name: ClassVar[str]
    iterative: ClassVar[bool] = False  # trained in epochs, so that checkpoints and callbacks apply
    uses_weights: ClassVar[bool] = False  # learns from the weights of positives
    takes_runner: ClassVar[bool] = False  # trained by the engine, which can run elsewhere
    renamed_params: ClassVar[Mapping[str, str]] = {}  # new names by old ones, which work for one version
    removed_params: ClassVar[Mapping[str, Removed]] = {}

    def __post_init__(self) -> None:
        self._check()
        check_sizes(self.get_params())

    def _check(self) -> None:  # noqa: B027 (a model may have no parameters)
        """Raise a `ParameterError` for a hyper-parameter out of range."""

    @abstractmethod
    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        """Learn from ``train``; set fitted attributes, whose names end in an underscore."""

    @abstractmethod
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return name and shape of each fitted array or sparse matrix of float32; ``train_`` is set."""

    def _most_vectors(self) -> int:
        """Return the largest number of vectors that a user can have."""
        return int(getattr(self, "n_vectors", 1))

    def _bytes_needed(self, train: Interactions) -> int:
        """Return an estimate of the memory that training takes, without the data."""
        vectors = train.n_users * self._most_vectors() + train.n_items
        return 4 * STATES * vectors * getattr(self, "dim", 0)

    @with_old_keywords
    def fit(
        self,
        train: Any,
        valid: Any = None,
        *,
        checkpoint: str | Path | Checkpoint | None = None,
        resume: bool = False,
        callbacks: Sequence[Callback] = (),
        progress: bool | None = None,
        runner: Runner | None = None,
    ) -> Self:
        """Learn from positives.

        Parameters
        ----------
        train
            `Interactions`, a scipy matrix of shape (users, items), or a frame with user and item columns.
        valid
            Held-out positives over the same users and items: models trained in epochs keep the state that is best on
            them. Other models ignore it.
        checkpoint
            Folder for checkpoints, written every 10 epochs or 5 minutes, or a `Checkpoint` with other intervals; Ctrl-C
            then stops after the running epoch and leaves a checkpoint. An error for models that learn in one step.
        resume
            Go on from the checkpoint, if there is one; the result has the same bits as a run without a break.
        callbacks
            Functions that are called with the `History` after every epoch; a true result ends the training.
        progress
            Show a progress bar on standard error; by default if it is a terminal. Ignored by models without epochs.
        runner
            Where to train: None in this process, a `dpcml.scale.RayRunner` on a cluster. An error for models that are
            not trained by the engine.
        """
        options = RunOptions(checkpoint, resume, callbacks, progress, runner)
        if runner is not None:
            self.check_runner()
        if not self.iterative:
            options.refuse(type(self).__name__)
        data = as_interactions(train)
        if not data.n_positives:
            raise DataError(f"{type(self).__name__} cannot learn from {data!r}: training needs at least one positive")
        if data.weights is not None and not self.uses_weights:
            text = f"{type(self).__name__} ignores the weights of positives; dpcml, cml, gfja, ials, itemknn use them"
            warnings.warn(text, UserWarning, stacklevel=2)
        check_memory(
            type(self).__name__, self._bytes_needed(data), "lower dim or n_vectors, or take fewer items or users"
        )
        self._fit(data, None if valid is None else as_interactions(valid), options)
        self.train_ = data
        return self

    def check_runner(self) -> None:
        """Raise a `ParameterError` if the model cannot be trained by a runner.

        Examples
        --------
        >>> from dpcml import Popularity
        >>> Popularity().check_runner()
        Traceback (most recent call last):
        ...
        dpcml.utils.errors.ParameterError: Popularity is not trained by the engine, so that it cannot run on a cluster:
        leave out runner (--engine ray), or use dpcml, cml, gfja, or a blend with one of them
        """
        if not self.takes_runner:
            raise ParameterError(
                f"{type(self).__name__} is not trained by the engine, so that it cannot run on a cluster: leave out"
                " runner (--engine ray), or use dpcml, cml, gfja, or a blend with one of them"
            )

    def settled(self) -> Self:
        """Return an unfitted copy with the settings that the validation part has found, to be fitted on everything.

        A model that is trained in epochs stops after its best epoch; what else `fit` chooses on a validation part is
        fixed at what was chosen.

        Examples
        --------
        >>> import numpy as np
        >>> from dpcml import DPCML, Interactions
        >>> likes = Interactions.from_csr(np.kron(np.eye(2), np.ones((6, 10))))
        >>> train, valid = likes.split((0.8, 0.2))
        >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(train, valid)
        >>> final = model.settled().fit(likes)
        >>> len(final.history_.epochs) == model.history_.best.number
        True
        """
        self.check_fitted()
        return type(self)(**{**self.get_params(deep=False), **self._found_params()})

    def _found_params(self) -> dict[str, Any]:
        """Return the hyper-parameters that validation has found, by name."""
        history = getattr(self, "history_", None)
        if "stop_after" not in self.get_params(deep=False) or history is None or history.best is None:
            return {}
        return {"stop_after": history.best.number}

    def known_validation(self, metric: str) -> float | None:
        """Return the validation value of the fitted model, if its history has it; None: it has to be evaluated.

        Examples
        --------
        >>> import numpy as np
        >>> from dpcml import CML, Interactions
        >>> train, valid = Interactions.from_csr(np.kron(np.eye(2), np.ones((6, 10)))).split((0.8, 0.2))
        >>> model = CML(dim=8, epochs=5, n_candidates=3, metric="MAP").fit(train, valid)
        >>> model.known_validation("MAP") == model.history_.best.validation, model.known_validation("P@3")
        (True, None)
        """
        history = getattr(self, "history_", None)
        return history.best.validation if history and history.best and history.metric == metric else None

    def check_fitted(self) -> Interactions:
        """Return the training data; raise a `NotFittedError` before `fit`.

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

    # Items that nobody likes

    def add_items(self, items: ItemTable | str | Path, *, l2: float = L2) -> Self:
        """Add items that nobody likes yet, so that they can be recommended.

        What the model has learned of liked items is carried over to new ones by a ridge regression on tf-idf features:
        the items' attributes and the words of their titles. The model is saved and served with them. To learn from
        likes of such items, train anew.

        Parameters
        ----------
        items
            A catalogue with titles or attributes, or the path of one; items that the model knows stay as they are.
        l2
            Ridge penalty; the larger, the nearer new items are to the mean item.

        Examples
        --------
        >>> import numpy as np
        >>> from dpcml import EASE, Interactions
        >>> films = ItemTable(np.arange(4), np.array(["Alien I", "Alien II", "Emma I", "Emma II"], dtype=object))
        >>> model = EASE(l2=1.0).fit(Interactions.from_csr(np.kron(np.eye(2), np.ones((3, 2))), items=films))
        >>> new = ItemTable(np.array([7, 8]), np.array(["Emma III", "Alien III"], dtype=object))
        >>> model.add_items(new).recommend(0, n=1, items=[7, 8])[0]
        array([8])
        """
        from dpcml.data.readers.items import read_items  # polars takes long to import

        train = self.check_fitted()
        self.check_can_add_items()
        positive("l2", l2)
        table = items if isinstance(items, ItemTable) else read_items(items)
        both = with_new_items(train, table)
        self._add_items(both, ContentRidge.of(both, float(l2)))
        self.train_ = both
        return self

    def check_can_add_items(self) -> None:
        """Raise a `ParameterError` if `add_items` does not work for this model, fitted or not."""
        if type(self)._add_items is Estimator._add_items:
            raise ParameterError(
                f"{type(self).__name__} cannot take in items that nobody likes: use dpcml, cml, gfja, ease, rp3beta,"
                " itemknn, ials, bpr or a blend of them"
            )

    def _add_items(self, both: Interactions, ridge: ContentRidge) -> None:
        """Extend the fitted arrays to the items of ``both``, by content for those that nobody likes."""
        raise NotImplementedError

    # Hyper-parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters by name; ``deep`` adds those of models among them, which only `Blend` has.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> ItemKNN(k=5).get_params()
        {'k': 5, 'shrink': 10.0}
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def known_params(self) -> dict[str, Any]:
        """Return every hyper-parameter that `set_params` takes, also of models that are built only by `fit`."""
        return self.get_params()

    def param_name(self, name: str) -> str | None:
        """Return the name in `known_params` of what `set_params` takes under a name; None if it does not take it.

        Examples
        --------
        >>> from dpcml import EASE, Blend
        >>> Blend().param_name("dim"), EASE().param_name("dim")
        ('dpcml__dim', None)
        """
        return name if name in self.known_params() else None

    def plain_params(self) -> dict[str, Any]:
        """Return the hyper-parameters as plain data, from which `from_arrays` builds the model."""
        return self.get_params(deep=False)

    def set_params(self, **values: Any) -> Self:
        """Change hyper-parameters; the model must be fitted again afterwards.

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
        own, values = self.get_params(deep=False), current_params(type(self), values)
        for name in values:
            if name not in own:
                known = self.known_params()
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}: {did_you_mean(name, known)}")
        type(self)(**{**own, **values})  # checks all of them before any is changed
        for name, value in values.items():
            setattr(self, name, value)
        return self

    # Fitted arrays

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays that, with parameters and training data, are the whole fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from dpcml import Popularity
        >>> Popularity().fit(np.eye(2)).to_arrays()
        {'item_counts_': array([1., 1.], dtype=float32)}
        """
        self.check_fitted()
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
        """Return a fitted model from what `to_arrays` returned; arrays are checked, not copied.

        Parameters
        ----------
        arrays
            Fitted arrays by name.
        train
            The training data.
        parameters
            Hyper-parameters; old names are translated without a warning.
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

    def identity(self) -> dict[str, Any]:
        """Return model and parameters, by which a checkpoint is known."""
        return {**self.get_params(), "model": self.name}

    # Scores

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
        rows = self._rows(users)
        return self._score_histories(self.check_fitted().csr[rows])

    def score_new(self, histories: Any) -> FloatArray:
        """Return the score of every item for users who were not in the training data, from the items they like.

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
        >>> import numpy as np
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
        """Return scores of shape (users, items) from likes of the same shape, for known or new users."""
        raise ParameterError(
            f"{type(self).__name__} cannot serve users it was not trained on: fit it anew with their positives, or use"
            " itemknn, rp3beta, ease, ials or dpcml"
        )

    def _score_batch(self, users: UserBatch) -> FloatArray:
        """Return the scores of known or new users; shape (users, items)."""
        return self._score_histories(users.likes) if users.rows is None else self.score(users.rows)

    def _rows(self, users: Sequence[int] | IntArray) -> IntArray:
        """Return user rows as an array, checked against the training data."""
        return check_rows(users, self.check_fitted().n_users)
