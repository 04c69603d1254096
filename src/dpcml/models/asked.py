"""What every model answers once it can score: lists, reasons, what and who is alike. External ids in and out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.models.histories import likes_of
from dpcml.models.people import People
from dpcml.retrieval.exact import best_by_scores, nothing_seen, seen_of
from dpcml.retrieval.filters import allowed_items
from dpcml.retrieval.reasons import Reason, by_company
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least, one_id, share
from dpcml.utils.errors import ParameterError

Choice = Sequence[Any] | Array | None


class Asked(ABC):
    """Recommends, explains and compares; a model says how it scores, and may override the hooks at the end."""

    @abstractmethod
    def check_fitted(self) -> Interactions:
        """Return the training data, or say that there is none yet."""

    @abstractmethod
    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the score of every item for rows of the training data; shape (users, items)."""

    @abstractmethod
    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        """Return scores of shape (people, items) from likes of the same shape."""

    def recommend(
        self,
        users: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        items: Choice = None,
        where: Mapping[str, Any] | None = None,
        mix: float = 0.0,
        explain: bool = False,
    ) -> tuple[Any, ...]:
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
        where
            What items must fulfil: ``{"category": "Horror"}``, or a list of which one must hold; ``title`` looks for
            a part of the title.
        mix
            For models with interests, from 0 (the best scores) over 0.5 (each interest as often as in the history) to
            1 (all interests alike).
        explain
            Also return why.

        Returns
        -------
        ids, scores
            Best first; shape (up to n,) for one user, (users, up to n) for several. Where one of several users has
            fewer candidates than the others, the rest of the row has id -1 (``None`` for text ids) and score minus
            infinity.
        reasons
            With ``explain``: a list of `Reason`, or for several users a list of such lists.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> model = ItemKNN(k=2, shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]))
        >>> ids, scores, reasons = model.recommend(3, n=1, explain=True)
        >>> ids, reasons[0].text
        (array([1]), 'because you like 0')
        """
        train = self.check_fitted()
        people = People.known(train, train.user_rows(np.atleast_1d(users)))
        return self._answer(people, np.ndim(users) == 0, n, exclude_seen, items, where, mix, explain)

    def recommend_new(
        self,
        history: Any,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        items: Choice = None,
        where: Mapping[str, Any] | None = None,
        mix: float = 0.0,
        explain: bool = False,
    ) -> tuple[Any, ...]:
        """Return the best items for somebody who was not in the training data, from what they like.

        Parameters
        ----------
        history
            External ids of the items that one person likes, or a sequence of such sequences, one per person.
        n, exclude_seen, items, where, mix, explain
            As for `recommend`; seen is what is in the history.

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
        likes, single = likes_of(history, self.check_fitted())
        return self._answer(People(likes), single, n, exclude_seen, items, where, mix, explain)

    def similar_items(self, item: Any, n: int = 10) -> tuple[Array, FloatArray]:
        """Return the items most like one item: external ids and similarities, best first.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> ItemKNN(shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])).similar_items(0, n=1)[0]
        array([1])
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        column = train.item_columns(one_id("item", item))
        return _others(self._similarity(column)[0], column, n, train.item_ids)

    def similar_users(self, user: Any, n: int = 10) -> tuple[Array, FloatArray]:
        """Return the users most like one user: external ids and similarities, best first.

        Examples
        --------
        >>> from dpcml import Popularity
        >>> Popularity().fit(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]])).similar_users(0, n=1)[0]
        array([2])
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        row = train.user_rows(one_id("user", user))
        return _others(self._user_similarity(int(row[0])), row, n, train.user_ids)

    def _answer(
        self,
        people: People,
        single: bool,
        n: int,
        exclude_seen: bool,
        items: Choice,
        where: Mapping[str, Any] | None,
        mix: float,
        explain: bool,
    ) -> tuple[Any, ...]:
        train = self.check_fitted()
        at_least("n", n, 1)
        share("mix", mix)
        allowed = allowed_items(train, items, where)
        longest = min(int(n), int(np.count_nonzero(allowed)))  # a sum would take as long as the search in an index
        if mix:
            best, scores = self._mixed(people, longest, allowed, exclude_seen, float(mix))
        else:
            best, scores = self._best(people, longest, allowed, exclude_seen)
        longest = int((best >= 0).sum(axis=1).max(initial=0))
        best, scores = best[:, :longest], scores[:, :longest]
        ids = train.item_ids[best]
        if (best < 0).any():
            ids[best < 0] = -1 if ids.dtype.kind == "i" else None
        found: tuple[Any, ...] = (ids[0], scores[0]) if single else (ids, scores)
        if explain:
            reasons = self._reasons(people, best)
            found = (*found, reasons[0] if single else reasons)
        return found

    def _best(self, people: People, n: int, allowed: BoolArray, exclude_seen: bool) -> tuple[IntArray, FloatArray]:
        """Return positions and scores of the best items of each person; shape (people, n), -1 where they run out."""

        def score(first: int, last: int) -> FloatArray:
            if people.rows is None:
                return self._score_histories(people.likes[first:last])
            return self.score(people.rows[first:last])

        seen = seen_of(people.likes) if exclude_seen else nothing_seen(len(people))
        return best_by_scores(score, len(people), n, seen, allowed)

    def _mixed(
        self, people: People, n: int, allowed: BoolArray, exclude_seen: bool, mix: float
    ) -> tuple[IntArray, FloatArray]:
        """Return lists that serve several interests, shaped as those of ``_best``."""
        raise ParameterError(
            f"mix={mix:g}: {type(self).__name__} knows no interests to mix; leave mix at 0, or use dpcml, cml or gfja"
        )

    def _reasons(self, people: People, best: IntArray) -> list[list[Reason]]:
        """Return why each item stands in its list; -1 ends a list."""
        train = self.check_fitted()
        return [by_company(row[row >= 0], people.liked(k), train.by_item, train.items) for k, row in enumerate(best)]

    def _similarity(self, columns: IntArray) -> FloatArray:
        """Return the similarity of some items to all; shape (columns, items)."""
        raise ParameterError(f"{type(self).__name__} has no notion of similar items: use itemknn or ease")

    def _user_similarity(self, row: int) -> FloatArray:
        """Return the similarity of all users to one: here the cosine of what they like; shape (users,)."""
        train = self.check_fitted()
        together = np.bincount(train.by_item[train.of(row)].indices, minlength=train.n_users)
        return np.asarray(together / np.sqrt(np.maximum(train.per_user * train.per_user[row], 1)))


def _others(similarity: FloatArray, own: IntArray, n: int, ids: Array) -> tuple[Array, FloatArray]:
    """Return ids and values of the largest similarities, without one's own."""
    similarity = similarity.astype(np.float32)
    similarity[own] = -np.inf
    best = np.argsort(-similarity, kind="stable")[: min(int(n), len(ids) - 1)]
    return ids[best], similarity[best]
