"""How rows become positives: the threshold, and which users and items have too few to stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.utils.checks import at_least
from dpcml.utils.errors import DataError, ParameterError, did_you_mean


@dataclass(frozen=True)
class Rules:
    """How rows become positives.

    Examples
    --------
    >>> Rules.of({"min_rating": 4})
    Rules(min_rating=4, min_user=1, core=1, text_ids=False)
    >>> Rules.of({"min_users": 5})
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: unknown option 'min_users': did you mean 'min_user'?
    """

    min_rating: float | None = None  # rows with a lower rating are no positives; None: every row is one
    min_user: int = 1  # users with fewer positives are dropped
    core: int = 1  # users and items with fewer positives are dropped, until none is left
    text_ids: bool = False  # keep ids as text, even where all of them are whole numbers

    def __post_init__(self) -> None:
        for name in ("min_user", "core"):
            at_least(name, getattr(self, name), 1)
        least: Any = self.min_rating
        if least is not None and (not isinstance(least, (int, float, np.number)) or not np.isfinite(least)):
            raise ParameterError(f"min_rating={least!r}: must be a finite number")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Rules:
        """Build from options by name, and say which name is unknown."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ParameterError(f"unknown option {name!r}: {did_you_mean(name, known)}")
        return cls(**options)


def drop_thin(data: Interactions, rules: Rules) -> Interactions:
    """Drop users and items with too few positives, and report how many.

    Users and items without any positive go too, so every id left has one.

    Examples
    --------
    >>> data = Interactions.from_csr(np.array([[1, 1, 0], [0, 1, 0]]))
    >>> thin = drop_thin(data, Rules(min_user=2))
    >>> thin, thin.preparation.users_dropped, thin.preparation.items_dropped
    (Interactions(1 users, 2 items, 2 positives), 1, 1)
    """
    least = max(rules.min_user, rules.core)
    if data.n_positives and data.per_user.min() >= least and data.per_item.min() >= rules.core:
        return data
    rows = data.rows
    keep = np.ones(data.n_positives, dtype=bool)
    while True:
        per_user = np.bincount(rows[keep], minlength=data.n_users)
        per_item = np.bincount(data.indices[keep], minlength=data.n_items)
        thin = (per_user < least)[rows] | (per_item < rules.core)[data.indices]
        if not (thin & keep).any():
            break
        keep &= ~thin
        if rules.core == 1:
            break
    if not keep.any():
        raise DataError(_nothing_left(data, rules))
    left = data.select(keep)
    some_users, some_items = left.per_user > 0, left.per_item > 0
    done = replace(
        data.preparation,
        users_dropped=data.preparation.users_dropped + int((~some_users).sum()),
        items_dropped=data.preparation.items_dropped + int((~some_items).sum()),
    )
    new_item = np.cumsum(some_items, dtype=np.int32) - 1
    return replace(
        left,
        indptr=left.indptr[np.append(True, some_users)],  # users who are dropped have nothing between theirs
        indices=new_item[left.indices],
        user_ids=data.user_ids[some_users],
        items=data.items.select(some_items),
        preparation=done,
        split_hash=data.split_hash,
    )


def _nothing_left(data: Interactions, rules: Rules) -> str:
    if not data.n_positives:
        least = rules.min_rating
        return "there are no positives" if least is None else f"no rating reaches min_rating={least:g}; lower it"
    if rules.core > 1:
        return f"all {data.n_users:,} users are filtered out by core={rules.core}; lower it"
    most = int(data.per_user.max())
    return (
        f"all {data.n_users:,} users are filtered out by min_user={rules.min_user}:"
        f" the most active has {most} positives; lower it"
    )
