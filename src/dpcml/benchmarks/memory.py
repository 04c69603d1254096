"""Peak memory of training, in a process of its own, against what must be held."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.benchmarks.process import received, reply, resident_bytes, run_child
from dpcml.benchmarks.setting import Setting
from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable

ALLOWED_FACTOR, ALLOWED_BYTES = 1.3, 400e6  # of what must be held, and for interpreter and compiler


def bench_memory(train: Interactions, setting: Setting, threads: int) -> dict[str, Any]:
    """Train one epoch in a new process and look at its memory.

    Returns
    -------
    dict
        ``peak_bytes``; ``base_bytes``: resident before the vectors were made, with data and compiler loaded;
        ``needed_bytes``: vectors, two moments and the CSR of positives; ``parameters``; ``bytes_per_parameter``: of
        the peak; ``within_bound``: whether the peak is at most 1.3 times what is needed plus 400 MB.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.npz"
        np.savez(file, indptr=train.indptr, indices=train.indices, n_items=train.n_items)
        sent = {"file": str(file), "setting": asdict(setting), "threads": threads}
        found = run_child("dpcml.benchmarks.memory", sent)
    parameters = setting.dim * (train.n_users * setting.n_vectors + train.n_items)
    needed = 3 * 4 * parameters + train.indptr.nbytes + train.indices.nbytes
    return {
        "peak_bytes": found["peak"],
        "base_bytes": found["base"],
        "needed_bytes": needed,
        "parameters": parameters,
        "bytes_per_parameter": found["peak"] / parameters,
        "within_bound": bool(found["peak"] <= ALLOWED_FACTOR * needed + ALLOWED_BYTES),
    }


def _measure(file: str, setting: Setting, threads: int) -> dict[str, int]:
    with np.load(file) as saved:
        indptr, indices, n_items = saved["indptr"], saved["indices"], int(saved["n_items"])
    train = Interactions(indptr, indices, np.arange(len(indptr) - 1), ItemTable(np.arange(n_items)))
    base = resident_bytes(peak=False)
    setting.engine(train, threads).epoch(0, setting.rate)
    return {"peak": resident_bytes(peak=True), "base": base}


if __name__ == "__main__":
    wish = received()
    wish["setting"]["diversity"] = tuple(wish["setting"]["diversity"])
    reply(**_measure(wish["file"], Setting(**wish["setting"]), wish["threads"]))
