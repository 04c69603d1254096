"""The environment that dpcml runs in: versions, threads, compiled kernels, data sets, extras."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import numpy as np

from dpcml.data.datasets import DATASETS, DatasetStore
from dpcml.kernels.compilation import kernel_cache_folder
from dpcml.utils.packages import version as own_version
from dpcml.utils.threads import thread_count

DEVELOPMENT = "dev"  # extra for work on dpcml itself


def describe_environment() -> dict[str, Any]:
    """Return versions, threads, kernel cache, local data sets and missing packages of each extra.

    Examples
    --------
    >>> found = describe_environment()
    >>> found["threads"] >= 1, "numpy" in found["packages"]
    (True, True)
    """
    required = _requirements()
    return {
        "python": platform.python_version(),
        "dpcml": own_version(),
        "packages": {name: _installed(name) for name in required.get("", [])},
        "threads": thread_count(),
        "cores": os.cpu_count() or 1,
        "kernel_cache": _kernel_cache(),
        "data": {name: _text(DatasetStore().locate(name)) for name in DATASETS},
        "extras": {
            extra: [name for name in names if _installed(name) is None]
            for extra, names in required.items()
            if extra not in ("", DEVELOPMENT)
        },
    }


def warm_kernels() -> None:
    """Compile the kernels that the default model trains, evaluates and recommends with, and keep them on disk.

    For images of containers, and where the first training must not wait. Models with other settings compile theirs at
    their first training.
    """
    from dpcml.data.interactions import Interactions
    from dpcml.data.split import by_ratio
    from dpcml.evaluation.evaluate import evaluate
    from dpcml.models.adaptive import RATES
    from dpcml.models.blend import Blend
    from dpcml.models.dpcml import DPCML
    from dpcml.models.ease import EASE

    likes = np.random.default_rng(0).random((50, 400)) < 0.5  # so many that users get all vectors they may have
    split = by_ratio(Interactions.from_csr(likes), (0.6, 0.2, 0.2), 0)
    for rate in (None, RATES[-1]):
        model = Blend([DPCML(vector_rate=rate, epochs=1), EASE()]).fit(split.train, split.valid, progress=False)
    evaluate(model, split.train, split.test, valid=split.valid)
    model.recommend(0, explain=True)
    model.recommend_new([0, 1, 2], explain=True)


def _requirements() -> dict[str, list[str]]:
    """Return the required packages of each extra; the key of the base install is an empty string."""
    found: dict[str, list[str]] = {}
    for line in requires("dpcml") or []:
        name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name is not None and name.group() != "dpcml":
            found.setdefault(extra.group(1) if extra else "", []).append(name.group())
    return found


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _kernel_cache() -> dict[str, Any]:
    folder = kernel_cache_folder()
    files = [] if folder is None else list(folder.rglob("*.nbc"))
    return {
        "folder": _text(folder),
        "writable": folder is not None,
        "kernels": len(files),
        "bytes": sum(file.stat().st_size for file in files),
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
