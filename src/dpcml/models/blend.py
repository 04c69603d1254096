"""`Blend`: a weighted sum of the standardised scores of several models, with the interests of one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.data.merge import merge
from dpcml.evaluation.blending import blend_scores, find_weights
from dpcml.evaluation.evaluate import validation
from dpcml.evaluation.groups import attributes_of
from dpcml.evaluation.protocol import metric_cutoff
from dpcml.models.base import Recommender
from dpcml.models.dpcml import DPCML
from dpcml.models.ease import EASE
from dpcml.models.ials import IALS
from dpcml.models.item_item import TRIAL_USERS, RP3Beta
from dpcml.models.multi_interest import MultiInterest
from dpcml.models.parameters import (
    from_plain,
    member_with,
    named,
    nested_params,
    register,
    to_plain,
    unfitted,
    with_nested_params,
)
from dpcml.models.runners import runner_of
from dpcml.retrieval.aspects import Aspects, minority_scores
from dpcml.retrieval.content import ContentRidge
from dpcml.retrieval.explain import Reason
from dpcml.retrieval.request import UserBatch
from dpcml.training.checkpoint import Checkpoint
from dpcml.training.progress import is_shown, tell
from dpcml.training.trainer import FitOptions
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray, every_kth
from dpcml.utils.checks import at_least, check_array, positive
from dpcml.utils.errors import DataError, NoInterestsError, ParameterError
from dpcml.utils.threads import thread_count

USUAL_WEIGHTS = (0.7, 0.05, 0.1, 0.15)  # of the default models without a validation part: near those found on five sets
USUAL_BONUS = 0.05  # beside these weights, where items have categories


@register("blend")
@dataclass(eq=False)
class Blend(Recommender):
    """Add up the scores of several models; interests and reasons are those of the first member that has interests.

    The score of an item is ``sum_m w_m (s_m - mean) / deviation``, where mean and deviation of a member's scores are
    taken for each user over the items that are not in the user's history. Where items have categories, a bonus for
    items of the user's smaller ones is added in the same way (`minority_scores`). The weights are those with the best
    ``metric`` on the validation part; the test part is not looked at. Of weights that a validation part hardly tells
    apart, those are taken that serve minority interests best, see `find_weights`. `fit` trains copies of the models, in
    ``members_``; the weights are in ``weights_`` and ``minority_bonus_``, the best epochs in ``best_epochs_``.

    Parameters
    ----------
    models
        Unfitted models, at least one. By default `DPCML`, `EASE` and `RP3Beta` whose parameters are found on the
        validation part, and `IALS`: ``[DPCML(), EASE(l2_per_like=None, beta=None), RP3Beta(alpha=None, beta=None),
        IALS(dim=128)]``.
    weights
        One for each model; they are scaled to sum 1. By default they are found on the validation part. If `fit` gets
        none, they are equal, or 0.7, 0.05, 0.1 and 0.15 for the default models. To train on everything, find them on a
        split first: ``found.settled().fit(everything)``.
    minority_bonus
        Weight of the bonus for items of a user's smaller categories, beside the weights of the models. By default it is
        found with them; it is 0 if they are given, if no member has interests, or if items have no categories. Without
        a validation part it is 0.05 for the default models.
    metric
        The metric by which weights are chosen (released protocol).
    random_state
        Seed for all members that take one; None leaves each its own.
    n_threads
        Threads of all members that take a number of threads; None leaves each its own.

    Examples
    --------
    >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
    >>> likes[0, 4] = 0
    >>> model = Blend([DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3), EASE(l2=1.0)]).fit(likes)
    >>> model.recommend(0, n=1)[0], model.weights_.tolist()
    (array([4]), [0.5, 0.5])
    >>> len(model.interests(0))
    2
    >>> Blend().set_params(dpcml__dim=64).models[0].dim
    64
    """

    models: Sequence[Recommender] | None = None
    weights: Sequence[float] | None = None
    minority_bonus: float | None = None
    metric: str = "NDCG@5"
    random_state: int | None = None
    n_threads: int | None = None

    users_per_block = 1024
    uses_weights = True  # members that do not say so

    def _check(self) -> None:
        metric_cutoff(self.metric)
        thread_count(self.n_threads)
        if self.random_state is not None:
            at_least("random_state", self.random_state, 0)
        if self.minority_bonus is not None:
            positive("minority_bonus", self.minority_bonus, or_zero=True)
        listed = isinstance(self.models, (list, tuple)) and len(self.models) > 0
        if self.models is not None and not (listed and all(isinstance(one, Recommender) for one in self.models)):
            raise ParameterError(f"models={self.models!r}: pass a list of models, such as [DPCML(), EASE()]")
        if self.weights is None:
            return
        if not isinstance(self.weights, (list, tuple, np.ndarray)) or len(self.weights) != len(self._given()):
            raise ParameterError(f"weights={self.weights!r}: pass one number for each of {len(self._given())} models")
        for weight in self.weights:
            positive("weights", weight, or_zero=True)
        if not np.sum(self.weights) > 0:
            raise ParameterError(f"weights={self.weights!r}: at least one must be above 0")

    # Members and their parameters

    def _given(self) -> list[Recommender]:
        if self.models is not None:
            return list(self.models)
        return [DPCML(), EASE(l2_per_like=None, beta=None), RP3Beta(alpha=None, beta=None), IALS(dim=128)]

    def _copies(self) -> list[Recommender]:
        """Return unfitted copies of the models, with this model's seed and threads."""
        ours = {name: getattr(self, name) for name in ("random_state", "n_threads") if getattr(self, name) is not None}
        copies = [unfitted(model) for model in self._given()]
        for one in copies:
            known = one.get_params(deep=False)
            one.set_params(**{name: value for name, value in ours.items() if name in known})
        return copies

    @property
    def iterative(self) -> bool:  # type: ignore[override]
        """Whether a member is trained in epochs, so that checkpoints and callbacks apply."""
        return any(model.iterative for model in self._given())

    @property
    def takes_runner(self) -> bool:  # type: ignore[override]
        """Whether one of the models is trained by the engine."""
        return any(model.takes_runner for model in self._given())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters by name; with ``deep`` also those of the models, as ``ease__l2``.

        A second model of the same kind is called ``ease_2``. The default models are listed once one of their parameters
        is set.

        Examples
        --------
        >>> Blend([EASE(l2=7.0)]).get_params()["ease__l2"]
        7.0
        """
        own = super().get_params(deep=False)
        return own | nested_params(self.models or ()) if deep else own

    def known_params(self) -> dict[str, Any]:
        """Return every hyper-parameter that `set_params` takes, also those of the default models.

        Examples
        --------
        >>> Blend().known_params()["ease__form"]
        'auto'
        """
        return {**Blend(self._given()).get_params(), **self.get_params()}

    def param_name(self, name: str) -> str | None:
        """Return the name in `known_params` of what `set_params` takes under a name, see `Estimator.param_name`."""
        if name in self.known_params():
            return name
        member = member_with(named(self._given()), name)
        return None if member is None else f"{member}__{name}"

    def plain_params(self) -> dict[str, Any]:
        """Return the hyper-parameters as plain data, from which `from_arrays` builds the model."""
        plain = self.get_params(deep=False)
        if self.models is not None:
            plain["models"] = [to_plain(one) for one in self.models]
        if self.weights is not None:
            plain["weights"] = [float(weight) for weight in self.weights]
        return plain

    def set_params(self, **values: Any) -> Self:
        """Change hyper-parameters, of this model or of its models; it must be fitted again afterwards.

        A parameter of the first model, or that only one of the models has, needs no prefix.

        Examples
        --------
        >>> Blend().set_params(dim=64).models[0].dim
        64
        >>> Blend([EASE()]).set_params(ease__l2=7.0).models[0].l2
        7.0
        >>> Blend().set_params(eas__l2=7.0)
        Traceback (most recent call last):
        ...
        dpcml.utils.errors.ParameterError: Blend has no member 'eas': did you mean 'ease'?
        """
        own = self.get_params(deep=False)
        return super().set_params(**with_nested_params(values.get("models") or self._given(), own, values))

    # Training

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        if self.minority_bonus and train.items.attributes is None:
            raise ParameterError(
                f"minority_bonus={self.minority_bonus}: these items have no categories; read the data with items=...,"
                " or leave it out"
            )
        members = self._copies()
        in_epochs = next((name for name, member in named(members).items() if member.iterative), "")
        for name, member in sorted(named(members).items(), key=lambda one: _turn(one[1])):
            started = time.perf_counter()
            self._fit_member(member, train, valid, options, "" if name == in_epochs else name)
            if valid is not None and is_shown(options.progress):
                self._tell_value(name, member, train, valid, time.perf_counter() - started)
            if name == in_epochs:
                self.history_ = member.history_  # type: ignore[attr-defined]
        self.weights_, self.minority_bonus_ = self._find_weights(members, train, valid)
        found = [member._found_params().get("stop_after", 0) for member in members]
        self.best_epochs_ = np.array(found, dtype=np.float32)  # saved, unlike most histories
        self.members_ = members

    @staticmethod
    def _fit_member(
        member: Recommender, train: Interactions, valid: Interactions | None, options: FitOptions, below: str
    ) -> None:
        """Fit a member; the first one in epochs has the run's callbacks and checkpoint, others theirs ``below``."""
        given: dict[str, Any] = {"progress": options.progress}
        if member.iterative:
            given |= {"checkpoint": _checkpoint(options, below), "resume": options.resume}
            given["callbacks"] = () if below else options.callbacks  # of the history that the blend keeps
        if member.takes_runner:
            given["runner"] = runner_of(options)
        member.fit(train, valid, **given)

    def _tell_value(
        self, name: str, member: Recommender, train: Interactions, valid: Interactions, seconds: float
    ) -> None:
        some = every_kth(np.flatnonzero(valid.per_user), TRIAL_USERS)
        value = validation(member, train, valid, self.metric, users=some)
        tell(f"{name}: {self.metric} {value:.4f} on the validation part, {seconds:.1f} s")

    def _find_weights(
        self, members: list[Recommender], train: Interactions, valid: Interactions | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weights of the members, and that of the bonus."""
        keeper = next((place for place, one in enumerate(members) if one.multi_interest is not None), None)
        has_minorities = keeper is not None and train.items.attributes is not None
        if self.weights is None and valid is not None and len(members) > 1:
            scorer = _Minorities(train) if has_minorities and self.minority_bonus is None else None
            found = find_weights(members, train, valid, self.metric, self.random_state or 0, keeper, scorer)
            weights, bonus = found[: len(members)], float(found[len(members) :].sum())
        else:
            usual = USUAL_WEIGHTS if self.models is None else np.ones(len(members))
            given = np.asarray(usual if self.weights is None else self.weights, dtype=np.float64)
            weights = (given / given.sum()).astype(np.float32)
            bonus = USUAL_BONUS if has_minorities and self.models is None and self.weights is None else 0.0
        return weights, np.array([bonus if self.minority_bonus is None else self.minority_bonus], dtype=np.float32)

    def _found_params(self) -> dict[str, Any]:
        weights = [float(weight) for weight in self.weights_]
        models, bonus = self._settled_members(), float(self.minority_bonus_[0])
        return {"models": models, "weights": weights, "minority_bonus": bonus}

    def known_validation(self, metric: str) -> float | None:
        """Return None: the history is that of a member."""
        return None

    def partial_fit(self, more: Any, **options: Any) -> Self:
        """Add new users, new items and new positives: members learn them in place or are fitted anew; weights stay.

        Parameters
        ----------
        more
            The new positives: `Interactions`, a scipy matrix, or a frame, by external ids.
        **options
            For members with a ``partial_fit`` of their own, see `MultiInterest.partial_fit`.
        """
        train, new = self.check_fitted(), as_interactions(more)
        if not new.n_positives:
            raise DataError(f"{new!r} holds nothing new: partial_fit needs at least one positive")
        both = merge(train, new)
        placed = any(hasattr(member, "content_") for member in self.members_)  # by `add_items`
        members = [
            member if hasattr(member, "partial_fit") else one.fit(both, progress=False)
            for member, one in zip(self.members_, self._settled_members(), strict=True)
        ]
        for before, member in zip(self.members_, members, strict=True):
            if member is before:
                member.partial_fit(new, **options)  # type: ignore[attr-defined]
            elif placed:  # items that nobody likes still
                member._add_items(both, ContentRidge.of(both))
        self.models = [unfitted(member) for member in members]  # what was found is fixed: there is no validation part
        self.members_, self.train_ = members, both
        return self

    def _settled_members(self) -> list[Recommender]:
        """Return unfitted members with all that validation has found, the epochs that were best included."""
        settled = [member.settled() for member in self.members_]
        for one, epochs in zip(settled, self.best_epochs_, strict=True):
            if epochs:
                one.set_params(stop_after=int(epochs))
        return settled

    def _add_items(self, both: Interactions, ridge: ContentRidge) -> None:
        for member in self.members_:
            member._add_items(both, ridge)
            member.train_ = both

    def check_can_add_items(self) -> None:
        """Raise a `ParameterError` if `add_items` does not work for one of the models."""
        for model in self._given():
            model.check_can_add_items()

    # Arrays

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        members = (len(self._given()),)
        return {"weights_": members, "minority_bonus_": (1,), "best_epochs_": members}

    def to_arrays(self) -> dict[str, Array]:
        """Return the weights, and the arrays of each member with its name in front: ``ease.weights_``."""
        arrays = super().to_arrays()
        for name, member in named(self.members_).items():
            arrays |= {f"{name}.{key}": array for key, array in member.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], train: Interactions, parameters: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a fitted model from what `to_arrays` returned; see `Recommender.from_arrays`."""
        given = dict(parameters or {})
        if given.get("models") is not None:
            given["models"] = [from_plain(one) for one in given["models"]]
        return super().from_arrays(arrays, train, given)

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        self.members_ = self._copies()
        self.weights_ = check_array(arrays, "weights_", (len(self.members_),), "f")
        older = {name: np.zeros(shape, np.float32) for name, shape in self._shapes().items()}  # blends of 0.2.0
        self.minority_bonus_ = check_array({**older, **arrays}, "minority_bonus_", (1,), "f")
        self.best_epochs_ = check_array({**older, **arrays}, "best_epochs_", (len(self.members_),), "f")
        for name, member in named(self.members_).items():
            member.train_ = self.train_
            start = f"{name}."
            member._set_arrays({key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)})

    # Scores

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the blended score of every item; shape (users, items)."""
        return self._score_batch(UserBatch.known(self.check_fitted(), self._rows(users)))

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return self._score_batch(UserBatch(likes))

    def _score_batch(self, users: UserBatch) -> FloatArray:
        keeper = self.multi_interest  # the vectors in a batch are those of one model
        batches = [users if one is keeper else UserBatch(users.likes, users.rows) for one in self.members_]
        parts = [one._score_batch(batch) for one, batch in zip(self.members_, batches, strict=True)]
        attributes = self.check_fitted().items.attributes
        if attributes is None or not self.minority_bonus_[0]:
            return blend_scores(parts, self.weights_, users.likes)
        parts.append(minority_scores(attributes, users.likes))
        return blend_scores(parts, np.concatenate([self.weights_, self.minority_bonus_]), users.likes)

    def _similarity(self, columns: IntArray) -> FloatArray:
        parts, weights = list[FloatArray](), list[float]()
        for member, weight in zip(self.members_, self.weights_.tolist(), strict=True):
            try:
                parts.append(member._similarity(columns))
                weights.append(weight)
            except ParameterError:  # it knows no similar items
                continue
        if not parts:
            return super()._similarity(columns)
        ones, indptr = np.ones(len(columns), np.float32), np.arange(len(columns) + 1)
        own = sparse.csr_array((ones, columns, indptr), shape=(len(columns), self.check_fitted().n_items))
        return blend_scores(parts, np.array(weights), own)

    # Interests

    @property
    def multi_interest(self) -> MultiInterest | None:
        """The first member with interests; None if there is none."""
        self.check_fitted()
        found = [member.multi_interest for member in self.members_]
        return next((one for one in found if one is not None), None)

    def _with_interests(self) -> MultiInterest:
        found = self.multi_interest
        if found is None:
            raise NoInterestsError("this Blend knows no interests: add a member such as dpcml, cml or gfja")
        return found

    @property
    def user_vectors_(self) -> FloatArray:
        """Vectors of the users in the member with interests; shape (users, C, d)."""
        return self._attribute("user_vectors_")

    @property
    def item_vectors_(self) -> FloatArray:
        """Vectors of the items in the member with interests; shape (items, d)."""
        return self._attribute("item_vectors_")

    def _attribute(self, name: str) -> FloatArray:
        found = self.multi_interest if hasattr(self, "members_") else None
        if found is None:
            raise AttributeError(f"this Blend has no {name}: no member is fitted that knows interests")
        return np.asarray(getattr(found, name))

    def interests(self, user: Any, *, as_frame: bool = False) -> Any:
        """Return a user's interests, largest share first; see `MultiInterest.interests`."""
        return self._with_interests().interests(user, as_frame=as_frame)

    def interests_new(self, history: Any, *, on_unknown: str = "error", as_frame: bool = False) -> Any:
        """Return the interests of a user who was not in the training data, from the items they like."""
        return self._with_interests().interests_new(history, on_unknown=on_unknown, as_frame=as_frame)

    @property
    def nearest_interest(self) -> Callable[[Any, Any], IntArray]:
        """Which of a user's vectors is nearest to an item, see `MultiInterest.nearest_interest`.

        A property, so that evaluation sees whether a blend has it.
        """
        return self._with_interests().nearest_interest

    def fold_in(self, items: Any) -> FloatArray:
        """Return the vectors of a user who likes some items, shape (C, d); see `MultiInterest.fold_in`."""
        return self._with_interests().fold_in(items)

    def _reasons(self, users: UserBatch, best: IntArray) -> list[list[Reason]]:
        found = self.multi_interest
        return super()._reasons(users, best) if found is None else found._reasons(users, best)

    def _user_similarity(self, row: int) -> FloatArray:
        found = self.multi_interest
        return super()._user_similarity(row) if found is None else found._user_similarity(row)

    def _interest_aspects(self, users: UserBatch) -> Aspects | None:
        found = self.multi_interest
        return None if found is None else found._interest_aspects(users)

    def _best(self, users: UserBatch, n: int, allowed: BoolArray, exclude_seen: bool) -> tuple[IntArray, FloatArray]:
        found = self.multi_interest
        if found is not None:
            found.batch_vectors(users)  # once for scores, interests and reasons
        return super()._best(users, n, allowed, exclude_seen)


def _turn(member: Recommender) -> tuple[bool, bool, bool]:
    """Return the place of a member in the order of training, for the case that kernels are compiled meanwhile.

    First those whose kernels are there soonest, which have a first figure to show; then the engine's; EASE last,
    because LAPACK's threads wait for each other on a busy machine.
    """
    return isinstance(member, EASE), member.takes_runner, not member.iterative


@dataclass(frozen=True, eq=False)
class _Minorities:
    """The bonus of every item for users of the training data."""

    train: Interactions

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return `minority_scores` of some users."""
        return minority_scores(attributes_of(self.train), self.train.csr[users])


def _checkpoint(options: FitOptions, below: str) -> str | Path | Checkpoint | None:
    """Return the checkpoint of a member: that of the run, or a folder below it."""
    given = options.checkpoint
    if given is None or not below:
        return given
    if isinstance(given, Checkpoint):
        return replace(given, folder=Path(given.folder) / below)
    return Path(given) / below
