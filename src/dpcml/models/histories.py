"""What new users like, as they are given: external ids, for one user or for several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.utils.errors import ParameterError


def likes_of(histories: Any, train: Interactions) -> tuple[sparse.csr_array, bool]:
    """Return histories as a matrix over the items of the training data, and whether there is only one.

    Parameters
    ----------
    histories
        External item ids of one user, or a sequence of such sequences; an id that comes twice counts once.
    train
        Knows the ids.

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
    if not _several(histories):
        raise ParameterError(f"histories={histories!r}: pass a sequence of item ids, or a sequence of such sequences")
    given = list(histories)
    nested = [_several(history) for history in given]
    if any(nested) and not all(nested):
        raise ParameterError(
            f"history {nested.index(False)} is {given[nested.index(False)]!r}, others are sequences: pass item ids, or"
            " a sequence of them for each user"
        )
    single = not any(nested)
    rows = [given] if single else [list(history) for history in given]
    for number, row in enumerate(rows):
        if not row:
            which = "the history" if single else f"history {number}"
            raise ParameterError(f"{which} is empty: name at least one item, or recommend what is popular")
    columns = [np.unique(train.item_columns(row)) for row in rows]
    indptr = np.cumsum([0, *map(len, columns)])
    indices = np.concatenate(columns).astype(np.int32)
    ones = np.ones(len(indices), dtype=np.float32)
    return sparse.csr_array((ones, indices, indptr), shape=(len(rows), train.n_items)), single


def _several(value: Any) -> bool:
    """Return whether a value holds others; a text is one id, not a sequence of letters."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))
