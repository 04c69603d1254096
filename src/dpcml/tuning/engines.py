"""Where trials run: in this process, in several on this machine, or on Ray; all of them run `run_trial`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from dpcml.data.interactions import Interactions
from dpcml.models import create
from dpcml.tuning.trial import Outcome, Task, run_trial
from dpcml.utils.checks import at_least
from dpcml.utils.registry import Registry
from dpcml.utils.threads import thread_count


@dataclass(frozen=True)
class Share:
    """How trials share the cores: how many run at once, and how many threads each has."""

    workers: int
    threads: int


class Engine(Protocol):
    """Runs trials; used in a ``with``, which ends what it started."""

    def __enter__(self) -> Self:
        """Get ready."""

    def __exit__(self, *_: object) -> None:
        """End all workers."""

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Run trials; each is yielded as soon as it is done, in any order."""


ENGINES: Registry[Callable[[Interactions, Interactions, Share], Engine]] = Registry("engine")


def share_of(model: str, workers: int | None = None) -> Share:
    """Return how trials of a model share the cores.

    By default a model that is trained in epochs runs once per core, on one thread each: that wastes nothing on waiting.
    Others run one at a time on all cores: they are quick, and some need much memory.

    Examples
    --------
    >>> share_of("ease").workers
    1
    >>> share_of("dpcml2", workers=1) == Share(1, thread_count())
    True
    """
    cores = thread_count()
    if workers is None:
        workers = cores if "epochs" in create(model).get_params() else 1
    at_least("workers", workers, 1)
    return Share(workers, max(1, cores // workers))


class InProcess:
    """One trial after the other in this process, on all threads."""

    def __init__(self, train: Interactions, valid: Interactions, share: Share) -> None:
        self.train, self.valid = train, valid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        """Run trials in order."""
        for task in tasks:
            yield task, run_trial(task, self.train, self.valid)


@ENGINES.register("local")
def local(train: Interactions, valid: Interactions, share: Share) -> Engine:
    """Return worker processes, or this process where one trial runs at a time."""
    from dpcml.tuning.processes import Processes

    kind: Any = InProcess if share.workers == 1 else Processes
    made: Engine = kind(train, valid, share)
    return made


@ENGINES.register("ray")
def ray(train: Interactions, valid: Interactions, share: Share) -> Engine:
    """Return workers of Ray, on this machine or on the cluster that it knows of."""
    from dpcml.tuning.on_ray import OnRay

    return OnRay(train, valid, share)


@contextmanager
def threads_of_children(threads: int) -> Iterator[None]:
    """Let processes that are started within it use so many threads each, in our kernels and in BLAS."""
    names = ("DPCML_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
