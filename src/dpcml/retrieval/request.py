"""A request for lists: the users that it is for, and the items that may be recommended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.csr import distinct
from dpcml.data.interactions import Interactions
from dpcml.data.items import fold
from dpcml.retrieval.exact import Seen, nothing_seen, seen_of
from dpcml.retrieval.profile import UserProfile
from dpcml.utils.arrays import Array, BoolArray, FloatArray, IntArray
from dpcml.utils.errors import NothingLeftError, ParameterError, did_you_mean
from dpcml.utils.names import Registry


@dataclass(eq=False)
class UserBatch:
    """Users that lists are made for, with the items they like.

    Parameters
    ----------
    likes
        Ones of shape (users, items).
    rows
        Rows of the users in the training data; None for new users, who are not in it.
    vectors, profiles
        What a model with vectors has computed for these users; it is computed once per batch.
    hidden
        Positions of items that are no candidates of any of these users, ascending.
    low_rated
        Pairs of shape (users, items) that these users know and do not like; they are hidden together with the liked
        ones, and count for nothing else.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(3))
    >>> users = UserBatch.known(train, np.array([2, 0]))
    >>> len(users), users.liked(0).tolist(), [part.rows.tolist() for part in users.blocks(1)]
    (2, [2], [[2], [0]])
    """

    likes: sparse.csr_array
    rows: IntArray | None = None
    vectors: FloatArray | None = None
    profiles: list[UserProfile] | None = None
    hidden: IntArray | None = None
    low_rated: sparse.csr_array | None = None

    @classmethod
    def known(cls, train: Interactions, rows: IntArray) -> UserBatch:
        """Return users of the training data, by row."""
        if len(rows) == 1:  # scipy would take longer for this row than the search for the best items
            batch = cls.of_items(train.of(int(rows[0])), train.n_items, rows)
            if train.low_rated is not None:
                batch.low_rated = cls.of_items(train.low_rated_of(int(rows[0])), train.n_items).likes
            return batch
        low = None if train.low_rated is None else train.low_rated[rows]
        return cls(train.csr[rows], rows, low_rated=low)

    @classmethod
    def of_items(cls, liked: IntArray, n_items: int, rows: IntArray | None = None) -> UserBatch:
        """Return one user who likes the items at some ascending positions."""
        ends = np.array([0, len(liked)], dtype=liked.dtype)
        ones = np.ones(len(liked), dtype=np.float32)
        # A copy: kernels are compiled for arrays that can be written to, and the training data cannot.
        return cls(sparse.csr_array((ones, liked.copy(), ends), shape=(1, n_items)), rows)

    def __len__(self) -> int:
        return int(self.likes.shape[0])

    def liked(self, user: int) -> IntArray:
        """Return the positions of the items that the user at a place in this batch likes."""
        return np.asarray(self.likes.indices[self.likes.indptr[user] : self.likes.indptr[user + 1]])

    def seen(self, exclude: bool = True) -> Seen:
        """Return the CSR of items that are no candidates: known ones (liked or not) or none, and hidden ones."""
        indptr, indices = seen_of(self.likes) if exclude else nothing_seen(len(self))
        if exclude and self.low_rated is not None and self.low_rated.nnz:
            indptr, indices = _joined((indptr, indices), seen_of(self.low_rated), self.likes.shape[1])
        if self.hidden is None or not len(self.hidden):
            return indptr, indices
        rows = [np.union1d(indices[a:b], self.hidden) for a, b in pairwise(indptr.tolist())]
        return np.cumsum([0, *map(len, rows)], dtype=np.int64), np.concatenate(rows).astype(np.int32)

    def part(self, first: int, last: int) -> UserBatch:
        """Return some of the users, with what was computed for them."""
        rows = None if self.rows is None else self.rows[first:last]
        vectors = None if self.vectors is None else self.vectors[first:last]
        profiles = None if self.profiles is None else self.profiles[first:last]
        low = None if self.low_rated is None else self.low_rated[first:last]
        return UserBatch(self.likes[first:last], rows, vectors, profiles, hidden=self.hidden, low_rated=low)

    def blocks(self, size: int) -> Iterator[UserBatch]:
        """Yield the users in batches of at most ``size``; an empty batch yields itself."""
        if len(self) <= size:
            yield self
            return
        for first in range(0, len(self), size):
            yield self.part(first, first + size)


def _joined(one: Seen, other: Seen, n_items: int) -> Seen:
    """Return the pairs of two CSRs over the same users, ascending."""
    n_users = len(one[0]) - 1
    keys = [np.repeat(np.arange(n_users), np.diff(indptr)) * n_items + indices for indptr, indices in (one, other)]
    both = distinct(np.sort(np.concatenate(keys)))
    return np.searchsorted(both, np.arange(n_users + 1) * n_items), (both % n_items).astype(np.int32)


def likes_of(histories: Any, train: Interactions) -> tuple[sparse.csr_array, bool]:
    """Return histories as a sparse matrix over the items of the training data, and whether there is only one.

    Parameters
    ----------
    histories
        External item ids of one user, or a sequence of such sequences; an id that comes twice counts once.
    train
        Training data, which has the item ids.

    Returns
    -------
    likes, single
        Ones (float32) of shape (users, items), and whether ``histories`` was that of one user.

    Examples
    --------
    >>> train = Interactions.from_csr(np.eye(3), item_ids=["dune", "emma", "ulysses"])
    >>> likes, single = likes_of(["ulysses", "dune"], train)
    >>> likes.toarray(), single
    (array([[1., 0., 1.]], dtype=float32), True)
    >>> likes_of([["dune"], []], train)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: history 1 is empty: name at least one item, or recommend what is popular
    """
    rows, single = histories_of(histories)
    for number, row in enumerate(rows):
        if not row:
            which = "the history" if single else f"history {number}"
            raise ParameterError(f"{which} is empty: name at least one item, or recommend what is popular")
    return likes_matrix([train.item_columns(row) for row in rows], train.n_items), single


def histories_of(histories: Any) -> tuple[list[list[Any]], bool]:
    """Return the item ids of each user, and whether there was only one user.

    Examples
    --------
    >>> histories_of(["dune"]), histories_of([["dune"], []])
    (([['dune']], True), ([['dune'], []], False))
    """
    if not _is_sequence(histories):
        raise ParameterError(f"histories={histories!r}: pass a sequence of item ids, or a sequence of such sequences")
    given = list(histories)
    nested = [_is_sequence(history) for history in given]
    if any(nested) and not all(nested):
        raise ParameterError(
            f"history {nested.index(False)} is {given[nested.index(False)]!r}, others are sequences: pass item ids, or"
            " a sequence of them for each user"
        )
    single = not any(nested)
    return [given] if single else [list(history) for history in given], single


def likes_matrix(columns: Sequence[IntArray], n_items: int) -> sparse.csr_array:
    """Return the positions of the items that users like as ones (float32) of shape (users, items).

    Examples
    --------
    >>> likes_matrix([np.array([2, 0, 2])], 3).toarray()
    array([[1., 0., 1.]], dtype=float32)
    """
    rows = [np.unique(liked) for liked in columns]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *rows]).astype(np.int32)
    ones = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_array((ones, indices, indptr), shape=(len(rows), n_items))


def _is_sequence(value: Any) -> bool:
    """Return whether a value is a sequence of others; a text is one id, not a sequence of letters."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


FILTERS: Registry[Callable[[Interactions, list[str]], BoolArray]] = Registry("item filter")
ANSWERS = {"yes": True, "true": True, "no": False, "false": False}


@FILTERS.register("tag")
@FILTERS.register("genre")
@FILTERS.register("category")
def with_category(train: Interactions, wanted: list[str]) -> BoolArray:
    """Return a mask of the items that have any of some categories; case does not matter.

    Examples
    --------
    >>> from dpcml.data.items import Attributes, ItemTable
    >>> films = ItemTable(np.arange(2), attributes=Attributes.from_sets([{"War"}, {"Crime", "Drama"}]))
    >>> data = Interactions.from_csr(np.eye(2), items=films)
    >>> with_category(data, ["crime", "Comedy"])
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: no item has the category 'Comedy': known: Crime, Drama, War
    >>> with_category(data, ["crime"])
    array([False,  True])
    """
    attributes = train.items.attributes
    if attributes is None:
        raise ParameterError(f"where: {wanted[0]!r} cannot be looked for, these items have no categories")
    names = {str(name).casefold(): number for number, name in enumerate(attributes.names)}
    for name in wanted:
        if name.casefold() not in names:
            known = [str(one) for one in attributes.names[:1000]]
            raise ParameterError(f"no item has the category {name!r}: {did_you_mean(name, known)}")
    chosen = attributes.matrix[:, [names[name.casefold()] for name in wanted]]
    return np.asarray(np.diff(chosen.tocsr().indptr) > 0)


@FILTERS.register("title")
def with_title(train: Interactions, wanted: list[str]) -> BoolArray:
    """Return a mask of the items whose title (or id, without titles) contains any of some texts; case does not matter.

    Examples
    --------
    >>> from dpcml.data.items import ItemTable
    >>> films = ItemTable(np.arange(2), titles=np.array(["Alien", "Aliens"], dtype=object))
    >>> with_title(Interactions.from_csr(np.eye(2), items=films), ["ALIENS"])
    array([False,  True])
    """
    found = train.items.folded_titles.str.contains_any([fold(word) for word in wanted])
    return np.asarray(found.to_numpy(), dtype=bool)


@FILTERS.register("new")
def without_likes(train: Interactions, wanted: list[str]) -> BoolArray:
    """Return a mask of the items that nobody likes yet (``yes``), or that somebody likes (``no``).

    Examples
    --------
    >>> without_likes(Interactions.from_csr(np.array([[1, 0], [1, 0]])), ["yes"])
    array([False,  True])
    """
    for word in wanted:
        if word.casefold() not in ANSWERS:
            raise ParameterError(f"where={{'new': {word!r}}}: say 'yes' (items that nobody likes yet) or 'no'")
    return np.isin(train.per_item == 0, [ANSWERS[word.casefold()] for word in wanted])


def allowed_items(
    train: Interactions, items: Sequence[Any] | Array | None, where: Mapping[str, Any] | None
) -> BoolArray:
    """Return a mask of the items that are among ``items`` and meet all conditions of ``where``; raise if none does.

    Parameters
    ----------
    train
        Training data, which has ids, titles and attributes.
    items
        External ids of the only candidates; all by default.
    where
        Maps names in `FILTERS` to a value, or to several values of which one must match.

    Examples
    --------
    >>> data = Interactions.from_csr(np.eye(3), item_ids=["dune", "emma", "ulysses"])
    >>> allowed_items(data, ["dune", "emma"], {"title": "m"})
    array([False,  True, False])
    >>> allowed_items(data, ["dune"], {"title": "m"})
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.NothingLeftError: items, where={'title': 'm'}: no item is left to choose from; widen the choice
    """
    allowed = np.ones(train.n_items, dtype=bool)
    if items is not None:
        allowed[:] = False
        allowed[train.item_columns(items)] = True
    if where is not None and not isinstance(where, Mapping):
        raise ParameterError(f"where={where!r}: pass a mapping such as {{'category': 'Horror'}}")
    for name, value in (where or {}).items():
        allowed &= FILTERS[name](train, _texts(name, value))
    if not allowed.any():
        given = [*(["items"] if items is not None else []), *([f"where={dict(where)!r}"] if where else [])]
        raise NothingLeftError(f"{', '.join(given)}: no item is left to choose from; widen the choice")
    return allowed


def _texts(name: str, value: Any) -> list[str]:
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    texts = [str(one) for one in value] if several else [str(value)]
    if not texts:
        raise ParameterError(f"where={{{name!r}: {value!r}}}: name at least one value")
    return texts
