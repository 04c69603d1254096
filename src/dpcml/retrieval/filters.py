"""Which items may be recommended: by id, by category, by words of the title."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable
from dpcml.utils.arrays import Array, BoolArray
from dpcml.utils.errors import NothingLeftError, ParameterError, did_you_mean
from dpcml.utils.registry import Registry

FILTERS: Registry[Callable[[ItemTable, list[str]], BoolArray]] = Registry("item filter")


@FILTERS.register("tag")
@FILTERS.register("genre")
@FILTERS.register("category")
def with_category(items: ItemTable, wanted: list[str]) -> BoolArray:
    """Mark the items that have any of some categories; case does not matter.

    Examples
    --------
    >>> from dpcml.data.items import Attributes
    >>> films = ItemTable(np.arange(2), attributes=Attributes.from_sets([{"War"}, {"Crime", "Drama"}]))
    >>> with_category(films, ["crime", "Comedy"])
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: no item has the category 'Comedy': known: Crime, Drama, War
    >>> with_category(films, ["crime"])
    array([False,  True])
    """
    if items.attributes is None:
        raise ParameterError(f"where: {wanted[0]!r} cannot be looked for, these items have no categories")
    names = {str(name).casefold(): number for number, name in enumerate(items.attributes.names)}
    for name in wanted:
        if name.casefold() not in names:
            known = [str(one) for one in items.attributes.names[:1000]]
            raise ParameterError(f"no item has the category {name!r}: {did_you_mean(name, known)}")
    chosen = items.attributes.matrix[:, [names[name.casefold()] for name in wanted]]
    return np.asarray(np.diff(chosen.tocsr().indptr) > 0)


@FILTERS.register("title")
def with_title(items: ItemTable, wanted: list[str]) -> BoolArray:
    """Mark the items whose title, or id where titles are unknown, holds any of some texts; case does not matter.

    Examples
    --------
    >>> films = ItemTable(np.arange(2), titles=np.array(["Alien", "Aliens"], dtype=object))
    >>> with_title(films, ["ALIENS"])
    array([False,  True])
    """
    words = [word.casefold() for word in wanted]
    titles = (items.title(item).casefold() for item in range(len(items)))
    return np.array([any(word in title for word in words) for title in titles], dtype=bool)


def allowed_items(
    train: Interactions, items: Sequence[Any] | Array | None, where: Mapping[str, Any] | None
) -> BoolArray:
    """Return which items are among ``items`` and fulfil all of ``where``, or say that none is left.

    Parameters
    ----------
    train
        Knows ids, titles and attributes.
    items
        External ids of the only candidates; all by default.
    where
        From names in `FILTERS` to a value, or to several of which one must hold.

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
        allowed &= FILTERS[name](train.items, _texts(name, value))
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
