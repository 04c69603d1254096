"""The planted world: users with one majority and some minority interests, and the truth about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dpcml.data.interactions import Interactions, Preparation
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.synthetic.generator import SHORTEST, PlantedCatalogue, PlantedParameters, UserBlock, draw_blocks
from dpcml.data.synthetic.oracle import PlantedOracle
from dpcml.data.synthetic.titles import category_names, titles
from dpcml.utils.arrays import FloatArray, IntArray, frozen
from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.files import atomic

CSV_ROWS = 2**20  # rows written at a time


@dataclass(frozen=True, eq=False)
class PlantedTruth:
    """The true interests of the users of a planted world.

    Where users differ in their number of interests, rows of those with fewer end in -1 (and a share of 0).
    """

    categories: tuple[str, ...]  # names, by category number; the largest category comes first
    item_category: IntArray  # (items,)
    item_series: IntArray  # (items,) group of the item within its category
    user_interests: IntArray  # (users, k) category of each interest, the majority first
    user_series: IntArray  # (users, k) series that the user prefers within each of them
    user_shares: FloatArray  # (users, k) share of each interest, noise apart; rows add up to 1

    def __post_init__(self) -> None:
        for name in ("item_category", "item_series", "user_interests", "user_series", "user_shares"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


@dataclass(frozen=True, eq=False)
class PlantedWorld:
    """A generated data set, the truth behind it, and the parameters that give it again."""

    data: Interactions
    truth: PlantedTruth
    parameters: PlantedParameters

    def oracle(self, *seen: Interactions | None) -> PlantedOracle:
        """Return the recommender that knows the truth; no model can be expected to rank more accurately.

        Parameters
        ----------
        *seen
            Parts of a split that are no candidates, such as training and validation positives: the oracle scores what
            can be drawn after them. None, a part that a split does not have, is left out.

        Examples
        --------
        >>> world = planted(100, 200, positives=8)
        >>> world.oracle(world.data).score([0, 1]).sum(axis=1).round(6).tolist()
        [1.0, 1.0]
        """
        return PlantedOracle.of(self, [part for part in seen if part is not None])

    def write_csv(self, path: str | Path) -> None:
        r"""Write the positives as rows of ``user_id,item_id,title,category``, as a whole or not at all.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder) / "world.csv"
        ...     planted(100, 200, positives=8).write_csv(file)
        ...     print("\n".join(file.read_text().splitlines()[:2]))
        user_id,item_id,title,category
        0,...
        """
        import polars as pl

        names = pl.Series("title", self.data.items.titles, dtype=pl.String)
        category = pl.Series("category", np.array(self.truth.categories, dtype=object)[self.truth.item_category])
        users, items = self.data.indptr, self.data.indices
        with atomic(path) as temporary, temporary.open("wb") as file:
            for start in range(0, len(items), CSV_ROWS):
                some = items[start : start + CSV_ROWS]
                user = np.searchsorted(users, np.arange(start, start + len(some)), side="right") - 1
                rows = pl.DataFrame(
                    {
                        "user_id": self.data.user_ids[user],
                        "item_id": self.data.item_ids[some],
                        "title": names.gather(some),
                        "category": category.gather(some),
                    }
                )
                rows.write_csv(file, include_header=start == 0)


def planted(n_users: int = 1000, n_items: int = 1000, **settings: Any) -> PlantedWorld:
    """Generate a world in which every user has one majority interest and some minority interests.

    The catalogue is imbalanced: the sizes of categories follow Zipf's law. A user's majority category is
    drawn by size, the minority ones all alike, so small categories are mainly somebody's minority. Within
    a category items follow Zipf's law too, and fall into a few series of which each interest prefers one:
    there is more to learn than the category. A little noise comes from the whole catalogue. Lists vary in
    length and are shortened where a category is too small for its share of them: their mean can be a
    little below ``positives``.

    Parameters
    ----------
    n_users, n_items
        Size of the world; 10^8 positives take about a minute and the memory of one CSR.
    **settings
        The other fields of `PlantedParameters`: ``n_categories``, ``interests``, ``positives``,
        ``majority_share``, ``noise``, ``popularity_exponent``, ``category_exponent``, ``series``, ``focus``,
        ``seed``. Without ``positives``, users have a tenth of the catalogue where that is less than 40.

    Returns
    -------
    PlantedWorld
        Its ``data`` has integer ids, titles, and each item's category as its one attribute.

    Examples
    --------
    >>> world = planted(200, 300, positives=12, seed=1)
    >>> world.data.n_users, world.data.n_items
    (200, 300)
    >>> item = int(world.data.of(0)[0])
    >>> world.data.items.title(item), world.data.items.attributes.of(item)
    ('The Lonesome Prairie', ['Western'])
    """
    parameters = _parameters(n_users, n_items, settings)
    catalogue = PlantedCatalogue.build(parameters)
    indptr, indices, interests, series, shares = _assemble(parameters, draw_blocks(catalogue))
    category, item_series = np.empty((2, n_items), dtype=np.int32)
    category[catalogue.slot_item] = catalogue.slot_category
    item_series[catalogue.slot_item] = catalogue.slot_series
    names = category_names(parameters.n_categories)
    truth = PlantedTruth(names, category, item_series, interests, series, shares)
    note = f"planted world, seed {parameters.seed}: majority and minority interests are known"
    data = Interactions(
        indptr,
        indices,
        np.arange(n_users),
        _table(truth, parameters.seed),
        catalogue_size=n_items,
        preparation=Preparation(rows=len(indices), notes=(note,)),
    )
    return PlantedWorld(data, truth, parameters)


def planted_blocks(n_users: int = 1000, n_items: int = 1000, **settings: Any) -> Iterator[tuple[IntArray, IntArray]]:
    """Stream the positives of `planted`: (users, items) positions, block of users by block of users.

    Positives are ascending by user and item; no more than one block is in memory. Takes what `planted` takes.

    Examples
    --------
    >>> sum(len(items) for _, items in planted_blocks(300)) == planted(300).data.n_positives
    True
    """
    catalogue = PlantedCatalogue.build(_parameters(n_users, n_items, settings))
    return ((block.users, block.items) for block in draw_blocks(catalogue))


def _parameters(n_users: int, n_items: int, settings: dict[str, Any]) -> PlantedParameters:
    known = {field.name for field in fields(PlantedParameters)}
    for name in settings:
        if name not in known:
            raise ParameterError(f"unknown parameter {name!r} of a planted world: {did_you_mean(name, known)}")
    if "positives" not in settings and isinstance(n_items, int):
        settings["positives"] = min(PlantedParameters.positives, max(n_items / 10, SHORTEST))
    return PlantedParameters(n_users, n_items, **settings)


def _assemble(
    parameters: PlantedParameters, blocks: Iterator[UserBlock]
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
    """Copy blocks into the arrays of one CSR and of the truth, so that memory is those plus a block."""
    n_users, width = parameters.n_users, parameters.interest_range[1]
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    indices = np.empty(int(n_users * parameters.positives * 1.02) + 1, dtype=np.int32)
    interests, series = np.empty((2, n_users, width), dtype=np.int32)
    shares = np.empty((n_users, width), dtype=np.float32)
    done = total = 0
    for block in blocks:
        count, size = len(block.shares), len(block.items)
        if total + size > len(indices):
            indices.resize(int((total + size) * 1.1), refcheck=False)  # the pages beyond the end cost nothing yet
        indices[total : total + size] = block.items
        indptr[done + 1 : done + count + 1] = total + np.cumsum(np.bincount(block.users - done, minlength=count))
        interests[done : done + count] = block.interests
        series[done : done + count] = block.series
        shares[done : done + count] = block.shares
        done, total = done + count, total + size
    indices.resize(total, refcheck=False)
    return indptr, indices, interests, series, shares


def _table(truth: PlantedTruth, seed: int) -> ItemTable:
    n_items = len(truth.item_category)
    ones = np.ones(n_items, dtype=bool)
    shape = (n_items, len(truth.categories))
    matrix = sparse.csr_array((ones, truth.item_category, np.arange(n_items + 1)), shape=shape)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
    names = np.array(truth.categories, dtype=object)
    return ItemTable(np.arange(n_items), titles(truth.item_category, rng), Attributes(names, matrix))
