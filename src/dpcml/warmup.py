"""Kernels of the default model, compiled by other processes while the first training imports packages and reads data.

Numba compiles one function at a time in a process, so two more processes share the work: one fits the models that the
engine trains to a small world, the other one the others. No kernel is compiled twice, because who needs one that
another process compiles waits for it, see `dpcml.kernels.compilation`. This module imports nothing that takes long: the
processes are to start first.
"""

from __future__ import annotations

import atexit
import gc
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from dpcml.utils.files import cache_folder
from dpcml.utils.threads import thread_count

if TYPE_CHECKING:
    from dpcml.models import Recommender

PACKAGE = Path(__file__).parent
PARTS = ("engine", "others")  # of the default model, one process each

ONE_THREAD = {"DPCML_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the other cores have enough to do


def start_warmup() -> bool:
    """Start processes that compile the kernels of the default model, unless that was done before or there is one core.

    Returns
    -------
    bool
        Whether processes were started. They end with this one at the latest.
    """
    if thread_count() < 2 or getattr(sys, "frozen", False):
        return False
    missing = [part for part in PARTS if (mark := mark_file(part)) is not None and not mark.exists()]
    paths = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, **ONE_THREAD}
    silent = subprocess.DEVNULL
    try:
        for part in missing:
            command = [sys.executable, "-m", __name__, part]
            process = subprocess.Popen(command, env=environment, stdin=silent, stdout=silent, stderr=silent)
            atexit.register(process.terminate)
    except OSError:  # no room for another process
        return False
    return bool(missing)


def expect_engine() -> None:
    """Tell this process that the training kernel is on its way: `fit` need not start a process for it."""
    from dpcml.kernels.compilation import expect
    from dpcml.kernels.minibatch import minibatch_kernel

    for options in _engines(_default_models()):
        expect(minibatch_kernel(*options))


def warm_up() -> None:
    """Compile the kernels that the default model trains, evaluates and recommends with, and keep them on disk.

    For images of containers, and where the first training must not wait. Models with other settings compile theirs at
    their first training.
    """
    from dpcml.models.adaptive import RATES
    from dpcml.models.blend import Blend

    for rate in (RATES[-1], RATES[0]):  # with the largest number of vectors, and the usual one
        model = _fitted(Blend().set_params(vector_rate=rate, epochs=1))
    model.recommend(0, explain=True)
    model.recommend_new([0, 1, 2], explain=True)
    for part in PARTS:
        _mark(part)


def warm_part(part: str) -> None:
    """Compile the kernels that one of the `PARTS` of the default model is trained and evaluated with."""
    from dpcml.models.blend import Blend
    from dpcml.models.runners import compile_kernel

    models = _default_models()
    if part == "engine":
        for options in _engines(models):
            compile_kernel(*options)
    members = [one for one in models if one.takes_runner == (part == "engine")]
    _fitted(Blend(members))
    _mark(part)


def _fitted(model: Recommender) -> Recommender:
    """Return a model after a training and an evaluation on a small world, and a second training without validation."""
    import numpy as np

    from dpcml.data.interactions import Interactions
    from dpcml.data.split import by_ratio
    from dpcml.evaluation.evaluate import evaluate

    likes = np.random.default_rng(0).random((20, 250)) < 0.6  # so many that users get all vectors they may have
    split = by_ratio(Interactions.from_csr(likes), (0.6, 0.2, 0.2), 0)
    model.fit(split.train, split.valid, progress=False)
    evaluate(model, split.train, split.test, valid=split.valid)
    return model.settled().fit(split.train, progress=False)


def _default_models() -> Sequence[Recommender]:
    """Return the members of the default model, the engine's for one epoch."""
    from dpcml.models.blend import Blend

    return Blend().set_params(epochs=1).models or ()


def _engines(models: Sequence[Recommender]) -> Iterator[tuple[int, int, int, str, bool]]:
    """Yield the options of the kernels that train models, on data in which some users like many items."""
    import numpy as np

    from dpcml.data.interactions import Interactions
    from dpcml.kernels.simd import padded
    from dpcml.models.multi_interest import MultiInterest

    for member in models:
        if isinstance(member, MultiInterest):
            config = member.train_config(Interactions.from_csr(np.eye(2)))
            n_vectors = int(member.vector_counts(np.array([1000])).max())
            width = padded(member.trained_dim)
            yield n_vectors, width, config.sampler.choice, config.optimizer, config.diversity_per_pair


def mark_file(part: str) -> Path | None:
    """Return the file beside the compiled kernels that says that those of a part are there; None without a place.

    The folder is made if it is not there, as Numba makes it.

    Its name depends on what compiled code depends on, but for the processor, which takes long to ask for.
    """
    sources = b"".join(file.read_bytes() for file in sorted((PACKAGE / "kernels").glob("*.py")))
    known = f"{sys.version} {version('numba')}".encode()
    named = os.environ.get("NUMBA_CACHE_DIR")
    for folder in (Path(named) if named else None, PACKAGE / "kernels" / "__pycache__", cache_folder() / "kernels"):
        if folder is None:
            continue
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / f"{part}-{zlib.crc32(sources + known):08x}.compiled"
    return None


def _mark(part: str) -> None:
    mark = mark_file(part)
    if mark is not None:
        with suppress(OSError):
            mark.touch()


if __name__ == "__main__":
    gc.disable()  # what a compiler allocates it keeps
    warm_part(sys.argv[1])
