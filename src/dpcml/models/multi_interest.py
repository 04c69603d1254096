"""What models with several vectors per user can tell: interests, reasons, mixed lists, vectors of new people."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, as_interactions
from dpcml.data.merge import merge
from dpcml.models.base import Recommender
from dpcml.models.histories import likes_of
from dpcml.models.partial import grow
from dpcml.models.people import People
from dpcml.models.vectors import nearest_scores
from dpcml.retrieval.ann import AnnIndex, available, best_with_index, index_of
from dpcml.retrieval.exact import Catalogue, Seen, best_by_distance, nothing_seen, queues_by_distance, seen_of
from dpcml.retrieval.fold_in import RATE, FoldIn
from dpcml.retrieval.interests import Interest, distances, group, interests_of
from dpcml.retrieval.mix import mixed_lists
from dpcml.retrieval.reasons import Reason, by_interest
from dpcml.training.engine import TrainConfig, objective_of
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least, one_id
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.threads import over_rows

PEOPLE_AT_ONCE = 1024  # whose vectors are looked up or found together
DENSE = 0.05  # share of positives from which on fold-in takes smaller steps: negatives are often likes not seen yet
BY_INDEX = 100  # longest lists that are looked for in an index


class MultiInterest(Recommender):
    """A model with C vectors per user and one per item; an item is as good as its squared distance to the nearest."""

    ann_from: ClassVar[int] = 200_000  # items from which on an index is used, once there is one
    n_vectors: int
    learning_rate: float
    user_vectors_: FloatArray  # (users, C, d)
    item_vectors_: FloatArray  # (items, d)

    @abstractmethod
    def _plan(self, train_data: Interactions) -> TrainConfig:
        """Return how the model is trained, beside the vectors."""

    def _from_distance(self, scores: FloatArray) -> FloatArray:
        """Return the model's own scores from minus squared distances."""
        return scores

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the score of every item by its distance to the nearest of each user's vectors; (users, items)."""
        rows = self._rows(users)
        return self._from_distance(nearest_scores(self.user_vectors_[rows], self.item_vectors_))

    def fold_in(self, items: Any) -> FloatArray:
        """Return the vectors of somebody who likes some items, found as in training while items stay where they are.

        Parameters
        ----------
        items
            External ids of the liked items: those of a new user, or all of a user whose likes have changed.

        Returns
        -------
        FloatArray
            Shape (C, d); the same items give the same bits.
        """
        likes, single = likes_of(items, self.check_fitted())
        if not single:
            raise ParameterError("fold_in takes the items of one person: call it for each")
        return np.asarray(self._fold(likes)[0])

    def interests(self, user: Any) -> list[Interest]:
        """Return a user's interests: the vectors as named groups of the user's history, largest share first.

        Examples
        --------
        >>> from dpcml import DPCML
        >>> likes = np.kron(np.eye(2), np.ones((6, 5)))
        >>> model = DPCML(n_vectors=2, dim=8, epochs=20, n_candidates=3).fit(likes)
        >>> round(sum(interest.share for interest in model.interests(0)), 6)
        1.0
        """
        train = self.check_fitted()
        return self._interests(People.known(train, train.user_rows(one_id("user", user))))[0]

    def interests_new(self, history: Any) -> list[Interest]:
        """Return the interests of somebody who was not in the training data, from what they like."""
        likes, single = likes_of(history, self.check_fitted())
        if not single:
            raise ParameterError("interests_new takes the history of one person: call it for each")
        return self._interests(People(likes))[0]

    def partial_fit(self, more: Any, *, epochs: int = 10) -> Self:
        """Take in new users, new items and new positives, without training everything anew.

        Old items keep their vectors, and so do users without a new positive: what they are recommended changes only
        where a new item is better. Many small steps lead away from what a full training finds: train anew at times.

        Parameters
        ----------
        more
            The new positives: `Interactions`, a scipy matrix, or a frame, by external ids.
        epochs
            Passes over the positives of users with something new, after new users were folded in and new items were
            placed among their users; 0 is for that alone.

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
        self.user_vectors_, self.item_vectors_ = grow(self, both, epochs)
        self.train_ = both
        return self

    def prepare_index(self) -> bool:
        """Make an index of the items, or load the one that was made before, where the catalogue is large enough.

        Without one in the cache folder (``DPCML_CACHE``), lists are found exactly. Takes minutes for millions of items,
        the first time.

        Returns
        -------
        bool
            Whether lists come from an index from now on.
        """
        self.check_fitted()
        if len(self.item_vectors_) < self.ann_from:
            return False
        self._kept()["index"] = index_of(self.item_vectors_)
        return True

    def _index(self) -> AnnIndex | None:
        """Return the index, if there is one already."""
        if len(self.item_vectors_) < self.ann_from or not available():
            return None
        found: AnnIndex | None = self._once("index", lambda: index_of(self.item_vectors_, build=False))
        return found

    def _vectors(self, people: People) -> FloatArray:
        """Return the vectors of known or new people; shape (people, C, d)."""
        if people.rows is not None:
            return np.asarray(self.user_vectors_[people.rows])
        if "vectors" not in people.found:
            people.found["vectors"] = self._fold(people.likes)
        return np.asarray(people.found["vectors"])

    def _fold(self, likes: sparse.csr_array) -> FloatArray:
        """Return vectors for likes of shape (people, items); shape (people, C, d)."""
        found = np.empty((likes.shape[0], *self.user_vectors_.shape[1:]), dtype=np.float32)
        how = self._once("folding", self._folding)

        def work(first: int, last: int) -> None:
            for k in range(first, last):
                found[k] = how.vectors(self.item_vectors_, likes.indices[likes.indptr[k] : likes.indptr[k + 1]])

        over_rows(work, len(found))
        return found

    def _folding(self) -> FoldIn:
        """Return how vectors of new people are found."""
        train = self.check_fitted()
        plan = self._plan(train)
        exponent, density = plan.sampler.exponent, train.n_positives / (train.n_users * train.n_items)
        return FoldIn(
            objective_of(plan, self.item_vectors_.shape[1]),
            self.n_vectors,
            plan.n_candidates,
            plan.sampler.choice,
            np.maximum(train.per_item, 1e-9) ** exponent if exponent else None,
            plan.seed,
            rate=RATE * min(1.0, DENSE / density),
        )

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what follows from the items' vectors, made when it is asked for first and kept while they stay."""
        kept = self._kept()
        if name not in kept:
            kept[name] = make()
        return kept[name]

    def _kept(self) -> dict[str, Any]:
        """Return what was made of the items' vectors that the model has now."""
        kept: dict[str, Any] = self.__dict__.get("_made", {})
        if kept.get("of") is not self.item_vectors_:
            kept = {"of": self.item_vectors_}
            self._made: dict[str, Any] = kept
        return kept

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        return self._from_distance(nearest_scores(self._fold(likes), self.item_vectors_))

    def _best(self, people: People, n: int, allowed: BoolArray, exclude_seen: bool) -> tuple[IntArray, FloatArray]:
        index = self._index() if n <= BY_INDEX and allowed.all() else None

        def find(vectors: FloatArray, some: People, catalogue: Catalogue, seen: Seen) -> tuple[IntArray, FloatArray]:
            if index is not None:
                return best_with_index(index, vectors, catalogue, n, seen)
            return best_by_distance(vectors, catalogue, n, seen)

        return self._in_blocks(find, people, allowed, exclude_seen)

    def _mixed(
        self, people: People, n: int, allowed: BoolArray, exclude_seen: bool, mix: float
    ) -> tuple[IntArray, FloatArray]:
        def find(vectors: FloatArray, some: People, catalogue: Catalogue, seen: Seen) -> tuple[IntArray, FloatArray]:
            queues = queues_by_distance(vectors, catalogue, n, seen)
            shares = [group(own, self.item_vectors_, some.liked(k))[1] for k, own in enumerate(vectors)]
            return mixed_lists(*queues, np.reshape(shares, vectors.shape[:2]), n, mix)

        return self._in_blocks(find, people, allowed, exclude_seen)

    def _in_blocks(
        self, find: Callable[..., tuple[IntArray, FloatArray]], people: People, allowed: BoolArray, exclude_seen: bool
    ) -> tuple[IntArray, FloatArray]:
        """Return what ``find(vectors, people, catalogue, seen)`` gives, for all people."""
        catalogue: Catalogue = self._once("catalogue", lambda: Catalogue.of(self.item_vectors_))
        if not allowed.all():
            catalogue = catalogue.only(np.flatnonzero(allowed))
        found = []
        for first in range(0, max(len(people), 1), PEOPLE_AT_ONCE):
            some = people.part(first, first + PEOPLE_AT_ONCE)
            seen = seen_of(some.likes) if exclude_seen else nothing_seen(len(some))
            found.append(find(self._vectors(some), some, catalogue, seen))
        best, scores = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return best, self._from_distance(scores)

    def _interests(self, people: People) -> list[list[Interest]]:
        table = self.check_fitted().items
        vectors = self._vectors(people)
        return [interests_of(vectors[k], self.item_vectors_, people.liked(k), table) for k in range(len(people))]

    def _reasons(self, people: People, best: IntArray) -> list[list[Reason]]:
        items, table = self.item_vectors_, self.check_fitted().items
        vectors, interests = self._vectors(people), self._interests(people)
        return [
            by_interest(row[row >= 0], vectors[k], items, people.liked(k), interests[k], table)
            for k, row in enumerate(best)
        ]

    def _similarity(self, columns: IntArray) -> FloatArray:
        return nearest_scores(self.item_vectors_[columns][:, None, :], self.item_vectors_)

    def _user_similarity(self, row: int) -> FloatArray:
        """Return how near each of the user's interests is to one of others', weighted by its share."""
        vectors, train = self.user_vectors_[row], self.check_fitted()
        _, shares = group(vectors, self.item_vectors_, train.of(row))
        weights = shares if shares.any() else np.full(len(vectors), 1 / len(vectors))
        dim = vectors.shape[1]
        apart = distances(vectors, self.user_vectors_.reshape(-1, dim)).reshape(len(vectors), train.n_users, -1)
        return np.asarray(-np.einsum("c,cu->u", weights, apart.min(axis=2)))
