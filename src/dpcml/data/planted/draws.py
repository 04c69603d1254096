"""How the planted world is drawn: its catalogue, and its users block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from dpcml.data.planted.parameters import FULL, SHORTEST, PlantedParameters
from dpcml.utils.arrays import FloatArray, IntArray

SPREAD = 0.5  # standard deviation of the logarithm of a user's positives beyond SHORTEST
ROUNDS = 8  # attempts to replace draws that hit an item twice


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Items in slots: by category, then by series, then by falling popularity.

    Every draw picks a slot in a segment: the whole catalogue, a category or a series.
    """

    parameters: PlantedParameters
    sizes: IntArray  # (categories,) items of each, largest first
    slot_item: IntArray  # (items,) item at each slot; random, so that ids give nothing away
    slot_category: IntArray  # (items,)
    slot_series: IntArray  # (items,) number of the series within its category
    mass: FloatArray  # (items + 1,) cumulated weight of slots; a category weighs what it has of items
    mean_beyond: float  # mean of list lengths beyond SHORTEST, before lists are shortened

    @classmethod
    def build(cls, parameters: PlantedParameters) -> Catalogue:
        """Lay out the catalogue; it depends on the seed through ``slot_item`` only."""
        sizes = parameters.category_sizes
        starts = np.cumsum(sizes) - sizes
        category = np.repeat(np.arange(len(sizes)), sizes)
        rank = np.arange(parameters.n_items) - starts[category]  # popularity rank within the category
        series = rank % parameters.series
        weight = (rank + 1.0) ** -parameters.popularity_exponent
        weight *= (sizes / np.add.reduceat(weight, starts))[category]
        order = np.lexsort((rank, series, category))
        mass = np.concatenate([[0.0], np.cumsum(weight[order])])
        rng = np.random.default_rng(np.random.SeedSequence(parameters.seed, spawn_key=(0,)))
        items = rng.permutation(parameters.n_items)
        return cls(parameters, sizes, items, category, series[order], mass, _mean_beyond(parameters))

    @cached_property
    def edges(self) -> IntArray:
        """First and one-past-last slot of segments: all, the categories, the series; shape (segments, 2)."""
        ends = np.cumsum(self.sizes)
        number = self.slot_category * self.parameters.series + self.slot_series  # ascending over slots
        series = np.arange(len(self.sizes) * self.parameters.series)
        lower = [np.array([0]), ends - self.sizes, np.searchsorted(number, series, side="left")]
        upper = [ends[-1:], ends, np.searchsorted(number, series, side="right")]
        return np.stack([np.concatenate(lower), np.concatenate(upper)], axis=1)

    def pick(self, segments: IntArray, where: FloatArray) -> IntArray:
        """Return an item of each segment; ``where`` in [0, 1) is the place in its cumulated weight."""
        low, high = self.edges[segments].T
        floor = self.mass[low]
        slots = np.searchsorted(self.mass, floor + where * (self.mass[high] - floor), side="right") - 1
        items: IntArray = self.slot_item[np.clip(slots, low, high - 1)]  # rounding must not leave the segment
        return items


@dataclass(frozen=True, eq=False)
class Block:
    """Some users in a row with their positives, ascending by user and item."""

    users: IntArray  # (positives,) positions of users
    items: IntArray  # (positives,)
    interests: IntArray  # (users of the block, k) categories, the majority first, -1 for none
    series: IntArray  # (users of the block, k) preferred series, -1 for none
    shares: FloatArray  # (users of the block, k)


def draw_blocks(catalogue: Catalogue) -> Iterator[Block]:
    """Draw users block by block; each block has a generator of its own, keyed by seed and block number."""
    parameters = catalogue.parameters
    step = parameters.block_users
    for number, first in enumerate(range(0, parameters.n_users, step)):
        rng = np.random.default_rng(np.random.SeedSequence(parameters.seed, spawn_key=(1, number)))
        yield _block(catalogue, first, min(step, parameters.n_users - first), rng)


def _block(catalogue: Catalogue, first: int, count: int, rng: np.random.Generator) -> Block:
    parameters = catalogue.parameters
    interests, shares = _interests(catalogue, count, rng)
    series = rng.integers(np.minimum(catalogue.sizes, parameters.series)[interests])
    chances = np.column_stack([shares * (1 - parameters.noise), np.full(count, parameters.noise)])
    room = np.column_stack([catalogue.sizes[interests], np.full(count, parameters.n_items)])  # (count, k + 1)
    lengths = _lengths(catalogue.mean_beyond, chances, room, rng)
    wanted = np.minimum(rng.multinomial(lengths, chances / chances.sum(axis=1, keepdims=True)), room)
    wide = np.column_stack([1 + interests, np.zeros(count, dtype=np.int64)])
    narrow = wide.copy()
    narrow[:, :-1] = 1 + len(catalogue.sizes) + interests * parameters.series + series
    users, items = _distinct(catalogue, wanted, wide, narrow, rng)
    none = shares == 0
    return Block(first + users, items, np.where(none, -1, interests), np.where(none, -1, series), shares)


def _interests(catalogue: Catalogue, count: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Draw categories by size for the majority, all alike for the minorities, and their shares."""
    low, high = catalogue.parameters.interest_range
    ends = np.cumsum(catalogue.sizes)
    majority = np.searchsorted(ends, rng.integers(ends[-1], size=count), side="right")
    order = rng.random((count, len(ends)))
    order[np.arange(count), majority] = -1  # first in line
    interests = np.argsort(order, axis=1)[:, :high]
    numbers = rng.integers(low, high, endpoint=True, size=count)
    top = np.where(numbers == 1, 1.0, catalogue.parameters.majority_share)
    others = (1 - top) / np.maximum(numbers - 1, 1)
    place = np.arange(high)
    shares = np.where(place == 0, top[:, None], np.where(place < numbers[:, None], others[:, None], 0.0))
    return interests, shares


def _lengths(mean: float, chances: FloatArray, room: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw log-normal list lengths, shortened where a category could not hold its share."""
    drawn = _length(mean, rng.standard_normal(len(chances)))
    with np.errstate(divide="ignore"):
        most = (FULL * room / chances).min(axis=1)
    lengths: IntArray = (np.minimum(drawn, np.maximum(most, SHORTEST)) + rng.random(len(drawn))).astype(int)
    return lengths


def _length(mean: float, normal: FloatArray) -> FloatArray:
    lengths: FloatArray = SHORTEST + mean * np.exp(SPREAD * normal - SPREAD**2 / 2)
    return lengths


def _mean_beyond(parameters: PlantedParameters) -> float:
    """Find the mean to draw lengths with, so that they have the wanted mean after they are shortened."""
    low, high = parameters.interest_range
    shares = np.array([1.0 if k == 1 else parameters.majority_share for k in range(low, high + 1)])
    sizes, counts = np.unique(parameters.category_sizes, return_counts=True)
    most = np.maximum(FULL * sizes / (shares[:, None] * (1 - parameters.noise)), SHORTEST)  # (numbers, sizes)
    weight = sizes * counts / parameters.n_items
    normal = np.array([NormalDist().inv_cdf((i + 0.5) / 50) for i in range(50)])
    wish = parameters.positives - SHORTEST
    low_mean, high_mean = wish, 8 * wish
    for _ in range(30):
        middle = (low_mean + high_mean) / 2
        lengths = np.minimum(_length(middle, normal), most[..., None]).mean(axis=(0, 2))  # (sizes,)
        enough = lengths @ weight >= parameters.positives
        low_mean, high_mean = (low_mean, middle) if enough else (middle, high_mean)
    return low_mean


def _distinct(
    catalogue: Catalogue, wanted: IntArray, wide: IntArray, narrow: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw ``wanted`` different items for each (user, source); what hits an item again is drawn anew.

    A source draws from its narrow segment with chance ``focus``, from its wide one otherwise.
    """
    n_items, focus = catalogue.parameters.n_items, catalogue.parameters.focus
    n_sources = wanted.shape[1]
    shift = n_sources.bit_length()
    missing = wanted.ravel()
    keys = np.zeros(0, dtype=np.int64)  # ((user, item), source)
    for _ in range(ROUNDS):
        cells = np.repeat(np.arange(wanted.size), missing)  # (draws,) user * n_sources + source
        where = rng.random(len(cells))
        focused = where < focus
        where = np.where(focused, where / max(focus, 1e-300), (where - focus) / max(1 - focus, 1e-300))
        items = catalogue.pick(np.where(focused, narrow.ravel()[cells], wide.ravel()[cells]), where)
        owners, sources = np.divmod(cells, n_sources)
        fresh = np.sort(((owners * n_items + items) << shift) | sources)
        keys = np.sort(np.concatenate([keys, fresh]), kind="stable")  # merges two sorted runs
        pairs = keys >> shift
        keys = keys[np.append(True, pairs[1:] != pairs[:-1])]
        owners = (keys >> shift) // n_items
        got = np.bincount(owners * n_sources + (keys & ((1 << shift) - 1)), minlength=wanted.size)
        missing = wanted.ravel() - got
        if not missing.any():
            break
    return owners, (keys >> shift) - owners * n_items
