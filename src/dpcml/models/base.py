"""`Recommender`, the base class of every model: what a user can ask of any of them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

import dpcml
from dpcml.data.interactions import Interactions, as_interactions
from dpcml.models.parameters import Removed, check_sizes, current_params
from dpcml.retrieval.aspects import Aspects, CategoryAspects, mixed_lists
from dpcml.retrieval.exact import best_by_scores
from dpcml.retrieval.explain import Reason, by_cooccurrence
from dpcml.retrieval.lists import ON_UNKNOWN, Lists, fill_in, list_frame, popular_list, request_columns, request_ids
from dpcml.retrieval.request import UserBatch, allowed_items, histories_of, likes_matrix, likes_of
from dpcml.retrieval.rerank import pool_size
from dpcml.training.checkpoint import Checkpoint, with_old_keywords
from dpcml.training.trainer import Callback, FitOptions
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least, check_array, choice, csr_from_arrays, csr_to_arrays, one_id, share
from dpcml.utils.errors import DataError, NotFittedError, NothingLeftError, ParameterError, did_you_mean
from dpcml.utils.memory import check_memory

STATES = 3  # copies of the vectors while training: themselves and, for each number, two of the optimizer

if TYPE_CHECKING:
    from dpcml.models.multi_interest import MultiInterest

MIX_BY = ("categories", "interests")


@dataclass(eq=False)
class Recommender(ABC):
    """A model that scores items for users.

    A subclass is a dataclass whose fields are the hyper-parameters. It implements ``_fit``, checks its parameters in
    ``_check``, names its fitted arrays in ``_shapes``, and is filed in `MODELS` by `register`. It implements
    ``_score_histories`` if scores follow from the liked items alone, else ``score``, or both.

    Users and items are rows and columns of the training matrix in ``score`` and `top_items`, external ids everywhere
    else. Larger scores are better.
    """

    name: ClassVar[str]
    iterative: ClassVar[bool] = False  # trained in epochs, so that checkpoints and callbacks apply
    renamed_params: ClassVar[Mapping[str, str]] = {}  # new names by old ones, which work for one version
    removed_params: ClassVar[Mapping[str, Removed]] = {}
    users_per_block: ClassVar[int | None] = None  # users whose lists are made at once; None for all

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
        """
        options = FitOptions(checkpoint, resume, callbacks, progress)
        if not self.iterative:
            options.refuse(type(self).__name__)
        data = as_interactions(train)
        if not data.n_positives:
            raise DataError(f"{type(self).__name__} cannot learn from {data!r}: training needs at least one positive")
        check_memory(
            type(self).__name__, self._bytes_needed(data), "lower dim or n_vectors, or take fewer items or users"
        )
        self._fit(data, None if valid is None else as_interactions(valid), options)
        self.train_ = data
        return self

    def settled(self) -> Self:
        """Return an unfitted copy with the settings that the validation part has found, to be fitted on everything.

        A model that is trained in epochs stops after its best epoch; what else `fit` chooses on a validation part is
        fixed at what was chosen.

        Examples
        --------
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

    @property
    def multi_interest(self) -> MultiInterest | None:
        """The fitted model that knows the users' interests: this one or a part of it; None if there is none."""
        return None

    # Parameters and arrays

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
        known, values = self.get_params(), current_params(type(self), values)
        for name in values:
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}: {did_you_mean(name, known)}")
        type(self)(**{**known, **values})  # checks all of them before any is changed
        for name, value in values.items():
            setattr(self, name, value)
        return self

    def to_arrays(self) -> dict[str, Array]:
        """Return the arrays that, with parameters and training data, are the whole fitted model.

        Examples
        --------
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

    def save(self, folder: str | Path, *, record: Mapping[str, Any] | None = None) -> Path:
        """Write the fitted model to a folder; see `dpcml.save`."""
        return dpcml.save(self, folder, record=record)

    def _identity(self) -> dict[str, Any]:
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
        try:
            rows = np.atleast_1d(np.asarray(users))
        except ValueError:  # nested sequences of different lengths
            rows = np.empty((0, 0))
        n_users = self.check_fitted().n_users
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ParameterError(f"users={users!r}: pass a sequence of row positions")
        if rows.size and (rows.min() < 0 or rows.max() >= n_users):
            raise ParameterError(
                f"user row {rows.min() if rows.min() < 0 else rows.max()}: must be in 0..{n_users - 1}"
            )
        return rows.astype(np.int64)

    # Lists

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        items: Sequence[Any] | Array | None = None,
        where: Mapping[str, Any] | None = None,
        exclude: Sequence[Any] | Array | None = None,
        mix: float = 0.0,
        mix_by: str | None = None,
        explain: bool = False,
        on_unknown: str = "error",
        as_frame: bool = False,
    ) -> Any:
        """Return the best items for one user or several.

        Parameters
        ----------
        users
            One external user id, or a sequence of them.
        n
            Length of the lists, at most.
        exclude_seen
            Leave out what the user knows: training positives, and pairs below the rating threshold.
        items
            External ids of the candidates; all items by default.
        where
            Conditions on items: ``{"category": "Horror"}``, or a list of values of which one must match; ``title``
            matches a part of the title.
        exclude
            External ids of items that are left out for everybody.
        mix
            From 0 (the best scores) to 1: the larger, the more items from outside the user's largest interest. The
            list is sorted by score in any case.
        mix_by
            What an interest is: ``categories`` of the items, or ``interests``, the vectors of a user, which DPCML and
            GFJA have. By default categories where the data have them.
        explain
            Also return reasons.
        on_unknown
            What to do with users that are not in the training data: ``error``; ``skip`` leaves them out, so that there
            are fewer lists, in the same order; ``popular`` gives them the most popular items, with the number of likes
            as score. The last two leave out unknown ids among ``items`` and ``exclude``.
        as_frame
            Return a polars frame with the columns user_id, rank, item_id and score, with ``explain`` also interest,
            share and reason.

        Returns
        -------
        ids, scores
            Best first; shape (up to n,) for one user, (users, up to n) for several. If one of several users has fewer
            candidates than the others, the rest of the row has id -1 (``None`` for text ids) and score minus infinity.
        reasons
            With ``explain``: a list of `Reason`, or for several users a list of such lists.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> model = ItemKNN(k=2, shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]))
        >>> ids, scores, reasons = model.recommend(3, n=1, explain=True)
        >>> ids, reasons[0].text
        (array([1]), 'because you like 0')
        >>> model.recommend([3, 99], n=1, on_unknown="popular", as_frame=True).rows()
        [(3, 1, 1, 0.816...), (99, 1, 0, 3.0)]
        """
        choice("on_unknown", on_unknown, ON_UNKNOWN)
        train = self.check_fitted()
        ids, rows = request_ids(train, users)
        if on_unknown == "error":
            train.user_rows(users)  # raises the error that names one
        elif on_unknown == "skip":
            ids, rows = ids[rows >= 0], rows[rows >= 0]
        candidates = self._candidates(items, where, exclude, on_unknown)
        batch = UserBatch.known(train, rows[rows >= 0])
        lists = self._top_or_popular(
            batch,
            rows >= 0,
            n,
            candidates=candidates,
            exclude_seen=exclude_seen,
            mix=mix,
            mix_by=mix_by,
            explain=explain,
        )
        if as_frame:
            return list_frame("user_id", ids, self._with_ids(lists, False, explain))
        return self._with_ids(lists, np.ndim(users) == 0, explain)

    def recommend_new(
        self,
        history: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        items: Sequence[Any] | Array | None = None,
        where: Mapping[str, Any] | None = None,
        exclude: Sequence[Any] | Array | None = None,
        mix: float = 0.0,
        mix_by: str | None = None,
        explain: bool = False,
        on_unknown: str = "error",
        as_frame: bool = False,
    ) -> Any:
        """Return the best items for users who were not in the training data, from the items they like.

        Parameters
        ----------
        history
            External ids of the items that one user likes, or a sequence of such sequences, one per user. An empty one
            gets the most popular items, with a warning and reasons that say so.
        n, exclude_seen, items, where, exclude, mix, mix_by, explain
            As for `recommend`; seen items are those in the history.
        on_unknown
            What to do with items of a history that are not in the training data: ``error``; ``skip`` leaves them out,
            an error if no other is left; ``popular`` leaves them out, and gives popular items if no other is left.
        as_frame
            As for `recommend`, with the number of the history, from 0, as first column ``history``.

        Returns
        -------
        ids, scores, reasons
            As from `recommend`.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> model = ItemKNN(k=2, shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
        >>> model.recommend_new([0], n=1)[0]
        array([1])
        """
        choice("on_unknown", on_unknown, ON_UNKNOWN)
        train = self.check_fitted()
        given, single = histories_of(history)
        columns = [request_columns(train, one, on_unknown) for one in given]
        for one, known in zip(given, columns, strict=True):
            if len(one) and not len(known) and on_unknown == "skip":
                train.item_columns(one)  # raises the error that names one
        there = np.array([len(known) > 0 for known in columns], dtype=bool)
        if not there.all():
            text = f"{np.count_nonzero(~there)} of {len(there)} histories hold no known item: they get popular items"
            warnings.warn(text, UserWarning, stacklevel=2)
        candidates = self._candidates(items, where, exclude, on_unknown)
        batch = UserBatch(likes_matrix([known for known in columns if len(known)], train.n_items))
        lists = self._top_or_popular(
            batch, there, n, candidates=candidates, exclude_seen=exclude_seen, mix=mix, mix_by=mix_by, explain=explain
        )
        if as_frame:
            return list_frame("history", np.arange(len(given)), self._with_ids(lists, False, explain))
        return self._with_ids(lists, single, explain)

    def _candidates(self, items: Any, where: Any, exclude: Any, on_unknown: str) -> BoolArray:
        """Return a mask of the items that may be recommended."""
        train = self.check_fitted()
        if items is not None and on_unknown != "error":
            known = request_columns(train, items, on_unknown)
            items = train.item_ids[known] if len(known) else items  # none known: the error names one
        allowed = allowed_items(train, items, where)
        if exclude is not None:
            allowed[request_columns(train, exclude, on_unknown)] = False
            if not allowed.any():
                raise NothingLeftError("exclude: no item is left to choose from; exclude fewer items")
        return allowed

    def _top_or_popular(
        self, batch: UserBatch, there: BoolArray, n: int, *, candidates: BoolArray, explain: bool, **options: Any
    ) -> Lists:
        """Return the lists of the users in a batch, who are at some places, and popular items for the others."""
        lists = self.top_items(batch, n, candidates=candidates, explain=explain, **options)
        if there.all():
            return lists
        popular = popular_list(self.check_fitted(), lists.items.shape[1], candidates, explain=explain)
        return fill_in(lists, there, popular, explain=explain)

    def top_items(
        self,
        users: UserBatch,
        n: int = 10,
        *,
        candidates: BoolArray | None = None,
        exclude_seen: bool = True,
        mix: float = 0.0,
        mix_by: str | None = None,
        explain: bool = False,
    ) -> Lists:
        """Return the best items of a batch of users by position; `recommend` adds external ids.

        Parameters
        ----------
        users
            Users with the items they like.
        n, exclude_seen, mix, mix_by, explain
            As for `recommend`.
        candidates
            Mask of the items that may be recommended, shape (items,); all by default.
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        share("mix", mix)
        if mix_by is not None:
            choice("mix_by", mix_by, MIX_BY)
        allowed = np.ones(train.n_items, dtype=bool) if candidates is None else candidates
        longest = min(int(n), int(np.count_nonzero(allowed)))  # a sum would take as long as a search in an index
        items, scores, reasons = [], [], list[list[Reason]]()
        for block in users.blocks(self.users_per_block or max(len(users), 1)):
            best, values = self._mixed(block, longest, allowed, exclude_seen, float(mix), mix_by)
            items.append(best)
            scores.append(values)
            if explain:
                reasons += self._reasons(block, best)
        return Lists(np.concatenate(items), np.concatenate(scores), reasons)

    def _mixed(
        self, users: UserBatch, n: int, allowed: BoolArray, exclude_seen: bool, mix: float, mix_by: str | None
    ) -> tuple[IntArray, FloatArray]:
        """Return lists as `_best` does, re-ranked for the users' smaller interests."""
        if not mix:
            return self._best(users, n, allowed, exclude_seen)
        aspects = self.aspects(users, mix_by)
        pool = min(pool_size(n), int(np.count_nonzero(allowed)))
        return mixed_lists(aspects, *self._best(users, pool, allowed, exclude_seen), n, mix)

    def aspects(self, users: UserBatch, by: str | None = None) -> Aspects:
        """Return what the lists of some users are mixed by, for a re-ranker.

        Parameters
        ----------
        users
            Users with the items they like.
        by
            As ``mix_by`` of `recommend`.

        Examples
        --------
        >>> from dpcml import Popularity, planted
        >>> data = planted(50, 60).data
        >>> users = UserBatch.known(data, np.arange(3))
        >>> Popularity().fit(data).aspects(users).shares.shape
        (3, 12)
        """
        attributes = self.check_fitted().items.attributes
        if by == "categories" and attributes is None:
            raise ParameterError("mix_by='categories': these items have none; read the data with items=...")
        if by != "interests" and attributes is not None:
            return CategoryAspects(attributes, users.likes)
        interests = self._interest_aspects(users)
        if interests is None:
            name = type(self).__name__
            raise ParameterError(
                f"mix: {name} knows no interests to mix; leave mix at 0, use data with categories, or dpcml or gfja"
            )
        return interests

    def _interest_aspects(self, users: UserBatch) -> Aspects | None:
        """Return the interests that the model has found, None if it knows none."""
        return None

    def _best(self, users: UserBatch, n: int, allowed: BoolArray, exclude_seen: bool) -> tuple[IntArray, FloatArray]:
        """Return positions and scores of the best items of each user; shape (users, n), -1 where they run out."""

        def score(first: int, last: int) -> FloatArray:
            return self._score_batch(users.part(first, last))

        return best_by_scores(score, len(users), n, users.seen(exclude_seen), allowed)

    def _with_ids(self, lists: Lists, single: bool, explain: bool) -> tuple[Any, ...]:
        longest = int((lists.items >= 0).sum(axis=1).max(initial=0))
        best, scores = lists.items[:, :longest], lists.scores[:, :longest]
        ids = self.check_fitted().item_ids[best]
        if (best < 0).any():
            ids[best < 0] = -1 if ids.dtype.kind == "i" else None
        found = (ids, scores, lists.reasons) if explain else (ids, scores)
        if single and not len(ids):  # the only user was left out
            return (ids.ravel(), scores.ravel(), []) if explain else (ids.ravel(), scores.ravel())
        return tuple(part[0] for part in found) if single else found

    # Reasons and similarity

    def explain(self, user: Any, items: Any) -> list[Reason]:
        """Return why each of some items would be recommended to a user.

        Parameters
        ----------
        user
            External id of one user.
        items
            External ids of items.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> model = ItemKNN(k=2, shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]))
        >>> model.explain(3, [1])[0].text
        'because you like 0'
        """
        train = self.check_fitted()
        users = UserBatch.known(train, train.user_rows(one_id("user", user)))
        return self._reasons(users, train.item_columns(items)[None])[0]

    def _reasons(self, users: UserBatch, best: IntArray) -> list[list[Reason]]:
        """Return a reason for each item of each list; -1 ends a list."""
        train = self.check_fitted()
        return [
            by_cooccurrence(row[row >= 0], users.liked(k), train.by_item, train.items) for k, row in enumerate(best)
        ]

    def similar_items(self, item: Any, n: int = 10) -> tuple[Array, FloatArray]:
        """Return the items most similar to one item: external ids and similarities, best first.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> ItemKNN(shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])).similar_items(0, n=1)[0]
        array([1])
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        column = train.item_columns(one_id("item", item))
        return _most_similar(self._similarity(column)[0], column, n, train.item_ids)

    def similar_users(self, user: Any, n: int = 10) -> tuple[Array, FloatArray]:
        """Return the users most similar to one user: external ids and similarities, best first.

        Examples
        --------
        >>> from dpcml import Popularity
        >>> Popularity().fit(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]])).similar_users(0, n=1)[0]
        array([2])
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        row = train.user_rows(one_id("user", user))
        return _most_similar(self._user_similarity(int(row[0])), row, n, train.user_ids)

    def _similarity(self, columns: IntArray) -> FloatArray:
        """Return the similarity of some items to all; shape (columns, items)."""
        raise ParameterError(f"{type(self).__name__} has no notion of similar items: use itemknn or ease")

    def _user_similarity(self, row: int) -> FloatArray:
        """Return the similarity of all users to one, here the cosine of their likes; shape (users,)."""
        train = self.check_fitted()
        shared = np.bincount(train.by_item[train.of(row)].indices, minlength=train.n_users)
        return np.asarray(shared / np.sqrt(np.maximum(train.per_user * train.per_user[row], 1)))


def _most_similar(similarity: FloatArray, own: IntArray, n: int, ids: Array) -> tuple[Array, FloatArray]:
    """Return ids and values of the largest similarities, without the item or user itself."""
    similarity = similarity.astype(np.float32)
    similarity[own] = -np.inf
    best = np.argsort(-similarity, kind="stable")[: min(int(n), len(ids) - 1)]
    return ids[best], similarity[best]
