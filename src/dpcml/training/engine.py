"""The training engine: vectors, moments and one call per epoch, with the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.kernels.barrier import ABORTED, barrier_state
from dpcml.kernels.gradients import Objective
from dpcml.kernels.minibatch import Workspace, minibatch_kernel
from dpcml.kernels.mining import HARDEST
from dpcml.kernels.optimizer import EmbeddingTable, OptimizerSteps, move_average
from dpcml.kernels.partition import GROUPS, shares
from dpcml.kernels.random import epoch_key
from dpcml.kernels.simd import FLOATS_PER_LINE, LANES, items_at_once, padded
from dpcml.training.order import Order
from dpcml.training.samplers import NegativeSampler, positives
from dpcml.utils.arrays import Array, FloatArray, IntArray, aligned, repeats_first, unit
from dpcml.utils.threads import ThreadPool, over_rows

CHUNK = 2**17  # positives per call of the kernel: progress and Ctrl-C are handled in between
MOMENTS = {"adam": 2, "adagrad": 1}  # moments per element of a vector
TABLE_STEPS = 20_000  # after as many steps the bias correction of Adam is 1


@dataclass(frozen=True)
class TrainConfig:
    """Hyper-parameters of training, as the engine takes them."""

    sampler: NegativeSampler
    n_candidates: int
    n_negatives: int  # candidates that become negatives
    margin: float
    pull: float  # weight of a positive's own squared distance, see `dpcml.training.samplers.attraction`
    diversity: tuple[float, float]  # delta_1, delta_2
    diversity_weight: float
    diversity_per_pair: bool
    users_on_sphere: bool
    items_on_sphere: bool
    optimizer: Literal["adam", "adagrad"]
    batch_size: int
    max_user_run: int  # maximum number of consecutive positives of one user
    seed: int
    average: float  # decay per epoch of the running average of the vectors; 0 takes the last epoch's
    n_threads: int

    @property
    def term_weight(self) -> float:
        """Weight of each negative: those that were selected as the hardest share the weight of one."""
        return 1 / self.n_negatives if self.sampler.choice == HARDEST else 1.0


class Engine:
    """Trains vectors in place, epoch by epoch.

    Parameters
    ----------
    train
        Positives to learn from.
    user_vectors, item_vectors
        Initial vectors of shapes (users, vectors, d) and (items, d). The last vectors of a user are not used if they
        repeat the first one: they are neither trained nor scored.
    config
        Hyper-parameters.
    """

    def __init__(
        self, train: Interactions, user_vectors: FloatArray, item_vectors: FloatArray, config: TrainConfig
    ) -> None:
        self.config = config
        self.n_vectors, self.dim = user_vectors.shape[1:]
        self.users = _embedding_table(user_vectors, config, config.users_on_sphere)
        self.items = _embedding_table(item_vectors[:, None, :], config, config.items_on_sphere)
        self._unused = repeats_first(user_vectors)
        self.users.vectors[self._unused.ravel()] = 0
        self.users.squares[self._unused.ravel()] = np.inf  # no item is near them, so that they are never trained
        self._averages = (
            {"user": self.users.vectors.copy(), "item": self.items.vectors.copy()} if config.average else {}
        )
        self._data = positives(train, config.pull)
        self._order = Order(train.rows.astype(np.int32), self._data.items, config.max_user_run, config.n_threads)
        self._drawn = np.empty((len(self._data.items), 2), dtype=np.int32)
        self._candidates = config.sampler.candidates(train)
        self._work = _workspace(self.users, self.items, self.n_vectors, len(self._data.items), config)
        self._objective = objective_of(config, self.dim)
        self._pool = ThreadPool(max(config.n_threads - 1, 1))
        self._kernel = minibatch_kernel(
            self.n_vectors, padded(self.dim), config.sampler.choice, config.optimizer, config.diversity_per_pair
        )

    def user_vectors(self, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return the vectors of some users as the model has them, with padding; shape (rows, vectors, width).

        They are averaged over the epochs if the configuration says so; unused vectors repeat the first one.
        """
        table = self._averages.get("user", self.users.vectors).reshape(-1, self.n_vectors, padded(self.dim))
        vectors, unused = table[rows], self._unused[rows]
        if self._averages and self.config.users_on_sphere:
            vectors = unit(vectors)
        return np.where(unused[:, :, None], vectors[:, :1], vectors) if unused.any() else vectors

    def item_vectors(self) -> FloatArray:
        """Return the vectors of all items as the model has them, with padding; shape (items, width)."""
        table = self._averages.get("item", self.items.vectors)
        return unit(table) if self._averages and self.config.items_on_sphere else table

    def state(self) -> dict[str, Array]:
        """Return views of all arrays that training changes: vectors, squared norms, moments and averages."""
        tables = {"user": self.users, "item": self.items}
        names = ("vectors", "squares", "moments")
        found = {f"{owner}_{name}": getattr(table, name) for owner, table in tables.items() for name in names}
        return found | {f"{owner}_average": values for owner, values in self._averages.items()}

    def learned(self) -> list[str]:
        """Return the names of the arrays that make up the model."""
        return ["user_average", "item_average"] if self._averages else ["user_vectors", "item_vectors"]

    def release(self) -> tuple[FloatArray, FloatArray]:
        """Return copies of the vectors without padding, and free everything else."""
        users, items = self.user_vectors()[:, :, : self.dim], self.item_vectors()[:, : self.dim]
        del self.users, self.items, self._averages, self._work, self._data, self._order, self._drawn, self._pool
        return np.ascontiguousarray(users), np.ascontiguousarray(items)

    def compile(self) -> None:
        """Compile the kernel, or load it from the cache on disk."""
        if not self._kernel.signatures:  # type: ignore[attr-defined]
            steps = _optimizer_steps(self.config.optimizer, 0.0)
            self._run(self._order.draw(np.uint64(0), self._drawn), np.uint64(0), steps, 0, 0, 0, 0, 1)

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive once, in an order that depends on the seed and the epoch only.

        Parameters
        ----------
        number
            Number of the epoch, from 0.
        rate
            Learning rate.
        report
            Called with the fraction of the epoch that is done.

        Returns
        -------
        float
            Mean hinge loss per positive, before each batch's update.
        """
        config = self.config
        key = epoch_key(config.seed, number)
        order = self._order.draw(key, self._drawn)
        steps = _optimizer_steps(config.optimizer, rate)
        n_batches = len(self._work.losses)
        done = number * n_batches
        self._work.last_batch[:] = -1
        self._work.barrier[:] = 0
        stride = max(1, CHUNK // config.batch_size)
        for begin in range(0, n_batches, stride):
            end = min(begin + stride, n_batches)
            self._on_all_threads(partial(self._run, order, key, steps, begin, end, done))
            if report is not None:
                report(end / n_batches)
        for owner, average in self._averages.items():
            latest = self.users.vectors if owner == "user" else self.items.vectors
            weight = np.float32((1 - config.average) / (1 - config.average ** (number + 1)))
            over_rows(partial(move_average, average, latest, weight), len(average), config.n_threads)
        return float(self._work.losses.sum() / len(order))

    def _on_all_threads(self, run: Callable[[int, int], None]) -> None:
        """Call ``run(thread, n_threads)`` on every thread; the calling thread is number 0."""
        threads, others = self.config.n_threads, list[Future[None]]()
        try:
            for thread in range(1, threads):
                others.append(self._pool.executor.submit(run, thread, threads))
            run(0, threads)
        except BaseException:  # threads that have started must not wait at the barrier for the others
            self._work.barrier[ABORTED] = 1
            raise
        finally:
            wait(others)  # no thread trains on after this returns
        for other in others:
            other.result()

    def _run(
        self,
        order: IntArray,
        key: np.uint64,
        steps: OptimizerSteps,
        begin: int,
        end: int,
        done: int,
        thread: int,
        n_threads: int,
    ) -> None:
        try:
            self._kernel(
                self.users, self.items, self._data, self._candidates, self._objective, steps, self._work, order, key,
                self.config.batch_size, self.config.n_candidates, self.config.n_negatives, begin, end, done, thread,
                n_threads,
            )  # fmt: skip
        except BaseException:  # the other threads must not wait at the barrier for this one
            self._work.barrier[ABORTED] = 1
            raise


def objective_of(config: TrainConfig, dim: int) -> Objective:
    """Return the hyper-parameters of the objective as kernels take them."""
    return Objective(
        np.float32(config.margin),
        np.float32(config.diversity[0]),
        np.float32(config.diversity[1]),
        np.float32(config.diversity_weight),
        config.diversity_per_pair,
        config.users_on_sphere,
        config.items_on_sphere,
        dim,
        np.float32(config.term_weight),
    )


def _embedding_table(vectors: FloatArray, config: TrainConfig, on_sphere: bool) -> EmbeddingTable:
    """Return padded and projected vectors, one per row, with moments of zero."""
    owners, per_owner, dim = vectors.shape
    rows = aligned((owners * per_owner, padded(dim)))
    rows[:, :dim] = vectors.reshape(-1, dim)
    norms = np.sqrt(np.einsum("rd,rd->r", rows, rows))
    rows /= np.maximum(norms, 1e-12 if on_sphere else 1.0)[:, None]
    moments = aligned((len(rows), MOMENTS[config.optimizer] * rows.shape[1]))
    return EmbeddingTable(rows, np.einsum("rd,rd->r", rows, rows), moments)


def _workspace(
    users: EmbeddingTable, items: EmbeddingTable, n_vectors: int, n_positives: int, config: TrainConfig
) -> Workspace:
    """Return buffers for batches of ``config.batch_size`` positives."""
    batch, threads, width = config.batch_size, config.n_threads, users.vectors.shape[1]
    n_negatives = config.n_negatives
    terms = batch * (n_negatives + 1)
    at_once = items_at_once(n_vectors)
    columns = -(-(1 + config.n_candidates) // at_once) * at_once
    slots = batch * max(n_vectors, 1 + n_negatives)
    return Workspace(
        shares=shares(threads),
        groups=np.zeros((threads, terms), np.uint8),
        starts=np.zeros((threads, 2 * GROUPS), np.int64),  # twice the length: threads write to different cache lines
        indices=np.zeros((threads, terms), np.int32),
        pairs=np.zeros((batch, 2), np.int32),
        is_first=np.zeros(batch, np.bool_),
        term_item=np.zeros(terms, np.int32),
        term_vector=np.zeros(terms, np.int32),
        term_weight=np.zeros(terms, np.float32),
        hinge=np.zeros(batch, np.float32),
        chosen=np.zeros((batch, columns), np.int32),
        sums=aligned((threads, padded(columns) * n_vectors, LANES)),
        near=aligned((threads, 1 + n_vectors, padded(columns))),
        weights=np.zeros((threads, config.n_candidates), np.float64),
        gradients=aligned((threads, 2, slots, width)),
        touched=np.zeros((threads, 2, slots), np.int32),
        differences=aligned((terms, -(-width // FLOATS_PER_LINE) * FLOATS_PER_LINE)),  # one writer per cache line
        user_slot=np.full(len(users.vectors), -1, np.int32),
        item_slot=np.full(len(items.vectors), -1, np.int32),
        last_batch=np.zeros(len(users.vectors) // n_vectors, np.int32),
        barrier=barrier_state(),
        losses=np.zeros(-(-n_positives // batch), np.float64),
    )


@lru_cache(maxsize=2)  # the rate changes from epoch to epoch
def _optimizer_steps(optimizer: str, rate: float) -> OptimizerSteps:
    """Return the steps of all batches since training began, at a constant learning rate."""
    rates = np.full(TABLE_STEPS, rate)
    if optimizer == "adam":
        return OptimizerSteps.adam(rates, np.maximum(np.arange(TABLE_STEPS), 1))
    return OptimizerSteps.adagrad(rates)
