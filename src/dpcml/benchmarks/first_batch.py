"""From the start of a process to its first batch: with nothing compiled, and with kernels cached on disk."""

from __future__ import annotations

import tempfile
import time
from typing import Any

import numpy as np

from dpcml.benchmarks.process import received, reply, run_child
from dpcml.benchmarks.setting import Setting

_SHAPE = (64, 128)  # users, items of the data: one batch, so that only starting up counts


def first_batch_seconds(setting: Setting, *, cold: bool = True) -> dict[str, float]:
    """Return ``first_call_seconds`` (empty kernel cache) and ``warm_first_call_seconds`` (the next process).

    Parameters
    ----------
    setting
        Decides which kernels are needed.
    cold
        Whether to compile everything anew; else both come from the user's own cache.
    """
    sent = {"n_vectors": setting.n_vectors, "dim": setting.dim, "n_candidates": setting.n_candidates}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NUMBA_CACHE_DIR": folder} if cold else {}
        first, second = (run_child("dpcml.benchmarks.first_batch", sent, environment)["seconds"] for _ in range(2))
    return {"first_call_seconds": first, "warm_first_call_seconds": second}


def train_one_batch(**sizes: Any) -> None:
    """Fit a model on data that is one batch long, as a user's first call would.

    Examples
    --------
    >>> train_one_batch(n_vectors=2, dim=8, n_candidates=3)
    """
    from dpcml import DPCML, Interactions

    data = Interactions.from_csr(np.random.default_rng(0).random(_SHAPE) < 0.03)
    DPCML(**sizes, batch_size=512, epochs=1, init="random").fit(data)


if __name__ == "__main__":
    wish = received()
    began = wish.pop("started")
    train_one_batch(**wish)
    reply(seconds=time.monotonic() - began)
