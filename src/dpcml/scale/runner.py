"""`RayRunner`: trains a model on Ray workers, and starts them again from the last checkpoint when one is lost."""

from __future__ import annotations

import os
import shutil
import time
import uuid
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.data.shards import Place, received, to_send
from dpcml.models.multi_interest import MultiInterest
from dpcml.scale.collective import POWER, Alone, LostWorkerError, RayGroup
from dpcml.scale.engine import weight_mean
from dpcml.scale.init import init_items, sample
from dpcml.scale.worker import TrainingJob, WorkerResult, check_version, run
from dpcml.training.progress import Progress
from dpcml.training.trainer import FitOptions, History, Trainer
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.checks import at_least, share
from dpcml.utils.cluster import ray_session
from dpcml.utils.errors import DataError, DpcmlError, ParameterError
from dpcml.utils.files import full_path
from dpcml.utils.packages import version
from dpcml.utils.threads import thread_count

LEAST_BATCH = 32  # positives in a batch of a worker
ENOUGH_BATCHES = 2**12  # of a worker in an epoch: fewer updates of the items cost accuracy
RESTARTS = 10  # of all workers in one training, after one was lost
WAIT_SECONDS = 600.0  # for the cores of a machine that replaces a lost one
POLL_SECONDS = 0.5  # between two looks at the progress


class WorkerLostWarning(UserWarning):
    """A worker was lost; training went on from the last checkpoint."""


@dataclass(frozen=True)
class RayRunner:
    """Trains DPCML, CML and GFJA on Ray: users are shared out among workers, items are known to all of them.

    A worker runs the engine on its users, on little data with batches of its share of ``batch_size``. Every
    ``sync_every`` of them the workers exchange how they have moved the items. The same seed, workers and interval give
    the same bits; one worker gives those of a training in this process.
    When a worker or its machine is lost, all of them start again from the last checkpoint, for which ``fit`` needs a
    folder that all machines share.

    Parameters
    ----------
    workers
        Processes; each has ``n_threads`` of the model, by default the cores divided by the workers.
    address
        Of a Ray cluster, see `dpcml.utils.cluster.ray_session`; by default Ray is started on this machine.
    sync_every
        Batches of each worker between two exchanges; by default so many that a worker has seen as many positives as
        there are items. Then an exchange costs about the same per positive, however large the catalogue is.
    sync_power
        The movements of an item are added up and divided by the number of workers that moved it to this power, from 0
        (their sum) to 1 (their mean).

    Examples
    --------
    >>> RayRunner(workers=4).interval(n_items=5000, batch_size=256)
    20
    >>> RayRunner(workers=0)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: workers=0: must be a whole number of at least 1
    """

    workers: int
    address: str | None = None
    sync_every: int | None = None
    sync_power: float = POWER

    def __post_init__(self) -> None:
        at_least("workers", self.workers, 1)
        share("sync_power", self.sync_power)
        if self.sync_every is not None:
            at_least("sync_every", self.sync_every, 1)

    def interval(self, n_items: int, batch_size: int) -> int:
        """Return the batches between two exchanges."""
        return self.sync_every or max(1, round(n_items / batch_size))

    def sample(self, train: Interactions) -> IntArray:
        """Return the users by whom numbers of vectors and initial items are found; all of them for one worker."""
        return np.arange(train.n_users) if self.workers == 1 else sample(train)

    def __call__(
        self, model: MultiInterest, train: Interactions, valid: Interactions | None, options: FitOptions
    ) -> tuple[FloatArray, FloatArray, History]:
        """Train a model and return the vectors of users and items, and the history; see `Recommender.fit`."""
        if options.callbacks:
            raise ParameterError("callbacks do not apply on a cluster: leave them out, or train in this process")
        cuts = partition(train, self.workers)
        threads = model.n_threads or max(1, thread_count() // self.workers)
        job = _job(self, model, train, valid, options, threads)
        with ray_session(self.address, cores=self.workers * threads) as ray:
            check_cores(ray, self.workers, threads)
            parts = [
                [None if one is None else ray.put(to_send(one.users_between(first, last))) for one in (train, valid)]
                for first, last in pairwise(cuts)
            ]
            progress = Progress(_last_epoch(model), positives=train.n_positives, shown=options.progress)
            with progress:
                trained = _Workers(ray, parts, threads, progress).train(job)
        items = trained[0].items
        assert items is not None
        return np.concatenate([one.users for one in trained]), items, trained[0].history


def partition(train: Interactions, workers: int) -> list[int]:
    """Return the first user of each worker, and the number of users: consecutive rows with about as many positives.

    Examples
    --------
    >>> partition(Interactions.from_csr(np.ones((6, 4))), 3)
    [0, 2, 4, 6]
    """
    wanted = np.linspace(0, train.n_positives, workers + 1)
    cuts = np.searchsorted(train.indptr, wanted)
    cuts[0], cuts[-1] = 0, train.n_users
    if (np.diff(train.indptr[cuts]) == 0).any():
        cuts[1:-1] = _moved_back(cuts, np.flatnonzero(train.per_user), f"workers={workers}: {train!r}")
    return [int(cut) for cut in cuts]


def _moved_back(cuts: IntArray, active: IntArray, source: str) -> IntArray:
    """Return the inner cuts, moved back where a user has more than a fair part, so that each part has positives.

    Examples
    --------
    >>> _moved_back(np.array([0, 2, 2, 4]), np.arange(4), "four users").tolist()
    [1, 2]
    """
    parts = np.arange(len(cuts))
    if len(active) < parts[-1]:
        raise ParameterError(f"{source} are too few for so many workers; take fewer")
    before = np.searchsorted(active, cuts)  # users with positives before each cut
    spare = np.minimum.accumulate((before - parts)[::-1])[::-1]
    return active[(np.maximum(spare, 0) + parts)[1:-1]]


def _job(
    runner: RayRunner,
    model: MultiInterest,
    train: Interactions,
    valid: Interactions | None,
    options: FitOptions,
    threads: int,
) -> TrainingJob:
    checkpointer = options.checkpointer({})
    checkpoint = None
    if checkpointer is not None:
        checkpoint = replace(checkpointer.settings, folder=str(full_path(checkpointer.settings.folder)))
        if not options.resume:
            for old in Path(checkpoint.folder).glob("worker-*"):
                shutil.rmtree(old, ignore_errors=True)
    batch_size = share_of_batch(model.batch_size, runner.workers, train.n_positives)
    sync_every = runner.interval(train.n_items, batch_size)
    identity = {
        **model.identity(),
        "n_threads": None,
        "data": train.content_hash,
        "valid": None if valid is None else valid.content_hash,
        "workers": runner.workers,
        "worker_batch_size": batch_size,
        "sync_every": sync_every,
        "sync_power": runner.sync_power,
    }
    return TrainingJob(
        model=model,
        init=None if runner.workers == 1 else init_items(model, train),
        config=replace(model.train_config(train), n_threads=threads, batch_size=batch_size),
        per_item=train.per_item,
        mean_weight=weight_mean(train),
        positives=train.n_positives,
        sync_every=sync_every,
        sync_power=runner.sync_power,
        checkpoint=checkpoint,
        resume=options.resume,
        identity=identity,
        version=version(),
    )


def share_of_batch(batch_size: int, workers: int, positives: int) -> int:
    """Return the batch size of each worker: its share of a batch, so that items move as often as in one process.

    Where a worker has `ENOUGH_BATCHES` with larger ones, it takes those: they are faster on many threads.

    Examples
    --------
    >>> share_of_batch(256, 1, 10**5), share_of_batch(256, 3, 10**5), share_of_batch(256, 100, 10**5)
    (256, 86, 32)
    >>> share_of_batch(256, 3, 10**7)
    256
    """
    least = max(LEAST_BATCH, -(-batch_size // workers), positives // workers // ENOUGH_BATCHES)
    return min(batch_size, least)


def _last_epoch(model: MultiInterest) -> int:
    return Trainer.from_params(model.get_params()).last_epoch


def check_cores(ray: Any, workers: int, threads: int) -> None:
    """Raise a `ParameterError` if the cluster has too few cores for all workers at once."""
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < workers * threads:
        raise ParameterError(
            f"{workers} workers with {threads} threads need {workers * threads} cores, the cluster has {cores}: take"
            " fewer workers (--workers) or threads (--threads)"
        )


class TrainingWorker:
    """The process of a worker: an actor of Ray."""

    def __init__(self, rank: int, size: int, name: str, threads: int) -> None:
        os.environ["DPCML_THREADS"] = str(threads)
        self._rank, self._size, self._name = rank, size, name
        self._history = History()

    def ready(self, expected: str) -> None:
        """Check that the worker can work."""
        check_version(expected)

    def train(self, job: TrainingJob, *parts: Interactions | Place | None) -> WorkerResult:
        """Train in step with the others, on a training and a validation part of its users."""
        try:
            train, valid = map(received, parts)
            assert train is not None
            group = Alone() if self._size == 1 else RayGroup(self._rank, self._size, self._name)
            return run(job, group, train, valid, note=self._note)
        except MemoryError as error:
            raise DataError(out_of_memory(str(error))) from None

    def _note(self, history: History) -> None:
        self._history = History(history.metric, list(history.epochs))

    def history(self) -> History:
        """Return the epochs so far."""
        return self._history


def out_of_memory(why: str) -> str:
    """Return what to say when a worker has run out of memory."""
    reason = " ".join(why.split())[:200]
    return (
        f"a worker ran out of memory ({reason}): its users' vectors and positives do not fit; take more workers on more"
        " machines, or lower dim or n_vectors; checkpoints so far are kept"
    )


class _Workers:
    """Starts the workers of a training, watches them, and starts them again when one is lost."""

    def __init__(self, ray: Any, parts: Sequence[Sequence[Any]], threads: int, progress: Progress) -> None:
        self._ray, self._parts, self._threads, self._progress = ray, parts, threads, progress

    def train(self, job: TrainingJob) -> list[WorkerResult]:
        """Return what each worker has learned."""
        for attempt in range(RESTARTS + 1):
            try:
                return self._attempt(job)
            except LostWorkerError as error:
                if attempt == RESTARTS:
                    kept = "" if job.checkpoint is None else f"; {job.checkpoint.folder} holds the run, see --resume"
                    raise DataError(f"workers were lost {RESTARTS + 1} times, at last: {error}{kept}") from None
                warnings.warn(f"{error}; going on from the last checkpoint", WorkerLostWarning, stacklevel=2)
                job = replace(job, resume=job.checkpoint is not None)
        raise AssertionError("unreachable")

    def _attempt(self, job: TrainingJob) -> list[WorkerResult]:
        name = f"dpcml-{uuid.uuid4().hex}"
        actors = self._start(name, job.version)
        try:
            shared = self._ray.put(job)
            runs = [one.train.remote(shared, *part) for one, part in zip(actors, self._parts, strict=True)]
            return self._results(actors, runs)
        finally:
            self._end(actors)

    def _start(self, name: str, expected: str) -> list[Any]:
        """Return workers that are all there; one that dies before it has begun is replaced, and no loss of training.

        Ray takes seconds to see that a node is dead, and may place a worker there meanwhile.
        """
        size, deadline = len(self._parts), time.monotonic() + WAIT_SECONDS
        kind = self._ray.remote(num_cpus=self._threads, max_concurrency=2, scheduling_strategy="SPREAD")(TrainingWorker)
        while True:
            actors = [kind.remote(rank, size, name, self._threads) for rank in range(size)]
            try:
                self._ready(actors, expected, deadline)
                return actors
            except LostWorkerError as error:
                self._end(actors)
                if time.monotonic() > deadline:
                    raise DataError(f"workers do not start: {error}; go on with --resume") from None
                time.sleep(POLL_SECONDS)
            except BaseException:
                self._end(actors)
                raise

    def _end(self, actors: Sequence[Any]) -> None:
        for one in actors:
            self._ray.kill(one)

    def _ready(self, actors: Sequence[Any], expected: str, deadline: float) -> None:
        checks = [one.ready.remote(expected) for one in actors]
        left = max(0.0, deadline - time.monotonic())
        started, _ = self._ray.wait(checks, num_returns=len(checks), timeout=left)
        if len(started) < len(checks):
            cores = int(self._ray.cluster_resources().get("CPU", 0))
            raise DataError(
                f"{len(checks) - len(started)} of {len(checks)} workers found no machine in {WAIT_SECONDS:.0f} s, the"
                f" cluster has {cores} cores now: add machines and go on with --resume"
            )
        for check in checks:
            self._get(check)

    def _results(self, actors: Sequence[Any], runs: Sequence[Any]) -> list[WorkerResult]:
        waiting = list(runs)
        while waiting:
            done, waiting = self._ray.wait(waiting, num_returns=1, timeout=POLL_SECONDS)
            for one in done:
                self._get(one)
            if not done:
                self._show(actors[0])
        return [self._get(one) for one in runs]

    def _show(self, first: Any) -> None:
        try:
            history = self._ray.get(first.history.remote(), timeout=POLL_SECONDS)
        except (self._ray.exceptions.RayError, TimeoutError):
            return  # its own run will say why
        if len(history.epochs) > self._progress.done:
            self._progress.done = len(history.epochs) - 1
            self._progress.epoch_done(history)

    def _get(self, one: Any) -> Any:
        """Return a result; an error of the worker as it is, the loss of a worker as `LostWorkerError`."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(one)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, (DpcmlError, LostWorkerError)):
                raise cause from None
            raise
        except (errors.OutOfMemoryError, errors.RayActorError, errors.ObjectLostError) as error:
            text = " ".join(str(error).split())
            if isinstance(error, errors.OutOfMemoryError) or "running low on memory" in text:
                raise DataError(out_of_memory(text)) from None
            raise LostWorkerError(f"a worker was lost ({text[:300]})") from None
