"""A pool of Ray actors with a saved model each, for lists and evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from dpcml import storage
from dpcml.models import Recommender
from dpcml.scale.runner import check_cores, out_of_memory
from dpcml.scale.worker import check_version
from dpcml.utils.cluster import ray_session
from dpcml.utils.errors import DataError, DpcmlError
from dpcml.utils.packages import version
from dpcml.utils.threads import thread_count

RETRIES = 10  # of a task whose worker was lost; Ray starts the worker again

Task = Callable[..., Any]  # called with the model and a task's own arguments


class ModelWorker:
    """The process of a worker: a saved model, mapped into memory, and tasks on it."""

    def __init__(self, folder: str, expected: str, threads: int) -> None:
        os.environ["DPCML_THREADS"] = str(threads)
        self._folder, self._expected = folder, expected
        self._model: Recommender | None = None

    def run(self, task: Task, arguments: tuple[Any, ...]) -> Any:
        """Return what a task gives."""
        check_version(self._expected)
        if self._model is None:
            self._model = storage.load(self._folder, check=False)
        try:
            return task(self._model, *arguments)
        except MemoryError as error:
            raise DataError(out_of_memory(str(error))) from None


def map_model(
    folder: str | Path,
    task: Task,
    arguments: Iterable[tuple[Any, ...]],
    *,
    workers: int,
    address: str | None = None,
    n_threads: int | None = None,
) -> Iterator[Any]:
    """Yield what a task gives for each of some arguments, in their order, computed by workers that have a model.

    A worker that is lost is started again, and its task is run again.

    Parameters
    ----------
    folder
        A saved model; all machines must see it there.
    task
        A function of the model and the arguments.
    arguments
        One tuple for each call.
    workers, address
        See `dpcml.scale.RayRunner`.
    n_threads
        Threads of a worker; by default the cores divided by the workers.
    """
    threads = n_threads or max(1, thread_count() // workers)
    with ray_session(address, cores=workers * threads) as ray:
        check_cores(ray, workers, threads)
        options = {"num_cpus": threads, "max_restarts": RETRIES, "max_task_retries": RETRIES}
        kind = ray.remote(**options, scheduling_strategy="SPREAD")(ModelWorker)
        actors = [kind.remote(str(folder), version(), threads) for _ in range(workers)]
        errors = ray.exceptions
        try:
            pool = ray.util.ActorPool(actors)
            yield from pool.map(lambda one, given: one.run.remote(task, given), list(arguments))
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, DpcmlError):
                raise cause from None
            raise
        except errors.OutOfMemoryError as error:
            raise DataError(out_of_memory(str(error))) from None
        except errors.RayActorError as error:
            raise DataError(
                f"workers were lost more than {RETRIES} times: {' '.join(str(error).split())[:300]}"
            ) from None
        finally:
            for one in actors:
                ray.kill(one)
