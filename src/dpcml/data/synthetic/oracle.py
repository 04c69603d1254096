"""The oracle of a planted world: a recommender that knows how the positives were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions
from dpcml.data.synthetic.generator import PlantedCatalogue
from dpcml.utils.arrays import BoolArray, FloatArray, IntArray, frozen
from dpcml.utils.errors import DataError, ParameterError

if TYPE_CHECKING:
    from dpcml.data.synthetic import PlantedWorld


@dataclass(frozen=True, eq=False)
class PlantedOracle:
    """Scores are the exact probabilities of the generator, so no model can be expected to rank more accurately.

    Minority recall is what the most accurate ranking gives minorities in passing: a ranking that puts them before all
    else could have more of it, at a lower accuracy.

    The next positive of a user comes from interest k with the chance ``(1 - noise) share_k``, from the whole catalogue
    with the chance ``noise``. An interest draws from its preferred series with the chance ``focus``, from its whole
    category otherwise, each item by its popularity. What the user has already is drawn anew: given ``seen``, each
    source is divided by what it still has.

    Parameters
    ----------
    world
        The world whose truth is known.
    weight
        Popularity of each item; shape (items,).
    seen
        Positives that the oracle knows of, if any; shape (users, items).

    Examples
    --------
    >>> from dpcml import evaluate, planted
    >>> world = planted(200, 300, seed=1)
    >>> train, valid, test = world.data.split((0.6, 0.2, 0.2), 0)
    >>> report = evaluate(world.oracle(train, valid), train, test, valid=valid, metrics="NDCG@10")
    >>> 0.1 < report.metrics["NDCG@10"] < 1
    True
    """

    name: ClassVar[str] = "oracle"

    world: PlantedWorld
    weight: FloatArray
    seen: sparse.csr_array | None = None

    @classmethod
    def of(cls, world: PlantedWorld, seen: Sequence[Interactions] = ()) -> PlantedOracle:
        """Build the oracle that knows some parts of the data."""
        catalogue = PlantedCatalogue.build(world.parameters)
        weight = np.empty(world.data.n_items)
        weight[catalogue.slot_item] = np.diff(catalogue.mass)
        for part in seen:
            if part.csr.shape != world.data.csr.shape:
                raise DataError(f"{part!r} is no part of a split of this world, {world.data!r}")
        known = sum((part.csr for part in seen[1:]), start=seen[0].csr) if seen else None
        return cls(world, frozen(weight), known)

    def score(self, users: Sequence[int] | IntArray, /) -> FloatArray:
        """Return the probability of every item to be the next positive; shape (users, items), rows add up to 1."""
        users = np.asarray(users, dtype=np.int64)
        truth, parameters = self.world.truth, self.world.parameters
        seen = None if self.seen is None else self.seen[users].toarray() > 0
        total = parameters.noise * self._remaining(np.tile(self.weight, (len(users), 1)), seen)
        for k in range(truth.user_interests.shape[1]):
            share = (1 - parameters.noise) * truth.user_shares[users, k, None]
            total += share * self._remaining(self._interest(users, k), seen)
        return _shares(total)

    def _interest(self, users: IntArray, k: int) -> FloatArray:
        """Return the probability that a draw of interest k is that item; shape (users, items)."""
        truth, focus = self.world.truth, self.world.parameters.focus
        wide = (truth.item_category == truth.user_interests[users, k, None]) * self.weight
        narrow = (truth.item_series == truth.user_series[users, k, None]) * wide
        return focus * _shares(narrow) + (1 - focus) * _shares(wide)

    @staticmethod
    def _remaining(chances: FloatArray, seen: BoolArray | None) -> FloatArray:
        """Return the chances of a source given that it does not draw what was seen; 0 where nothing is left."""
        return _shares(chances if seen is None else np.where(seen, 0.0, chances))

    def nearest_interest(self, users: Any, items: Any) -> IntArray:
        """Return the user's interest with the category of the item, 0 (the majority) for items outside all of them.

        The interest agreement of the oracle is below 1: what noise drew belongs to no interest.

        Examples
        --------
        >>> from dpcml import planted
        >>> world = planted(100, 300, seed=1)
        >>> item = int(np.flatnonzero(world.truth.item_category == world.truth.user_interests[7, 2])[0])
        >>> world.oracle().nearest_interest([7], [item]).tolist()
        [2]
        """
        data, truth = self.world.data, self.world.truth
        rows, columns = data.user_rows(users), data.item_columns(items)
        if rows.shape != columns.shape:
            raise ParameterError(f"{len(rows)} users and {len(columns)} items: pass one item for each user")
        same = truth.user_interests[rows] == truth.item_category[columns, None]  # (pairs, k)
        return np.asarray(same.argmax(axis=1))


def _shares(weights: FloatArray) -> FloatArray:
    """Return rows divided by their sum; rows of zeros stay."""
    total = weights.sum(axis=1, keepdims=True)
    return np.asarray(weights / np.where(total > 0, total, 1.0))
