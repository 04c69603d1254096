"""How the planted data set is drawn: parameters, item catalogue, users block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import at_least
from dpcml.utils.errors import ParameterError

SHORTEST = 5  # positives that every user gets, room permitting
FULL = 0.75  # share of a category that a user may take before the list is shortened
BLOCK_DRAWS = 2**20  # a block is as many users as need about so many draws

_RULES: dict[str, tuple[Callable[[float], bool], str]] = {
    "positives": (lambda value: value >= SHORTEST, f"of at least {SHORTEST}"),
    "majority_share": (lambda value: 0 < value <= 1, "above 0 and at most 1"),
    "noise": (lambda value: 0 <= value < 1, "of at least 0 and below 1"),
    "focus": (lambda value: 0 <= value <= 1, "between 0 and 1"),
    "popularity_exponent": (lambda value: 0 <= value <= 3, "between 0 (flat) and 3 (steep)"),
    "category_exponent": (lambda value: 0 <= value <= 3, "between 0 (flat) and 3 (steep)"),
}


@dataclass(frozen=True)
class PlantedParameters:
    """What a planted world is made from; the same parameters give the same world.

    Examples
    --------
    >>> PlantedParameters(n_items=10, positives=5)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: n_categories=12: 10 items cannot fill 12 categories; ask for fewer categories
    """

    n_users: int = 1000
    n_items: int = 1000
    n_categories: int = 12  # every item is in one of them
    interests: int | tuple[int, int] = 3  # categories that a user likes, or the lowest and highest number
    positives: float = 40.0  # mean number of positives per user
    majority_share: float = 0.65  # share of a user's interest that goes to the majority category
    noise: float = 0.05  # share of positives drawn from the whole catalogue
    popularity_exponent: float = 0.6  # of Zipf's law over the items of a category; 0: all alike
    category_exponent: float = 0.8  # of Zipf's law over the sizes of categories; 0: all of one size
    series: int = 3  # groups of items within a category; each interest prefers one of them
    focus: float = 0.7  # share of an interest's positives that comes from the preferred series
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("n_users", "n_items", "n_categories", "series"):
            at_least(name, getattr(self, name), 1)
        at_least("seed", self.seed, 0)
        for name, (holds, rule) in _RULES.items():
            _number(name, getattr(self, name), holds, rule)
        if self.n_categories > self.n_items:
            raise ParameterError(
                f"n_categories={self.n_categories}: {self.n_items} items cannot fill {self.n_categories}"
                " categories; ask for fewer categories"
            )
        if self.positives >= self.n_items:
            raise ParameterError(
                f"positives={self.positives:g}: a user cannot like that many of n_items={self.n_items} on"
                " average; ask for fewer positives or more items"
            )
        self._check_interests()
        self._check_room()

    def _check_interests(self) -> None:
        low, high = self.interest_range
        at_least("interests", low, 1)
        at_least("interests", high, low)
        if high > self.n_categories:
            raise ParameterError(
                f"interests={self.interests}: there are only n_categories={self.n_categories} to choose from"
            )
        fewest = max(low, 2)
        if high > 1 and self.majority_share <= 1 / fewest:
            raise ParameterError(
                f"majority_share={self.majority_share:g}: of {fewest} interests the majority must have more"
                f" than {1 / fewest:.2g}"
            )

    def _check_room(self) -> None:
        share = 1.0 if self.interest_range[1] == 1 else self.majority_share
        sizes = self.category_sizes
        longest = np.maximum(SHORTEST, FULL * sizes / (share * (1 - self.noise)))
        mean = float(sizes @ longest / self.n_items)
        if mean < self.positives:
            raise ParameterError(
                f"positives={self.positives:g}: {share:.0%} of them must fit into a category, and categories"
                f" hold {mean:.0f} per user; ask for fewer positives or categories, or more items"
            )

    @property
    def interest_range(self) -> tuple[int, int]:
        """Lowest and highest number of interests of a user."""
        if isinstance(self.interests, (tuple, list)):
            if len(self.interests) != 2 or self.interests[0] > self.interests[1]:
                raise ParameterError(f"interests={self.interests}: pass a number, or the lowest and the highest")
            return self.interests[0], self.interests[1]
        return self.interests, self.interests

    @property
    def block_users(self) -> int:
        """Users drawn together; it follows from the parameters alone, so memory never changes the world."""
        return max(1, min(2**14, int(BLOCK_DRAWS / max(self.positives, self.n_categories))))

    @property
    def category_sizes(self) -> IntArray:
        """Items of each category by Zipf's law, at least one each, largest first; shape (categories,)."""
        weight = (np.arange(self.n_categories) + 1.0) ** -self.category_exponent
        ends = np.round(np.cumsum(weight) / weight.sum() * (self.n_items - self.n_categories))
        return np.sort(1 + np.diff(ends.astype(np.int64), prepend=0))[::-1]


def _number(name: str, value: object, holds: Callable[[float], bool], rule: str) -> None:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not math.isfinite(float(value)) or not holds(float(value)):  # type: ignore[arg-type]
        raise ParameterError(f"{name}={value!r}: must be a number {rule}")


SPREAD = 0.5  # standard deviation of the logarithm of a user's positives beyond SHORTEST
ROUNDS = 8  # attempts to replace draws that hit an item twice


@dataclass(frozen=True, eq=False)
class PlantedCatalogue:
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
    def build(cls, parameters: PlantedParameters) -> PlantedCatalogue:
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
class UserBlock:
    """Some users in a row with their positives, ascending by user and item."""

    users: IntArray  # (positives,) positions of users
    items: IntArray  # (positives,)
    interests: IntArray  # (users of the block, k) categories, the majority first, -1 for none
    series: IntArray  # (users of the block, k) preferred series, -1 for none
    shares: FloatArray  # (users of the block, k)


def draw_blocks(catalogue: PlantedCatalogue) -> Iterator[UserBlock]:
    """Draw users block by block; each block has a generator of its own, keyed by seed and block number."""
    parameters = catalogue.parameters
    step = parameters.block_users
    for number, first in enumerate(range(0, parameters.n_users, step)):
        rng = np.random.default_rng(np.random.SeedSequence(parameters.seed, spawn_key=(1, number)))
        yield _block(catalogue, first, min(step, parameters.n_users - first), rng)


def _block(catalogue: PlantedCatalogue, first: int, count: int, rng: np.random.Generator) -> UserBlock:
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
    return UserBlock(first + users, items, np.where(none, -1, interests), np.where(none, -1, series), shares)


def _interests(catalogue: PlantedCatalogue, count: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
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
    catalogue: PlantedCatalogue, wanted: IntArray, wide: IntArray, narrow: IntArray, rng: np.random.Generator
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
        users, sources = np.divmod(cells, n_sources)
        fresh = np.sort(((users * n_items + items) << shift) | sources)
        keys = np.sort(np.concatenate([keys, fresh]), kind="stable")  # merges two sorted runs
        pairs = keys >> shift
        keys = keys[np.append(True, pairs[1:] != pairs[:-1])]
        users = (keys >> shift) // n_items
        got = np.bincount(users * n_sources + (keys & ((1 << shift) - 1)), minlength=wanted.size)
        missing = wanted.ravel() - got
        if not missing.any():
            break
    return users, (keys >> shift) - users * n_items
