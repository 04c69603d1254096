"""What is installed here: versions, threads, compiled kernels, data, extras."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from dpcml.data.datasets import DATASETS, DatasetStore
from dpcml.utils.packages import version as own_version
from dpcml.utils.threads import thread_count

DEVELOPMENT = "dev"  # the extra that nobody needs to use dpcml


def examine() -> dict[str, Any]:
    """Return facts about this installation as plain data.

    Examples
    --------
    >>> found = examine()
    >>> found["threads"] >= 1, "numpy" in found["packages"]
    (True, True)
    """
    needed = _needed()
    return {
        "python": platform.python_version(),
        "dpcml": own_version(),
        "packages": {name: _installed(name) for name in needed.get("", [])},
        "threads": thread_count(),
        "cores": os.cpu_count() or 1,
        "kernel_cache": _kernel_cache(),
        "data": {name: _text(DatasetStore().locate(name)) for name in DATASETS},
        "extras": {
            extra: [name for name in names if _installed(name) is None]
            for extra, names in needed.items()
            if extra not in ("", DEVELOPMENT)
        },
    }


def _needed() -> dict[str, list[str]]:
    """Return the names of required packages by extra; those of the base install belong to the extra ''."""
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
    named = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(named) if named else Path(__file__).parent / "kernels" / "__pycache__"
    files = list(folder.rglob("*.nbc")) if folder.is_dir() else []
    nearest = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    return {
        "folder": str(folder),
        "writable": os.access(nearest, os.W_OK),
        "kernels": len(files),
        "bytes": sum(file.stat().st_size for file in files),
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
