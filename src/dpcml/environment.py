"""The environment that dpcml runs in: versions, threads, compiled kernels, data sets, extras."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

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
