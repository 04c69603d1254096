"""Runners: what trains a multi-interest model, in this process or elsewhere, while another one compiles its kernel.

Numba compiles one function at a time in a process, most of it in Python. Another process (``python -m`` of this module)
leaves the kernel in the cache on disk, from where the engine loads it. If it fails, the engine compiles by itself.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import dpcml
from dpcml.data.interactions import Interactions
from dpcml.kernels.compilation import needs_compiler
from dpcml.kernels.minibatch import minibatch_kernel
from dpcml.kernels.simd import padded
from dpcml.retrieval.exact import nearest_scores
from dpcml.training.engine import Engine, TrainConfig
from dpcml.training.progress import working
from dpcml.training.samplers import SAMPLERS
from dpcml.training.trainer import FitOptions, History, Trainer
from dpcml.utils.arrays import FloatArray, IntArray
from dpcml.utils.threads import thread_count

if TYPE_CHECKING:
    from dpcml.models.multi_interest import MultiInterest


class Runner(Protocol):
    """Trains a model that the engine trains, see `dpcml.scale.RayRunner`."""

    def __call__(
        self, model: Any, train: Interactions, valid: Interactions | None, options: FitOptions
    ) -> tuple[FloatArray, FloatArray, History]:
        """Return the trained vectors of users and items, and the history."""


@dataclass(frozen=True)
class RunOptions(FitOptions):
    """The keywords of ``fit``, with the runner."""

    runner: Runner | None = None  # None: in this process


def runner_of(options: FitOptions) -> Runner | None:
    """Return the runner that was asked for, if any.

    Examples
    --------
    >>> runner_of(FitOptions()) is None
    True
    """
    return options.runner if isinstance(options, RunOptions) else None


def searched(
    runner: Runner | None, train: Interactions, valid: Interactions | None
) -> tuple[Interactions, Interactions | None]:
    """Return the users by whom settings are found: all of them, or the sample of a runner for large data.

    Examples
    --------
    >>> import numpy as np
    >>> searched(None, Interactions.from_csr(np.eye(3)), None)
    (Interactions(3 users, 3 items, 3 positives), None)
    """
    sample = getattr(runner, "sample", None)  # rows of users, of a runner for data of any size
    if sample is None:
        return train, valid
    rows = sample(train)
    return train.take_users(rows), None if valid is None else valid.take_users(rows)


@dataclass(frozen=True)
class EngineScorer:
    """Scores of an engine in the middle of training."""

    engine: Engine

    def score(self, users: IntArray) -> FloatArray:
        """Return scores of shape (users, items)."""
        return nearest_scores(self.engine.user_vectors(users), self.engine.item_vectors())


def train_here(
    model: MultiInterest, train: Interactions, valid: Interactions | None, options: FitOptions
) -> tuple[FloatArray, FloatArray, History]:
    """Train in this process; return vectors of users and items, and the history."""
    compiler = model.compile_ahead(train)
    doing = "initial vectors" if compiler is None else "initial vectors, and compiling kernels, once per machine"
    with working(doing, options.progress):
        engine = model.make_engine(train)
        if compiler is not None:
            compiler.wait()
    trainer = Trainer.from_params(model.get_params())
    history = trainer.fit(engine, EngineScorer(engine), train, valid, options, model.identity())
    return *engine.release(), history


def compile_in_background(config: TrainConfig, n_vectors: int, dim: int) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles the kernel of an engine, unless it was compiled before or there is only one core.

    Parameters
    ----------
    config
        Hyper-parameters of the engine.
    n_vectors, dim
        Vectors of a user, and their dimension.

    Returns
    -------
    Popen or None
        The process, to wait for; None if there is none.
    """
    options = n_vectors, padded(dim), config.sampler.choice, config.optimizer, config.diversity_per_pair
    if thread_count() < 2 or getattr(sys, "frozen", False) or not needs_compiler(minibatch_kernel(*options)):
        return None
    return _start(tuple(map(str, options)))


@cache  # one process for each kernel, however many models wait for it
def _start(options: tuple[str, ...]) -> subprocess.Popen[bytes] | None:
    package = str(Path(dpcml.__file__).parents[1])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", __name__, *options]
    silent = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": paths}, stdin=silent, stdout=silent, stderr=silent
        )
    except OSError:  # no room for another process
        return None


def compile_kernel(n_vectors: int, width: int, choice: int, optimizer: Any, per_pair: bool) -> None:
    """Compile a kernel with arguments of the types that every engine has, and leave it in the cache on disk.

    Examples
    --------
    >>> from dpcml.training.samplers import CLOSEST
    >>> compile_kernel(2, 8, CLOSEST, "adam", False)
    >>> needs_compiler(minibatch_kernel(2, 8, CLOSEST, "adam", False))
    False
    """
    sampler = next(SAMPLERS[name] for name in SAMPLERS if SAMPLERS[name].choice == choice)
    config = TrainConfig(
        sampler=sampler, n_candidates=2, n_negatives=1, margin=1.0, pull=0.0, diversity=(0.0, 1.0),
        diversity_weight=0.0, diversity_per_pair=per_pair, users_on_sphere=True, items_on_sphere=False,
        optimizer=optimizer, batch_size=1, max_user_run=1, seed=0, average=0.0, n_threads=1,
    )  # fmt: skip
    users, items = np.zeros((2, n_vectors, width), np.float32), np.zeros((2, width), np.float32)
    Engine(Interactions.from_csr(np.eye(2)), users, items, config).compile()


if __name__ == "__main__":
    gc.disable()  # what a compiler allocates it keeps
    compile_kernel(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5] == "True")
