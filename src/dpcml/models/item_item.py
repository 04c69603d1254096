"""Item-item models: scores are sums of weights from the items that the user likes to other items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import validation
from dpcml.kernels.item_item import cosine_neighbours, walk_sources
from dpcml.models.base import Recommender
from dpcml.models.parameters import register
from dpcml.retrieval.content import ContentRidge
from dpcml.training.trainer import FitOptions
from dpcml.utils.arrays import Array, FloatArray, IntArray, every_kth
from dpcml.utils.checks import at_least, check_array, positive
from dpcml.utils.threads import over_rows

TRIAL_METRIC, TRIAL_USERS = "NDCG@5", 2000  # by which searched parameters are chosen, and on how many users
OWN = 0.3  # what a liked item itself counts for new items like it: chosen on held-out cold items of ML-1M


class ItemItem(Recommender):
    """A model whose scores are linear in the history: sums of weights from the items that the user likes.

    Here the weights are those of an item's neighbours; a subclass with other weights replaces `_linear`, `_similarity`
    and `_grow`. Parameters that are ``searched`` and None are found on the validation part. Items that nobody likes yet
    get their weights from items of similar content (`add_items`).
    """

    searched: ClassVar[dict[str, tuple[float, ...]]] = {}  # values to try; the first where there is no validation part
    similarity_: sparse.csr_array  # row: a scored item, columns: liked items
    content_: FloatArray  # (items, cold items): what cold items are made of; only after `add_items`

    @abstractmethod
    def _fit_each(self, train: Interactions, tried: dict[str, tuple[float, ...]]) -> Iterator[None]:
        """Set the fitted attributes, for one combination of the searched parameters' values after the other."""

    def _fit(self, train: Interactions, valid: Interactions | None, options: FitOptions) -> None:
        vars(self).pop("content_", None)
        self.train_ = train  # scores of the validation part need it
        given = {name: getattr(self, name) for name in self.searched}
        search = valid is not None and None in given.values()
        tried = {
            name: (given[name],) if given[name] is not None else values[: None if search else 1]
            for name, values in self.searched.items()
        }
        best, found = -np.inf, dict[str, Any]()
        for _ in self._fit_each(train, tried):
            value = _validation(self, train, valid) if search and valid is not None else 0.0
            if value > best:
                best, found = value, dict(vars(self))
        vars(self).update(found)

    def _found_params(self) -> dict[str, Any]:
        return {name: round(float(vars(self)[f"{name}_"][0]), 6) for name in self._to_find()}

    def _to_find(self) -> list[str]:
        return [name for name in self.searched if getattr(self, name) is None]

    # Arrays

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"similarity_": (self.check_fitted().n_items,) * 2} | self._common_shapes()

    def _common_shapes(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {f"{name}_": (1,) for name in self._to_find()}
        return shapes | ({"content_": self.content_.shape} if "content_" in vars(self) else {})

    def _set_arrays(self, arrays: Mapping[str, Array]) -> None:
        if "content_" in arrays:
            self._cold: IntArray = np.flatnonzero(self.check_fitted().per_item == 0)
            self.content_ = check_array(arrays, "content_", (-1, len(self._cold)), "f")
        # Models of older versions did not search: they have the first values.
        first = {f"{name}_": np.array(self.searched[name][:1], dtype=np.float32) for name in self._to_find()}
        super()._set_arrays({**first, **arrays})

    # Scores

    def _linear(self, likes: sparse.csr_array) -> FloatArray:
        """Return the sums of weights for likes of shape (users, items), cold items left out."""
        of, columns = vars(self).get("_columns", (None, None))
        if of is not self.similarity_:  # other weights than those that were turned
            columns = self.similarity_.T.tocsr()  # row: a liked item, columns: scored items
            self._columns = self.similarity_, columns
        return np.asarray((likes @ columns).toarray(), dtype=np.float32)

    def _score_histories(self, likes: sparse.csr_array) -> FloatArray:
        scores = self._linear(likes)
        if "content_" in vars(self):
            scores[:, self._cold] = scores @ self.content_ + OWN * (likes @ self.content_)
        return scores

    def item_weights(self) -> FloatArray:
        """Return the weight of each liked item in the score of each item; shape (items, items).

        Examples
        --------
        >>> model = ItemKNN(k=2).fit(np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]))
        >>> bool(np.allclose(np.array([[1, 0, 0]]) @ model.item_weights(), model.score_new([0])))
        True
        """
        return self._score_histories(sparse.eye_array(self.check_fitted().n_items, dtype=np.float32).tocsr())

    def _similarity(self, columns: IntArray) -> FloatArray:
        return self._with_content(columns, np.asarray(self.similarity_[columns].toarray(), dtype=np.float32))

    def _with_content(self, columns: IntArray, similar: FloatArray) -> FloatArray:
        """Return the similarities of items to all items, by content where one of the two is liked by nobody."""
        if "content_" not in vars(self):
            return similar
        similar[:, self._cold] = similar @ self.content_ + OWN * self.content_[columns]
        cold = np.isin(columns, self._cold)
        similar[cold] = self.content_.T[np.searchsorted(self._cold, columns[cold])]
        return similar

    # Items that nobody likes

    def _grow(self, more: int) -> None:
        """Extend the weights by rows and columns of zeros."""
        self.similarity_ = grown(self.similarity_, more)

    def _add_items(self, both: Interactions, ridge: ContentRidge) -> None:
        self._grow(both.n_items - self.check_fitted().n_items)
        self.content_, self._cold = ridge.weights(), ridge.cold  # (items, cold items)


def grown(matrix: sparse.csr_array, more: int) -> sparse.csr_array:
    """Return a square matrix with so many more empty rows and columns.

    Examples
    --------
    >>> grown(sparse.csr_array(np.eye(2)), 1).shape
    (3, 3)
    """
    n = matrix.shape[0] + more
    return sparse.csr_array((matrix.data, matrix.indices, np.pad(matrix.indptr, (0, more), mode="edge")), shape=(n, n))


@register("itemknn")
@dataclass(eq=False)
class ItemKNN(ItemItem):
    """Score an item by its similarity to the items that the user likes (Sarwar et al., 2001).

    The similarity of items i and j is ``n_ij / (sqrt(n_i n_j) + shrink)``, where n counts users who like one item or
    both; the ``k`` largest of each item are kept. With weights, a positive counts by its `Interactions.confidence`:
    n_ij is a sum of products, n_i one of squares, and the user's items count by theirs.

    Parameters
    ----------
    k
        Neighbours kept per item.
    shrink
        Damps similarities with few common users; 0 is plain cosine.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> model = ItemKNN(k=2, shrink=0).fit(likes)
    >>> model.recommend(3, n=1)[0]
    array([1])
    """

    k: int = 100
    shrink: float = 10.0

    uses_weights = True

    def _check(self) -> None:
        at_least("k", self.k, 1)
        positive("shrink", self.shrink, or_zero=True)

    def _fit_each(self, train: Interactions, tried: dict[str, tuple[float, ...]]) -> Iterator[None]:
        ours, theirs, squares = _confidences(train)
        self.similarity_ = _neighbours(train, self.k, cosine_neighbours, ours, theirs, squares, float(self.shrink))
        yield

    def score(self, users: Sequence[int] | IntArray) -> FloatArray:
        """Return the sums over the users' items, each times its confidence; shape (users, items)."""
        return self._score_histories(self.check_fitted().confidence[self._rows(users)])


def _confidences(train: Interactions) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the confidence of the positives user by user and item by item, and the sum of its squares per item."""
    if train.weights is None:
        none = np.zeros(0)
        return none, none, train.per_item.astype(np.float64)
    matrix = train.confidence.astype(np.float64)
    squares: FloatArray = np.bincount(train.indices, matrix.data**2, train.n_items).astype(np.float64)
    return matrix.data, matrix.T.tocsr().data, squares


@register("rp3beta")
@dataclass(eq=False)
class RP3Beta(ItemItem):
    """Score an item by random walks of three steps: user, liked item, other user, item (Paudel et al., 2017).

    A walk from item i over user u to item j weighs ``(1 / n_i)^alpha (1 / n_u)^alpha``, where n counts positives; the
    weight of j is the sum over all walks from the user's items, divided by ``n_j^beta``. (The step from the user to an
    item is the same for all items, and left out.) For each item j the ``k`` items from which most walks arrive are
    kept; on Steam-200k and ML-1M that is better than to keep the k that most walks from an item lead to.

    Parameters
    ----------
    k
        Items kept per item.
    alpha
        Power of the probability of a step; 1 is a plain random walk. None finds it on the validation part, from 0.4
        to 1 (0.6 without one).
    beta
        How much popular items are penalised; 0 is P3alpha. None finds it on the validation part, from 0 to 0.6 (0.2
        without one). The default suits Steam-200k and ML-1M; sparser data want less.

    Examples
    --------
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    >>> RP3Beta(k=2, alpha=1.0, beta=0.5).fit(likes).recommend(3, n=1)[0]
    array([1])
    """

    k: int = 400
    alpha: float | None = 0.5
    beta: float | None = 0.55

    searched = {"alpha": (0.6, 0.4, 1.0), "beta": (0.2, 0.0, 0.1, 0.3, 0.45, 0.6)}  # noqa: RUF012

    def _check(self) -> None:
        at_least("k", self.k, 1)
        for name in ("alpha", "beta"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name), or_zero=True)

    def _fit_each(self, train: Interactions, tried: dict[str, tuple[float, ...]]) -> Iterator[None]:
        users, items = np.maximum(train.per_user, 1.0), np.maximum(train.per_item, 1.0)
        for alpha in tried["alpha"]:
            walks = _neighbours(train, self.k, walk_sources, users**-alpha, items**-alpha, np.ones(len(items)))
            for beta in tried["beta"]:  # it divides a row by one number: the k largest of the row stay the same
                factors = np.repeat(items**-beta, np.diff(walks.indptr))
                parts = np.asarray(walks.data * factors, dtype=np.float32), walks.indices, walks.indptr
                self.similarity_ = sparse.csr_array(parts, shape=walks.shape)
                self.alpha_, self.beta_ = (np.array([value], dtype=np.float32) for value in (alpha, beta))
                yield


def _neighbours(train: Interactions, k: int, kernel: Callable[..., None], *given: Any) -> sparse.csr_array:
    """Return the weights of the k neighbours that a kernel finds of each item; shape (items, items)."""
    n, k = train.n_items, min(k, max(train.n_items - 1, 1))
    neighbours = np.full((n, k), -1, dtype=np.int32)
    weights = np.zeros((n, k), dtype=np.float32)
    by_item = train.csr.T.tocsr()
    pairs = train.indptr, train.indices, by_item.indptr, by_item.indices
    over_rows(lambda a, b: kernel(*pairs, *given, neighbours, weights, a, b), n)
    kept = neighbours >= 0
    places = np.nonzero(kept)[0], neighbours[kept]
    return sparse.coo_array((weights[kept], places), shape=(n, n)).tocsr()


def _validation(model: Recommender, train: Interactions, valid: Interactions) -> float:
    """Return the metric by which parameters are chosen, on some users of the validation part."""
    some = every_kth(np.flatnonzero(valid.per_user), TRIAL_USERS)
    return validation(model, train, valid, TRIAL_METRIC, users=some)
