"""One worker of a distributed training: the engine on a part of the users, in step with the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.evaluation.evaluate import mean_of_sums, validation_sums
from dpcml.evaluation.ranks import rank_held_out
from dpcml.models.adaptive import repeat_first
from dpcml.models.multi_interest import MultiInterest
from dpcml.models.runners import EngineScorer
from dpcml.scale.collective import Group, ItemSync, largest
from dpcml.scale.engine import SharedEngine
from dpcml.scale.init import ItemInit
from dpcml.training.checkpoint import Checkpoint, Checkpointer, DamagedCheckpointError
from dpcml.training.engine import TrainConfig
from dpcml.training.trainer import History, Trainer
from dpcml.utils.arrays import Array, FloatArray, IntArray
from dpcml.utils.errors import DataError
from dpcml.utils.packages import version

SEEDS = 0x9E3779B97F4A7C15  # between the seeds of two workers


@dataclass(frozen=True)
class TrainingJob:
    """What all workers of a training need to know."""

    model: MultiInterest  # unfitted, with what was found on the validation part
    init: ItemInit | None  # None for a single worker, which starts as a training in one process does
    config: TrainConfig
    per_item: IntArray  # positives of each item, of all users
    mean_weight: float  # see `dpcml.scale.engine.weight_mean`
    positives: int  # of all users
    sync_every: int  # batches between two exchanges of item vectors
    sync_power: float  # see `dpcml.scale.collective.ItemSync`
    checkpoint: Checkpoint | None
    resume: bool
    identity: dict[str, Any]  # of the run: a checkpoint of another one is refused
    version: str  # of dpcml where the training was started


@dataclass(frozen=True)
class WorkerResult:
    """What a worker has learned."""

    users: FloatArray  # (users of this worker, vectors, d)
    items: FloatArray | None  # (items, d), of the first worker
    history: History


def run(
    job: TrainingJob,
    group: Group,
    train: Interactions,
    valid: Interactions | None,
    note: Callable[[History], None] | None = None,
) -> WorkerResult:
    """Train on the users of one worker, in step with the others; ``note`` gets the history after each epoch."""
    learner = SharedLearner(job, group, train)
    trainer = Trainer.from_params(job.model.get_params())
    engine, metric = learner.engine, trainer.metric

    def validate() -> float:
        assert valid is not None
        ranks = rank_held_out(EngineScorer(engine), train, valid, top=0, n_threads=job.config.n_threads)
        return mean_of_sums(group.sum(validation_sums(ranks, metric)))

    checkpointer = None
    if job.checkpoint is not None:
        place = replace(job.checkpoint, folder=f"{job.checkpoint.folder}/worker-{group.rank}")
        checkpointer = SharedCheckpointer(place, job.identity | {"worker": group.rank}, group=group)
    engine.compile()
    history = trainer.run(
        learner,
        None if valid is None else validate,
        checkpointer=checkpointer,
        resume=job.resume,
        callbacks=[] if note is None else [note],
    )
    users, items = engine.release()
    return WorkerResult(users, items if group.rank == 0 else None, history)


def check_version(expected: str) -> None:
    """Raise a `DataError` on a machine with another version of dpcml."""
    if version() != expected:
        import socket

        raise DataError(
            f"{socket.gethostname()} has dpcml {version()}, the training was started by dpcml {expected}: install the"
            " same version on all machines"
        )


class SharedLearner:
    """An engine on a part of the users, whose epochs end with the same items and the same loss on all workers."""

    def __init__(self, job: TrainingJob, group: Group, train: Interactions) -> None:
        self._share = train.n_positives / job.positives
        self._group = group
        alone = job.init is None
        self.engine = job.model.make_engine(train) if alone else _shared_engine(job, group, train)

    def compile(self) -> None:
        """Compile the kernel, or load it from the cache on disk."""
        self.engine.compile()

    def epoch(self, number: int, rate: float, report: Callable[[float], None] | None = None) -> float:
        """Train on every positive of this worker once; return the loss of all."""
        loss = self.engine.epoch(number, rate, report)
        return float(self._group.sum(np.array([self._share * loss]))[0])

    def state(self) -> dict[str, Array]:
        """Return the arrays of this worker that training changes."""
        return self.engine.state()

    def learned(self) -> list[str]:
        """Return the names of the arrays that make up the model."""
        return self.engine.learned()


def _shared_engine(job: TrainingJob, group: Group, train: Interactions) -> SharedEngine:
    init = job.init
    assert init is not None
    config = replace(job.config, seed=(job.config.seed + group.rank * SEEDS) % 2**64)
    counts = job.model.vector_counts(train.per_user)
    users = repeat_first(init.users(train, counts, group.rank), counts)
    n_batches = -(-train.n_positives // config.batch_size)
    sync = ItemSync(group, job.sync_every, n_batches, config.items_on_sphere, job.sync_power)
    items = init.vectors.astype(np.float32)
    return SharedEngine(train, users, items, config, per_item=job.per_item, mean_weight=job.mean_weight, sync=sync)


class SharedCheckpointer(Checkpointer):
    """A checkpoint per worker; all workers write at the same epochs, and go on from one that all of them have."""

    def __init__(self, settings: Checkpoint, identity: dict[str, Any], *, group: Group) -> None:
        super().__init__(settings, identity)
        self._group = group
        self._common: tuple[dict[str, Array], dict[str, Any]] | None = None

    def due(self, epoch: int) -> bool:
        """Return whether a checkpoint is due: where one worker finds so, for all of them."""
        return bool(largest(self._group, super().due(epoch)))

    def exists(self) -> bool:
        """Return whether there is an epoch of which all workers have a sound checkpoint."""
        mine: dict[int, tuple[dict[str, Array], dict[str, Any]]] = {}
        for path in (self.previous, self.path):
            if path.exists():
                try:
                    found = self._read(path)
                except DamagedCheckpointError:
                    continue
                mine[int(found[1]["epoch"])] = found
        last = -largest(self._group, -max(mine, default=0))
        self._common = mine.get(last)
        return not largest(self._group, self._common is None)

    def read(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the checkpoint that `exists` has found."""
        assert self._common is not None
        self._epoch = int(self._common[1]["epoch"])
        return self._common
