"""What a planted world is made from, with the rules that its parameters must keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcml.utils.arrays import IntArray
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
