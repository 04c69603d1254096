"""Which points of a space are tried: a grid, at random, or where earlier ones did well."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcml.tuning.space import Point, Space
from dpcml.utils.packages import require
from dpcml.utils.registry import Registry

BATCH = 8  # points that a sampler which learns proposes at once: fixed, so that results do not depend on the workers
_TRIES = 1000  # draws in search of a point that was not proposed before


class Sampler(ABC):
    """Proposes points; the same seed proposes the same ones, and a larger budget begins with those of a smaller."""

    batch: int | None = None  # how many points to ask for before telling how they did; None: all
    limit: int | None = None  # how many points it can propose; None: any number

    @abstractmethod
    def propose(self, n: int) -> list[Point]:
        """Return up to ``n`` points that were not proposed before; fewer where the space has no more."""

    def learn(self, point: Point, value: float | None) -> None:  # noqa: B027 (most samplers do not care)
        """Take note of how a proposed point did; None: it failed."""


class Grid(Sampler):
    """Every point of the grid once, in strides that spread a small budget over all of it.

    Examples
    --------
    >>> from dpcml.tuning.space import read_space
    >>> [point["margin"] for point in Grid(read_space("grid", "unis"), seed=0).propose(3)]
    [1.0, 1.5, 2.0]
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self._next = space, 0
        self.limit = size = space.grid_size
        self._stride = round(size * (math.sqrt(5) - 1) / 2)  # no two strides land near each other
        while math.gcd(self._stride, size) > 1:
            self._stride += 1

    def propose(self, n: int) -> list[Point]:
        """Return the next points."""
        size = self.space.grid_size
        numbers = range(self._next, min(self._next + n, size))
        self._next += len(numbers)
        return [self.space.grid_point(number * self._stride % size) for number in numbers]


class Random(Sampler):
    """Points drawn evenly, each at most once.

    Examples
    --------
    >>> from dpcml.tuning.space import read_space
    >>> len(Random(read_space("grid", "unis"), seed=0).propose(30))
    9
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.limit = space, space.count
        self._rng = np.random.default_rng((seed, 0))
        self._seen: set[str] = set()

    def propose(self, n: int) -> list[Point]:
        """Draw points."""
        drawn = (self._fresh() for _ in range(n))
        return [point for point in drawn if point is not None]

    def _fresh(self) -> Point | None:
        """Return a point that was not proposed before, None where there is none."""
        if self.limit is not None and len(self._seen) >= self.limit:
            return None
        names = list(self.space.dimensions)
        for _ in range(_TRIES):
            point = self.space.at(dict(zip(names, self._rng.random(len(names)).tolist(), strict=True)))
            if self._new(point):
                return point
        return None

    def _new(self, point: Point) -> bool:
        known = repr(point) in self._seen
        self._seen.add(repr(point))
        return not known


class Bayes(Random):
    """Points where a model of earlier trials expects the best ones: optuna's tree-structured Parzen estimator.

    The first ten are drawn at random. Needs optuna: ``pip install 'dpcml[tune]'``.
    """

    batch = BATCH

    def __init__(self, space: Space, seed: int) -> None:
        super().__init__(space, seed)
        self._optuna = require("optuna", "tune")
        # Points are asked for in batches: those without a value yet count as bad, so that a batch is not all alike.
        kind = self._optuna.samplers.TPESampler
        logging = self._optuna.logging
        before = logging.get_verbosity()
        logging.set_verbosity(logging.WARNING)  # a study would announce itself
        try:
            self._study = self._optuna.create_study(direction="maximize", sampler=kind(seed=seed, constant_liar=True))
        finally:
            logging.set_verbosity(before)
        self._asked: dict[str, Any] = {}

    def propose(self, n: int) -> list[Point]:
        """Ask for points; one that was proposed before is replaced by a random one."""
        points = []
        for _ in range(n):
            trial = self._study.ask()
            point = self.space.at({name: self._share(trial, name) for name in self.space.dimensions})
            if not self._new(point):
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
                drawn = self._fresh()
                if drawn is None:
                    break
                points.append(drawn)
                continue
            self._asked[repr(point)] = trial
            points.append(point)
        return points

    def learn(self, point: Point, value: float | None) -> None:
        """Tell how a point did."""
        trial = self._asked.pop(repr(point), None)
        if trial is None:
            return
        failed = self._optuna.trial.TrialState.FAIL
        if value is None:
            self._study.tell(trial, state=failed)
        else:
            self._study.tell(trial, value)

    def _share(self, trial: Any, name: str) -> float:
        """Return a place in [0, 1): nearby places are alike only where the dimension is ordered."""
        dimension = self.space.dimensions[name]
        if dimension.ordered:
            return float(trial.suggest_float(name, 0.0, 1.0))
        count = dimension.count or 1
        return float((trial.suggest_categorical(name, list(range(count))) + 0.5) / count)


SAMPLERS: Registry[Callable[[Space, int], Sampler]] = Registry("sampler of settings")
SAMPLERS.add("random", Random)
SAMPLERS.add("grid", Grid)
SAMPLERS.add("bayes", Bayes)
