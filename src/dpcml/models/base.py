"""`Recommender`, the base class of every model: what a user can ask of any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import dpcml
from dpcml.models.estimator import Estimator
from dpcml.retrieval.aspects import Aspects, CategoryAspects, mixed_lists
from dpcml.retrieval.exact import best_by_scores
from dpcml.retrieval.explain import Reason, by_cooccurrence
from dpcml.retrieval.lists import (
    Lists,
    candidate_mask,
    fill_in,
    known_columns,
    known_users,
    list_frame,
    most_similar,
    new_users,
    popular_list,
    popular_without_likes,
    similar_lists,
    with_ids,
)
from dpcml.retrieval.request import UserBatch
from dpcml.retrieval.rerank import pool_size
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.checks import at_least, choice, one_id, share
from dpcml.utils.errors import ParameterError
from dpcml.utils.names import renamed

if TYPE_CHECKING:
    from dpcml.models.multi_interest import MultiInterest

MIX_BY = ("categories", "interests")


@dataclass(eq=False)
class Recommender(Estimator):
    """A model that scores items for users.

    A subclass is a dataclass whose fields are the hyper-parameters. It implements ``_fit``, checks its parameters in
    ``_check``, names its fitted arrays in ``_shapes``, and is filed in `MODELS` by `register`. It implements
    ``_score_histories`` if scores follow from the liked items alone, else ``score``, or both.

    Users and items are rows and columns of the training matrix in ``score`` and `top_items`, external ids everywhere
    else. Larger scores are better.
    """

    users_per_block: ClassVar[int | None] = None  # users whose lists are made at once; None for all

    @property
    def multi_interest(self) -> MultiInterest | None:
        """The fitted model that knows the users' interests: this one or a part of it; None if there is none."""
        return None

    def save(self, folder: str | Path, *, record: Mapping[str, Any] | None = None) -> Path:
        """Write the fitted model to a folder; see `dpcml.save`."""
        return dpcml.save(self, folder, record=record)

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
            What an interest is: ``categories`` of the items, or ``interests``, the vectors of a user, which DPCML,
            GFJA and blends with one of them have. By default categories where the data have them.
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
        train = self.check_fitted()
        ids, batch, known = known_users(train, users, on_unknown)
        lists = self._top_or_popular(
            batch,
            known,
            n,
            candidates=candidate_mask(train, items, where, exclude, on_unknown),
            exclude_seen=exclude_seen,
            mix=mix,
            mix_by=mix_by,
            explain=explain,
        )
        if as_frame:
            return list_frame("user_id", ids, with_ids(train, lists, explain=explain))
        return with_ids(train, lists, explain=explain, single=np.ndim(users) == 0)

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
        train = self.check_fitted()
        batch, known, single = new_users(train, history, on_unknown)
        lists = self._top_or_popular(
            batch,
            known,
            n,
            candidates=candidate_mask(train, items, where, exclude, on_unknown),
            exclude_seen=exclude_seen,
            mix=mix,
            mix_by=mix_by,
            explain=explain,
        )
        if as_frame:
            return list_frame("history", np.arange(len(known)), with_ids(train, lists, explain=explain))
        return with_ids(train, lists, explain=explain, single=single)

    def _top_or_popular(
        self, batch: UserBatch, known: BoolArray, n: int, *, candidates: BoolArray, explain: bool, **options: Any
    ) -> Lists:
        """Return the lists of the users in a batch, who are at some places, and popular items for the others."""
        lists = self.top_items(batch, n, candidates=candidates, explain=explain, **options)
        if known.all():
            return lists
        popular = popular_list(self.check_fitted(), lists.items.shape[1], candidates, explain=explain)
        return fill_in(lists, known, popular, explain=explain)

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
        made = list[Lists]()
        for block in users.blocks(self.users_per_block or max(len(users), 1)):
            best, values = self._mixed(block, longest, allowed, exclude_seen, float(mix), mix_by)
            lists = Lists(best, values, self._reasons(block, best) if explain else [])
            made.append(popular_without_likes(train, block, lists, allowed, exclude_seen, explain=explain))
        items, scores = (np.concatenate([getattr(one, part) for one in made]) for part in ("items", "scores"))
        return Lists(items, scores, [reasons for one in made for reasons in one.reasons])

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

    @renamed(item="items")
    def similar_items(self, items: Any, n: int = 10, *, on_unknown: str = "error", as_frame: bool = False) -> Any:
        """Return the items most similar to one item or to each of several, best first.

        Parameters
        ----------
        items
            One external item id, or a sequence of them.
        n
            Similar items of each, at most.
        on_unknown
            ``skip`` leaves out items that are not in the training data, an error if no other is left.
        as_frame
            Return a polars frame with the columns item_id, rank, similar_id and similarity.

        Returns
        -------
        ids, similarities
            Shape (up to n,) for one item, (items, up to n) for several.

        Examples
        --------
        >>> from dpcml import ItemKNN
        >>> model = ItemKNN(shrink=0).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
        >>> model.similar_items(0, n=1)[0]
        array([1])
        >>> model.similar_items([0, 1], n=1, as_frame=True).rows()
        [(0, 1, 1, 1.0), (1, 1, 0, 1.0)]
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        columns = known_columns(train, items, on_unknown)
        each = (self._similarity(columns[[k]])[0] for k in range(len(columns)))
        found = most_similar(each, columns, train.n_items, n)
        return similar_lists(train.item_ids, columns, *found, "item", single=np.ndim(items) == 0, as_frame=as_frame)

    @renamed(user="users")
    def similar_users(self, users: Any, n: int = 10, *, as_frame: bool = False) -> Any:
        """Return the users most similar to one user or to each of several, best first.

        Parameters
        ----------
        users, n, as_frame
            As for `similar_items`; the frame's first column is user_id.

        Examples
        --------
        >>> from dpcml import Popularity
        >>> Popularity().fit(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]])).similar_users(0, n=1)[0]
        array([2])
        """
        train = self.check_fitted()
        at_least("n", n, 1)
        rows = train.user_rows(users)
        found = most_similar((self._user_similarity(row) for row in rows.tolist()), rows, train.n_users, n)
        return similar_lists(train.user_ids, rows, *found, "user", single=np.ndim(users) == 0, as_frame=as_frame)

    def _similarity(self, columns: IntArray) -> FloatArray:
        """Return the similarity of some items to all; shape (columns, items)."""
        raise ParameterError(f"{type(self).__name__} has no notion of similar items: use itemknn or ease")

    def _user_similarity(self, row: int) -> FloatArray:
        """Return the similarity of all users to one, here the cosine of their likes; shape (users,)."""
        train = self.check_fitted()
        shared = np.bincount(train.by_item[train.of(row)].indices, minlength=train.n_users)
        return np.asarray(shared / np.sqrt(np.maximum(train.per_user * train.per_user[row], 1)))
