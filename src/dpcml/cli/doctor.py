"""``dpcml doctor``: what this installation has, and where it looks."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata, util
from typing import Any

from dpcml.cli.console import AsJson

NEEDED = ("numpy", "scipy", "numba", "polars", "narwhals", "safetensors", "typer", "rich")
EXTRAS = {
    "neural": "torch", "peers": "implicit", "plots": "matplotlib", "tune": "optuna", "serve": "fastapi", "ray": "ray",
}  # fmt: skip


def doctor(as_json: AsJson = False) -> None:
    """Show versions, threads, the kernel cache and where data sets are found."""
    found = _findings()
    if as_json:
        print(json.dumps(found))
        return
    for title, lines in found.items():
        print(title)
        for name, value in lines.items():
            print(f"  {name:<14} {value}")


def _findings() -> dict[str, dict[str, Any]]:
    from dpcml.threads import thread_count

    setting = os.environ.get("DPCML_THREADS", "not set")
    return {
        "dpcml": {"version": metadata.version("dpcml"), "python": platform.python_version()},
        "packages": {name: metadata.version(name) for name in NEEDED},
        "extras": {extra: _version(module, extra) for extra, module in EXTRAS.items()},
        "threads": {"cores": os.cpu_count(), "used": thread_count(), "DPCML_THREADS": setting},
        "kernels": _kernels(),
        "data": _data(),
    }


def _version(module: str, extra: str) -> str:
    if util.find_spec(module) is None:
        return f"not installed: pip install 'dpcml[{extra}]'"
    return metadata.version(module)


def _kernels() -> dict[str, Any]:
    """Say where compiled kernels are kept: a place that cannot be written means compiling in every process."""
    from numba.core.caching import FunctionCache

    from dpcml.kernels.random import shuffle

    try:
        place = FunctionCache(shuffle.py_func).cache_path  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        return {"cache": f"none, kernels are compiled in every process ({error})"}
    entries = os.scandir(place) if os.path.isdir(place) else ()  # noqa: PTH112
    size = sum(entry.stat().st_size for entry in entries if entry.name.endswith((".nbc", ".nbi")))
    return {"cache": place, "size": f"{size / 2**20:.1f} MB", "written": os.access(place, os.W_OK)}


def _data() -> dict[str, Any]:
    from dpcml.data.catalog.find import locate
    from dpcml.data.catalog.sets import CATALOG

    places = {name: locate(name) for name in CATALOG}
    here = {name: str(place) if place else "not on this machine" for name, place in places.items()}
    return {"DPCML_DATA": os.environ.get("DPCML_DATA", "not set"), **here, "executable": sys.executable}
