"""`MultiInterest`: models with several vectors per user and one per item, trained by the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from subprocess import Popen
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.data.merge import merge
from dpcml.models.adaptive import best_popularity, default_margin, lift, repeat_first
from dpcml.models.base import Recommender
from dpcml.models.incremental import fold_in_solver, fold_users, grow
from dpcml.models.runners import Runner, compile_in_background, runner_of, searched, train_here
from dpcml.retrieval.ann import ItemSearch
from dpcml.retrieval.aspects import VectorAspects
from dpcml.retrieval.content import ContentRidge
from dpcml.retrieval.exact import nearest_scores, nearest_vector
from dpcml.retrieval.explain import Reason, by_interest
from dpcml.retrieval.fold_in import FoldIn
from dpcml.retrieval.lists import known_columns
from dpcml.retrieval.profile import UserProfile, interest_frame, usual_shares
from dpcml.retrieval.request import UserBatch, histories_of, likes_of
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.init import INITS
from dpcml.training.order import default_user_run
from dpcml.training.progress import working
from dpcml.training.samplers import SAMPLERS, check_negatives
from dpcml.training.trainer import FitOptions, Trainer
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least, choice, one_id, positive
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.threads import thread_count


@dataclass(eq=False, kw_only=True)
class MultiInterest(Recommender):
    """A model with C vectors per user and one per item; the score of an item falls with its distance to the nearest.

    A subclass adds its own parameters, ``n_vectors``, and what differs in `train_config`.

    Parameters
    ----------
    dim
        Dimension of the vectors, d.
    margin
        How much closer a positive must be than a negative; None takes 1 for items with few likes, down to 0.5 for items
        with a hundred on average.
    negatives
        ``hard`` (the closest of uniform candidates), ``partial-auc`` (the closest tenth of them, at least two, which
        share the weight of one), ``uniform``, ``popularity`` (all candidates), or ``two-stage`` (candidates by
        popularity, one that is similar to the positive: of S candidates of its own, not of a larger pool as its authors
        draw). Items without a training positive are never drawn by popularity.
    n_candidates
        Candidates per positive, S; by default from 10 for dense data to 30 for sparse data: in dense data, the hardest
        of many candidates is often a positive that was not seen yet. ``partial-auc`` has three times as many.
    popularity_exponent
        ``popularity`` and ``two-stage`` draw candidates by training frequency to this power.
    pull
        Weight of the squared distance of a positive itself, beside the hinge; it falls with the item's number of likes.
        It steadies items with few likes.
    popularity
        Weight of the logarithm of an item's number of likes in its score; None finds it on the validation part (0.02
        without one). It is kept as a last coordinate of the items' vectors, in which all users are 0: a less popular
        item is a little farther from everybody.
    average
        The model is a running average of the vectors over the epochs, with this decay per epoch; 0 takes the vectors
        of the last epoch.
    init
        Initial vectors: ``clusters``, ``spectral`` or ``random``; see `dpcml.training.init`.
    optimizer
        ``adam`` or ``adagrad``, on touched rows.
    learning_rate, schedule
        Initial rate, and how it falls: ``constant``, ``linear``, ``cosine``.
    batch_size, epochs
        Positives per step, each with all its negatives, and passes over all positives. The paper counts triplets (a
        positive with one negative) instead: with S negatives, a batch here is S times as many triplets.
    max_user_run
        Positives of one user that are adjacent in a batch, at most: 1 shuffles all positives, as in the paper; longer
        runs reuse cached user vectors, which is faster on large data. By default from 1 to 4, an eighth of the mean
        number of positives per user: for users with few positives, long runs cost accuracy.
    validate_every, patience, metric
        With a validation part: evaluate ``metric`` (released protocol) every ``validate_every`` epochs, stop after
        ``patience`` evaluations without improvement (None: never), and keep the best state.
    stop_after
        End the training after this epoch; the schedule stays that of ``epochs``. `settled` sets it.
    random_state
        Seed: the same seed gives the same bits, whatever the number of threads.
    n_threads
        Threads; all cores by default.
    """

    dim: int = 100
    margin: float | None = 1.0
    negatives: str = "hard"
    n_candidates: int | None = None
    popularity_exponent: float = 1.0
    pull: float = 0.0
    popularity: float | None = 0.0
    average: float = 0.0
    init: str = "spectral"
    optimizer: Literal["adam", "adagrad"] = "adam"
    learning_rate: float = 0.003
    schedule: str = "linear"
    batch_size: int = 256
    epochs: int = 50
    max_user_run: int | None = None
    validate_every: int = 5
    patience: int | None = 4
    metric: str = "P@3"
    stop_after: int | None = None
    random_state: int = 0
    n_threads: int | None = None

    iterative = True
    uses_weights = True
    takes_runner = True
    renamed_params = {"together": "max_user_run", "start": "init", "optimiser": "optimizer"}  # noqa: RUF012
    users_per_block = 1024
    ann_from: ClassVar[int] = 200_000  # catalogue size above which an index is used, once there is one

    @property
    @abstractmethod
    def n_vectors(self) -> int | str:
        """Vectors per user, C, or the name of a rule."""

    def vector_counts(self, per_user: IntArray) -> IntArray:
        """Return how many vectors users get, from their numbers of positives."""
        return np.full(len(per_user), self.n_vectors, dtype=np.int64)

    def train_config(self, train: Interactions) -> TrainConfig:
        """Return what an epoch of training does on some data; the margin is in squared distances."""
        sampler = SAMPLERS[self.negatives].with_exponent(self.popularity_exponent)
        n_candidates = self.n_candidates or sampler.default_candidates(train)
        return TrainConfig(
            sampler=sampler,
            n_candidates=n_candidates,
            n_negatives=sampler.n_negatives(n_candidates),
            margin=default_margin(train) if self.margin is None else self.margin,
            pull=self.pull,
            diversity=(-np.inf, np.inf),
            diversity_weight=0.0,
            diversity_per_pair=False,
            users_on_sphere=True,
            items_on_sphere=False,
            optimizer=self.optimizer,
            batch_size=self.batch_size,
            max_user_run=self.max_user_run or default_user_run(train.n_positives, train.n_users),
            seed=self.random_state,
            average=self.average,
            n_threads=thread_count(self.n_threads),
        )

    def _check(self) -> None:
        Trainer.from_params(self.get_params())
        at_least("random_state", self.random_state, 0)
        for field in ("dim", "batch_size"):
            at_least(field, getattr(self, field), 1)
        for field in ("n_candidates", "max_user_run"):
            if getattr(self, field) is not None:
                at_least(field, getattr(self, field), 1)
        if self.margin is not None:
            positive("margin", self.margin)
        for field in ("popularity_exponent", "pull"):
            positive(field, getattr(self, field), or_zero=True)
        if self.popularity is not None:
            positive("popularity", self.popularity, or_zero=True)
        if not (isinstance(self.average, (int, float)) and 0 <= self.average < 1):
            raise ParameterError(f"average={self.average!r}: must be from 0 up to, but not including, 1")
        choice("optimizer", self.optimizer, ("adam", "adagrad"))
        choice("negatives", self.negatives, tuple(SAMPLERS))
        choice("init", self.init, tuple(INITS))

    # Training

    def make_engine(self, train: Interactions) -> Engine:
        """Return the engine that trains this model, with initial vectors."""
        rng = np.random.default_rng(self.random_state)
        counts = self.vector_counts(train.per_user)
        users, items = INITS[self.init](train, counts, self.trained_dim, rng)
        return Engine(train, repeat_first(users, counts), items, self.train_config(train))

    def compile_ahead(self, train: Interactions) -> Popen[bytes] | None:
        """Start a process that compiles the training kernel, if it is not compiled yet; None otherwise."""
        n_vectors = int(self.vector_counts(train.per_user).max(initial=1))
        return compile_in_background(self.train_config(train), n_vectors, self.trained_dim)

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        check_negatives(train)
        runner = runner_of(options)
        if runner is None:
            self.compile_ahead(train)  # unless the validation part wants more vectors, it is the right kernel
        with working("numbers of vectors", options.progress):
            self._adapt(*searched(runner, train, valid))
        run: Runner = runner or train_here
        users, items, self.history_ = run(self, train, valid, options)
        if self._lifted:
            weight = self.popularity
            if weight is None:
                weight = best_popularity(users, items, train, valid, self.metric, self.n_threads)
            self.popularity_weight_ = np.array([weight], dtype=np.float32)
        self._keep(users, items, train)

    def _adapt(self, train: Interactions, valid: Interactions | None) -> None:
        """Find what depends on the data before training."""

    @property
    def _lifted(self) -> bool:
        """Whether the last coordinate is popularity, and the others are trained."""
        return self.popularity != 0 and self.dim > 1

    @property
    def trained_dim(self) -> int:
        """Coordinates that are trained: all, or all but that of popularity."""
        return self.dim - self._lifted

    def _keep(self, users: FloatArray, items: FloatArray, train: Interactions) -> None:
        """Set the fitted vectors from trained ones, with the coordinate of popularity if the model has one."""
        if self._lifted:
            users = np.concatenate([users, np.zeros_like(users[:, :, :1])], axis=2)
            items = lift(items, train.per_item, float(self.popularity_weight_[0]))
        self.user_vectors_, self.item_vectors_ = users, items

    def trained_items(self) -> FloatArray:
        """Return the items' vectors without the coordinate of popularity; shape (items, trained coordinates)."""
        return np.ascontiguousarray(self.item_vectors_[:, : self.trained_dim])

    def known_validation(self, metric: str) -> float | None:
        """Return the validation value if the history has it: None with a coordinate of popularity, added later."""
        return None if self._lifted else super().known_validation(metric)

    def _found_params(self) -> dict[str, Any]:
        weight = (
            {"popularity": round(float(self.popularity_weight_[0]), 6)}
            if self.popularity is None and self._lifted
            else {}
        )
        return super()._found_params() | weight

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        train = self.check_fitted()
        shapes: dict[str, tuple[int, ...]] = {
            "user_vectors_": (train.n_users, self.n_vectors if isinstance(self.n_vectors, int) else -1, self.dim),
            "item_vectors_": (train.n_items, self.dim),
        }
        return shapes | ({"popularity_weight_": (1,)} if self._lifted else {})

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        if self._lifted and "popularity_weight_" not in arrays:  # saved by a version without it, trained without these
            self.popularity = self.pull = self.average = 0.0
        super()._set_arrays(arrays)

    def partial_fit(self, more: Any, *, epochs: int = 10) -> Self:
        """Add new users, new items and new positives without training from the beginning.

        Old items keep their vectors, and so do users without a new positive: their lists change only where a new item
        is better. After many small steps the model differs from a full training: train anew at times.

        Parameters
        ----------
        more
            The new positives: `Interactions`, a scipy matrix, or a frame, by external ids.
        epochs
            Passes over the positives of users with new positives, after new users were folded in and new items got
            vectors near their users; 0 does only the latter.

        Examples
        --------
        >>> from dpcml import DPCML, Interactions
        >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
        >>> likes[0, 4] = 0
        >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
        >>> more = Interactions.from_csr(np.ones((1, 3)), user_ids=[12], item_ids=[0, 1, 2])
        >>> sorted(model.partial_fit(more).recommend(12, n=2)[0].tolist())
        [3, 4]
        """
        at_least("epochs", epochs, 0)
        train, new = self.check_fitted(), as_interactions(more)
        if not new.n_positives:
            raise DataError(f"{new!r} holds nothing new: partial_fit needs at least one positive")
        both = merge(train, new)
        old_items = self.item_vectors_
        self._keep(*grow(self, both, epochs), both)
        self.item_vectors_[: len(old_items)] = old_items
        self.train_ = both
        return self

    def _add_items(self, both: Interactions, ridge: ContentRidge) -> None:
        items = ridge.extend(self.item_vectors_)
        lengths = np.linalg.norm(items[:, : self.trained_dim], axis=1)
        # Predicted vectors are short, and so nearer to everybody than any learned one: they get a usual length.
        scale = lengths[ridge.liked].mean() / np.maximum(lengths[ridge.cold], 1e-12)
        items[ridge.cold, : self.trained_dim] *= scale[:, None]
        self.item_vectors_ = items

    # Scores and vectors

    def _from_distance(self, scores: FloatArray) -> FloatArray:
        """Return the model's own scores from minus squared distances."""
        return scores

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the score of every item by its distance to the nearest of each user's vectors; (users, items)."""
        rows = self._rows(users)
        return self._from_distance(nearest_scores(self.user_vectors_[rows], self.item_vectors_))

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return self._from_distance(nearest_scores(self._fold(likes), self.item_vectors_))

    def _score_batch(self, users: UserBatch) -> FloatArray:
        return self._from_distance(nearest_scores(self.batch_vectors(users), self.item_vectors_))

    @property
    def multi_interest(self) -> MultiInterest | None:
        """The model itself."""
        return self

    def fold_in(self, items: Any) -> FloatArray:
        """Return vectors for a user who likes some items: those of training, with all item vectors fixed.

        Parameters
        ----------
        items
            External ids of the liked items, of a new user or of one whose likes have changed.

        Returns
        -------
        FloatArray
            Shape (C, d); the same items give the same bits.
        """
        likes, single = likes_of(items, self.check_fitted())
        if not single:
            raise ParameterError("fold_in takes the items of one user: call it for each")
        return np.asarray(self._fold(likes)[0])

    def _fold(self, likes: sparse.csr_array) -> FloatArray:
        """Return vectors for likes of shape (users, items); shape (users, C, d)."""
        solver: FoldIn = self._cached("fold_in", lambda: fold_in_solver(self))
        items: FloatArray = self._cached("trained_items", self.trained_items)
        return fold_users(self, solver, items, likes)

    def batch_vectors(self, users: UserBatch) -> FloatArray:
        """Return the vectors of known or new users, computed once per batch; shape (users, C, d)."""
        if users.vectors is None:
            known = users.rows is not None
            users.vectors = self.user_vectors_[users.rows] if known else self._fold(users.likes)
        return users.vectors

    def batch_profiles(self, users: UserBatch) -> list[UserProfile]:
        """Return the profiles of known or new users, made once per batch."""
        if users.profiles is None:
            vectors = self.batch_vectors(users)
            users.profiles = [UserProfile(vectors[k], self.item_vectors_, users.liked(k)) for k in range(len(users))]
        return users.profiles

    # Lists and interests

    def _best(self, users: UserBatch, n: int, allowed: BoolArray, exclude_seen: bool) -> tuple[IntArray, FloatArray]:
        vectors, seen = self.batch_vectors(users), users.seen(exclude_seen)
        best, scores = self._search().best(vectors, n, allowed, seen, by_index=self._large)
        return best, self._from_distance(scores)

    def _interest_aspects(self, users: UserBatch) -> VectorAspects:
        vectors = self.batch_vectors(users)
        shares = np.reshape([profile.shares for profile in self.batch_profiles(users)], vectors.shape[:2])
        return VectorAspects(vectors, shares, self.item_vectors_)

    def _reasons(self, users: UserBatch, best: IntArray) -> list[list[Reason]]:
        table = self.check_fitted().items
        profiles = self.batch_profiles(users)
        usual = self._usual()
        return [by_interest(row[row >= 0], profile, table, usual) for row, profile in zip(best, profiles, strict=True)]

    def _usual(self) -> FloatArray:
        """Return how usual each category is among all likes."""
        train = self.check_fitted()
        found: FloatArray = self._cached("usual", lambda: usual_shares(train.items, train.per_item))
        return found

    def interests(self, user: Any, *, as_frame: bool = False) -> Any:
        """Return a user's interests: the vectors with the liked items nearest to each, largest share first.

        Parameters
        ----------
        user
            External id of one user.
        as_frame
            Return a polars frame with the columns number, share, name, items and categories instead of a list of
            `Interest`.

        Examples
        --------
        >>> from dpcml import DPCML
        >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
        >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
        >>> round(sum(interest.share for interest in model.interests(0)), 6)
        1.0
        """
        train = self.check_fitted()
        users = UserBatch.known(train, train.user_rows(one_id("user", user)))
        found = self.batch_profiles(users)[0].interests(train.items, self._usual())
        return interest_frame(found) if as_frame else found

    def nearest_interest(self, users: Any, items: Any) -> IntArray:
        """Return which of a user's vectors is nearest to an item, for pairs of users and items.

        Parameters
        ----------
        users, items
            External ids, of equal length: ``items[k]`` is compared with the vectors of ``users[k]``. The item need not
            be one that the user likes.

        Returns
        -------
        IntArray
            Index of the nearest vector, the `Interest.number` of `interests`; shape (pairs,). Of equally near vectors
            the first.

        Examples
        --------
        >>> from dpcml import DPCML
        >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
        >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
        >>> interest = model.interests(0)[0]
        >>> set(model.nearest_interest([0] * len(interest.items), interest.items).tolist()) == {interest.number}
        True
        """
        train = self.check_fitted()
        rows, columns = train.user_rows(users), train.item_columns(items)
        if rows.ndim != 1 or rows.shape != columns.shape:
            raise ParameterError(
                f"nearest_interest: users of shape {rows.shape} and items of shape {columns.shape}: pass one item for"
                " each user, in two sequences of equal length"
            )
        return nearest_vector(self.user_vectors_, self.item_vectors_, rows, columns)

    def interests_new(self, history: Any, *, on_unknown: str = "error", as_frame: bool = False) -> Any:
        """Return the interests of a user who was not in the training data, from the items they like.

        Parameters
        ----------
        history
            External ids of the items that the user likes.
        on_unknown
            ``skip`` leaves out items that are not in the training data, an error if no other is left.
        as_frame
            As for `interests`.
        """
        train = self.check_fitted()
        rows, single = histories_of(history)
        if not single:
            raise ParameterError("interests_new takes the history of one user: call it for each")
        likes, _ = likes_of(train.item_ids[known_columns(train, rows[0], on_unknown)] if rows[0] else [], train)
        found = self.batch_profiles(UserBatch(likes))[0].interests(train.items, self._usual())
        return interest_frame(found) if as_frame else found

    def _similarity(self, columns: IntArray) -> FloatArray:
        return nearest_scores(self.item_vectors_[columns][:, None, :], self.item_vectors_)

    def _user_similarity(self, row: int) -> FloatArray:
        """Return minus the distance from each of a user's vectors to the nearest of others', weighted by share."""
        train = self.check_fitted()
        profile = self.batch_profiles(UserBatch.known(train, np.array([row])))[0]
        return profile.similarity(self.user_vectors_)

    # What follows from the item vectors

    def prepare_index(self) -> bool:
        """Build the index of the items, or load the cached one, if the catalogue is large enough.

        Without an index in the cache folder (``DPCML_CACHE``), search is exact. The first build takes minutes for
        millions of items.

        Returns
        -------
        bool
            Whether lists come from an index from now on.
        """
        self.check_fitted()
        if self._large:
            self._search().build_index()
        return self._large

    @property
    def _large(self) -> bool:
        return len(self.item_vectors_) >= self.ann_from

    def _search(self) -> ItemSearch:
        found: ItemSearch = self._cached("search", lambda: ItemSearch(self.item_vectors_))
        return found

    def _cached(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returned first, for as long as the model has the same item vectors."""
        cache: dict[str, Any] = self.__dict__.get("_made", {})
        if cache.get("items") is not self.item_vectors_:
            cache = {"items": self.item_vectors_}
            self._made: dict[str, Any] = cache
        if name not in cache:
            cache[name] = make()
        return cache[name]
