"""`Blend`: a weighted sum of the standardised scores of several models, with the interests of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.data.merge import merge
from dpcml.evaluation.blending import blend_scores, find_weights
from dpcml.evaluation.protocol import metric_cutoff
from dpcml.models.base import Recommender
from dpcml.models.dpcml import DPCML
from dpcml.models.ease import EASE
from dpcml.models.multi_interest import MultiInterest
from dpcml.models.parameters import MODELS, current_params, register
from dpcml.retrieval.aspects import Aspects
from dpcml.retrieval.explain import Reason
from dpcml.retrieval.profile import Interest
from dpcml.retrieval.request import UserBatch
from dpcml.training.checkpoint import Checkpoint
from dpcml.training.trainer import FitOptions
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least, check_array, positive
from dpcml.utils.errors import DataError, ParameterError, did_you_mean
from dpcml.utils.threads import thread_count


@register("blend")
@dataclass(eq=False)
class Blend(Recommender):
    """Add up the scores of several models; interests and reasons are those of the first member that has interests.

    The score of an item is ``sum_m w_m (s_m - mean) / deviation``, where mean and deviation of a member's scores are
    taken for each user over the items that are not in the user's history. The weights are those with the best
    ``metric`` on the validation part; the test part is not looked at. `fit` trains copies of the models, in
    ``members_``; the weights are in ``weights_``.

    Parameters
    ----------
    models
        Unfitted models, at least one; ``[DPCML(), EASE()]`` by default.
    weights
        One for each model; they are scaled to sum 1. By default they are found on the validation part, or equal if
        `fit` gets none. To train on everything, find them on a split first: ``found.settled().fit(everything)``.
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
    metric: str = "NDCG@5"
    random_state: int | None = None
    n_threads: int | None = None

    users_per_block = 1024

    def _check(self) -> None:
        metric_cutoff(self.metric)
        thread_count(self.n_threads)
        if self.random_state is not None:
            at_least("random_state", self.random_state, 0)
        listed = isinstance(self.models, (list, tuple)) and len(self.models) > 0
        if self.models is not None and not (listed and all(isinstance(one, Recommender) for one in self.models)):
            raise ParameterError(f"models={self.models!r}: pass a list of models, such as [DPCML(), EASE()]")
        if self.weights is None:
            return
        if np.ndim(self.weights) != 1 or len(self.weights) != len(self._given()):
            raise ParameterError(f"weights={self.weights!r}: pass one number for each of {len(self._given())} models")
        for weight in self.weights:
            positive("weights", weight, or_zero=True)
        if not np.sum(self.weights) > 0:
            raise ParameterError(f"weights={self.weights!r}: at least one must be above 0")

    # Members and their parameters

    def _given(self) -> list[Recommender]:
        return [DPCML(), EASE()] if self.models is None else list(self.models)

    def _copies(self) -> list[Recommender]:
        """Return unfitted copies of the models, with this model's seed and threads."""
        ours = {name: getattr(self, name) for name in ("random_state", "n_threads") if getattr(self, name) is not None}
        copies = [_copy(model) for model in self._given()]
        for copy in copies:
            known = copy.get_params(deep=False)
            copy.set_params(**{name: value for name, value in ours.items() if name in known})
        return copies

    @property
    def iterative(self) -> bool:  # type: ignore[override]
        """Whether a member is trained in epochs, so that checkpoints and callbacks apply."""
        return any(model.iterative for model in self._given())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters by name; with ``deep`` also those of the models, as ``ease__l2``.

        A second model of the same kind is called ``ease_2``. The default models are listed once one of their parameters
        is set.

        Examples
        --------
        >>> Blend([EASE(l2=7.0)]).get_params()["ease__l2"]
        7.0
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, model in _named(self.models or ()).items() if deep else ():
            found |= {f"{name}__{key}": value for key, value in model.get_params().items()}
        return found

    def known_params(self) -> dict[str, Any]:
        """Return every hyper-parameter that `set_params` takes, also those of the default models.

        Examples
        --------
        >>> Blend().known_params()["ease__form"]
        'auto'
        """
        return {**Blend(self._given()).get_params(), **self.get_params()}

    def plain_params(self) -> dict[str, Any]:
        """Return the hyper-parameters as plain data, from which `from_arrays` builds the model."""
        plain = self.get_params(deep=False)
        if self.models is not None:
            plain["models"] = [{"model": one.name, "parameters": one.plain_params()} for one in self.models]
        if self.weights is not None:
            plain["weights"] = [float(weight) for weight in self.weights]
        return plain

    def set_params(self, **values: Any) -> Self:
        """Change hyper-parameters, of this model or of its models; it must be fitted again afterwards.

        A parameter that only one of the models has needs no prefix.

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
        nested: dict[str, dict[str, Any]] = {}
        values = self._with_prefixes(values)
        for name in [name for name in values if "__" in name]:
            member, _, key = name.partition("__")
            nested.setdefault(member, {})[key] = values.pop(name)
        if nested:
            copies = [_copy(model) for model in values.get("models") or self._given()]
            named = _named(copies)
            for member, changes in nested.items():
                if member not in named:
                    raise ParameterError(f"Blend has no member {member!r}: {did_you_mean(member, named)}")
                named[member].set_params(**changes)
            values["models"] = copies
        known = self.get_params(deep=False)
        for name in values:
            if name not in known:
                raise ParameterError(f"Blend has no parameter {name!r}: {did_you_mean(name, self.known_params())}")
        type(self)(**{**known, **values})  # checks all of them before any is changed
        for name, value in values.items():
            setattr(self, name, value)
        return self

    def _with_prefixes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters, with the member's name before those that only one member has."""
        members = _named(values.get("models") or self._given())
        own, prefixed = {field.name for field in fields(self)}, dict[str, Any]()
        for name, value in values.items():
            having = [member for member, model in members.items() if name in model.get_params(deep=False)]
            prefixed[f"{having[0]}__{name}" if name not in own and len(having) == 1 else name] = value
        return prefixed

    # Training

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        members = self._copies()
        in_epochs = [name for name, member in _named(members).items() if member.iterative]
        for name, member in _named(members).items():
            if name not in in_epochs:
                member.fit(train, valid, progress=options.progress)
                continue
            member.fit(
                train,
                valid,
                checkpoint=_checkpoint(options, "" if name == in_epochs[0] else name),
                resume=options.resume,
                callbacks=options.callbacks,
                progress=options.progress,
            )
            if name == in_epochs[0]:
                self.history_ = member.history_  # type: ignore[attr-defined]
        self.weights_ = self._find_weights(members, train, valid)
        self.members_ = members

    def _find_weights(self, members: list[Recommender], train: Interactions, valid: Interactions | None) -> FloatArray:
        given = np.ones(len(members)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if self.weights is None and valid is not None and len(members) > 1:
            return find_weights(members, train, valid, self.metric, self.random_state or 0)
        return np.asarray(given / given.sum(), dtype=np.float32)

    def _found_params(self) -> dict[str, Any]:
        weights = [float(weight) for weight in self.weights_]
        return {"models": [member.settled() for member in self.members_], "weights": weights}

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
        for member in self.members_:
            grow = getattr(member, "partial_fit", None)
            if grow is None:
                member.fit(both, progress=False)
            else:
                grow(new, **options)
        self.train_ = both
        return self

    # Arrays

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weights_": (len(self._given()),)}

    def to_arrays(self) -> dict[str, Array]:
        """Return the weights, and the arrays of each member with its name in front: ``ease.weights_``."""
        arrays = super().to_arrays()
        for name, member in _named(self.members_).items():
            arrays |= {f"{name}.{key}": array for key, array in member.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, Array], train: Interactions, parameters: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a fitted model from what `to_arrays` returned; see `Recommender.from_arrays`."""
        given = dict(parameters or {})
        if given.get("models") is not None:
            given["models"] = [_from_plain(one) for one in given["models"]]
        return super().from_arrays(arrays, train, given)

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        self.members_ = self._copies()
        self.weights_ = check_array(arrays, "weights_", (len(self.members_),), "f")
        for name, member in _named(self.members_).items():
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
        return blend_scores(parts, self.weights_, users.likes)

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
            raise ParameterError("this Blend knows no interests: add a member such as dpcml, cml or gfja")
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

    def interests(self, user: Any) -> list[Interest]:
        """Return a user's interests, largest share first; see `MultiInterest.interests`."""
        return self._with_interests().interests(user)

    def interests_new(self, history: Any) -> list[Interest]:
        """Return the interests of a user who was not in the training data, from the items they like."""
        return self._with_interests().interests_new(history)

    def nearest_interest(self, users: Any, items: Any) -> IntArray:
        """Return which of a user's vectors is nearest to an item, see `MultiInterest.nearest_interest`."""
        return self._with_interests().nearest_interest(users, items)

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


def _named(models: Sequence[Recommender]) -> dict[str, Recommender]:
    """Return models by name; a second one of the same kind gets a number."""
    found: dict[str, Recommender] = {}
    for model in models:
        same = sum(type(one) is type(model) for one in found.values())
        found[f"{model.name}_{same + 1}" if same else model.name] = model
    return found


def _copy(model: Recommender) -> Recommender:
    return type(model)(**model.get_params(deep=False))


def _from_plain(plain: Any) -> Recommender:
    """Return the unfitted model that an entry of `Blend.plain_params` describes."""
    if isinstance(plain, Recommender):
        return plain
    name, parameters = plain["model"], plain["parameters"]
    if name not in MODELS:
        raise DataError(
            f"unknown model {name!r}: {did_you_mean(str(name), MODELS)}; import the module that registers it"
        )
    kind = MODELS[name]
    if parameters.get("models") is not None:
        parameters = {**parameters, "models": [_from_plain(one) for one in parameters["models"]]}
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    return kind().set_params(**current_params(kind, values, warn=False))


def _checkpoint(options: FitOptions, below: str) -> str | Path | Checkpoint | None:
    """Return the checkpoint of a member: that of the run, or a folder below it."""
    given = options.checkpoint
    if given is None or not below:
        return given
    if isinstance(given, Checkpoint):
        return replace(given, folder=Path(given.folder) / below)
    return Path(given) / below
