"""The engine: vectors, moments and one call per epoch, the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.batches import batch_kernel
from dpcml.kernels.lanes import A_LINE, LANES, padded
from dpcml.kernels.owners import GROUPS, shares
from dpcml.kernels.random import epoch_key
from dpcml.kernels.simd import items_at_once
from dpcml.kernels.state import Objective, Scratch, Steps, Table
from dpcml.kernels.team import GIVEN_UP, team_state
from dpcml.training.order import Order
from dpcml.training.samplers import NegativeSampler, positives
from dpcml.utils.arrays import Array, FloatArray, IntArray, aligned
from dpcml.utils.threads import ThreadPool

CHUNK = 2**17  # positives between two looks at the clock and at Ctrl-C
MOMENTS = {"adam": 2, "adagrad": 1}  # numbers that an optimiser keeps beside each number of a vector
TABLE_STEPS = 20_000  # by then the bias correction of Adam is one


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what an epoch does, beside the vectors."""

    sampler: NegativeSampler
    n_candidates: int
    margin: float
    diversity: tuple[float, float]  # delta_1, delta_2
    diversity_weight: float
    diversity_per_pair: bool
    users_on_sphere: bool
    items_on_sphere: bool
    optimiser: Literal["adam", "adagrad"]
    batch_size: int
    max_user_run: int  # positives of a user side by side in the order, at most
    seed: int
    n_threads: int


class Engine:
    """Trains vectors in place, epoch by epoch.

    Parameters
    ----------
    train
        Positives to learn from.
    user_vectors, item_vectors
        Starting points of shapes (users, vectors, d) and (items, d).
    config
        What an epoch does.
    """

    def __init__(
        self, train: Interactions, user_vectors: FloatArray, item_vectors: FloatArray, config: TrainConfig
    ) -> None:
        self.config = config
        self.n_vectors, self.dim = user_vectors.shape[1:]
        self.users = _table(user_vectors, config, config.users_on_sphere)
        self.items = _table(item_vectors[:, None, :], config, config.items_on_sphere)
        self._data = positives(train)
        self._order = Order(train.rows.astype(np.int32), self._data.items, config.max_user_run, config.n_threads)
        self._drawn = np.empty((len(self._data.items), 2), dtype=np.int32)
        self._candidates = config.sampler.candidates(train)
        self._scratch = _scratch(self.users, self.items, self.n_vectors, len(self._data.items), config)
        self._objective = objective_of(config, self.dim)
        self._pool = ThreadPool(max(config.n_threads - 1, 1))
        self._kernel = batch_kernel(
            self.n_vectors, padded(self.dim), config.sampler.choice, config.optimiser, config.diversity_per_pair
        )

    @property
    def user_vectors(self) -> FloatArray:
        """A view of the users' vectors; shape (users, vectors, d)."""
        return self.padded_user_vectors[:, :, : self.dim]

    @property
    def padded_user_vectors(self) -> FloatArray:
        """A view of the users' vectors with the zeros that fill their rows; shape (users, vectors, width)."""
        return self.users.vectors.reshape(-1, self.n_vectors, padded(self.dim))

    @property
    def item_vectors(self) -> FloatArray:
        """A view of the items' vectors; shape (items, d)."""
        return self.items.vectors[:, : self.dim]

    def state(self) -> dict[str, Array]:
        """Return the arrays that are the whole state of training; they change in place."""
        tables = {"user": self.users, "item": self.items}
        names = ("vectors", "squares", "moments")
        return {f"{owner}_{name}": getattr(table, name) for owner, table in tables.items() for name in names}

    def learned(self) -> list[str]:
        """Return the names of the arrays that make up the model."""
        return ["user_vectors", "item_vectors"]

    def release(self) -> tuple[FloatArray, FloatArray]:
        """Return the vectors of users and items on their own, and let everything else go."""
        users, items = self.user_vectors, self.item_vectors
        del self.users, self.items, self._scratch, self._data, self._order, self._drawn, self._pool
        return np.ascontiguousarray(users), np.ascontiguousarray(items)

    def compile(self) -> None:
        """Compile the kernel, or load it from the cache on disk."""
        if not self._kernel.signatures:  # type: ignore[attr-defined]
            steps = _steps(self.config.optimiser, 0.0)
            self._run(self._order.draw(np.uint64(0), self._drawn), np.uint64(0), steps, 0, 0, 0, 0, 1)

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive once, in an order that depends on seed and number only.

        Parameters
        ----------
        number
            The epoch's number.
        rate
            Learning rate.
        report
            Called now and then with the share of the epoch that is done.

        Returns
        -------
        float
            The mean hinge per positive, before each batch's step.
        """
        config = self.config
        key = epoch_key(config.seed, number)
        order = self._order.draw(key, self._drawn)
        steps = _steps(config.optimiser, rate)
        n_batches = len(self._scratch.losses)
        done = number * n_batches
        self._scratch.met_in[:] = -1
        self._scratch.team[:] = 0
        stride = max(1, CHUNK // config.batch_size)
        for begin in range(0, n_batches, stride):
            end = min(begin + stride, n_batches)
            self._on_all_threads(partial(self._run, order, key, steps, begin, end, done))
            if report is not None:
                report(end / n_batches)
        return float(self._scratch.losses.sum() / len(order))

    def _on_all_threads(self, run: Callable[[int, int], None]) -> None:
        """Have every thread run, with its number and how many there are; the caller's is number 0."""
        threads, others = self.config.n_threads, list[Future[None]]()
        try:
            for thread in range(1, threads):
                others.append(self._pool.executor.submit(run, thread, threads))
            run(0, threads)
        except BaseException:  # the team is not whole: those who have started must not wait for the others
            self._scratch.team[GIVEN_UP] = 1
            raise
        finally:
            wait(others)  # nobody trains on when this returns
        for other in others:
            other.result()

    def _run(
        self,
        order: IntArray,
        key: np.uint64,
        steps: Steps,
        begin: int,
        end: int,
        done: int,
        thread: int,
        n_threads: int,
    ) -> None:
        try:
            self._kernel(
                self.users, self.items, self._data, self._candidates, self._objective, steps, self._scratch, order, key,
                self.config.batch_size, self.config.n_candidates, begin, end, done, thread, n_threads,
            )  # fmt: skip
        except BaseException:  # the team is not whole: nobody must wait for this thread
            self._scratch.team[GIVEN_UP] = 1
            raise


def objective_of(config: TrainConfig, dim: int) -> Objective:
    """Return the numbers of the objective as kernels take them, for vectors of some dimension."""
    return Objective(
        np.float32(config.margin),
        np.float32(config.diversity[0]),
        np.float32(config.diversity[1]),
        np.float32(config.diversity_weight),
        config.diversity_per_pair,
        config.users_on_sphere,
        config.items_on_sphere,
        dim,
    )


def _table(vectors: FloatArray, config: TrainConfig, on_sphere: bool) -> Table:
    owners, per_owner, dim = vectors.shape
    rows = aligned((owners * per_owner, padded(dim)))
    rows[:, :dim] = vectors.reshape(-1, dim)
    norms = np.sqrt(np.einsum("rd,rd->r", rows, rows))
    rows /= np.maximum(norms, 1e-12 if on_sphere else 1.0)[:, None]
    moments = aligned((len(rows), MOMENTS[config.optimiser] * rows.shape[1]))
    return Table(rows, np.einsum("rd,rd->r", rows, rows), moments)


def _scratch(users: Table, items: Table, n_vectors: int, n_positives: int, config: TrainConfig) -> Scratch:
    size, threads = config.batch_size, config.n_threads
    kept = config.n_candidates if config.sampler.keeps_all else 1
    group = items_at_once(n_vectors)
    places = -(-(1 + config.n_candidates) // group) * group
    slots = size * max(n_vectors, 1 + kept)
    return Scratch(
        shares=shares(threads),
        groups=np.zeros((threads, size * (kept + 1)), np.uint8),
        starts=np.zeros((threads, 2 * GROUPS), np.int64),  # threads write to lines of their own
        listed=np.zeros((threads, size * (kept + 1)), np.int32),
        pairs=np.zeros((size, 2), np.int32),
        opens=np.zeros(size, np.bool_),
        met=np.zeros(size * (kept + 1), np.int32),
        nearest=np.zeros(size * (kept + 1), np.int32),
        weight=np.zeros(size * (kept + 1), np.float32),
        hinge=np.zeros(size, np.float32),
        chosen=np.zeros((size, places), np.int32),
        sums=aligned((threads, padded(places) * n_vectors, LANES)),
        near=aligned((threads, 1 + n_vectors, padded(places))),
        weights=np.zeros((threads, config.n_candidates), np.float64),
        gradients=aligned((threads, 2, slots, users.vectors.shape[1])),
        touched=np.zeros((threads, 2, slots), np.int32),
        apart=aligned((size * (kept + 1), -(-users.vectors.shape[1] // A_LINE) * A_LINE)),  # a line has one writer
        user_slot=np.full(len(users.vectors), -1, np.int32),
        item_slot=np.full(len(items.vectors), -1, np.int32),
        met_in=np.zeros(len(users.vectors) // n_vectors, np.int32),
        team=team_state(),
        losses=np.zeros(-(-n_positives // size), np.float64),
    )


@lru_cache(maxsize=2)  # the rate changes from epoch to epoch
def _steps(optimiser: str, rate: float) -> Steps:
    """Return the rate of every batch since training began."""
    rates = np.full(TABLE_STEPS, rate)
    if optimiser == "adam":
        return Steps.adam(rates, np.maximum(np.arange(TABLE_STEPS), 1))
    none = np.float32(0)
    return Steps(rates.astype(np.float32), np.full(TABLE_STEPS, 1e-10, np.float32), none, none)
