"""Measurements that need a process of their own: start to first batch, peak memory, a set number of BLAS threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcml.utils.errors import DpcmlError


class ChildError(DpcmlError):
    """A measurement's process failed."""


def run_child(
    module: str, arguments: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run ``python -m module`` on arguments given as JSON; returns the JSON object that it prints last.

    The child is told when it was started, ``started``, on the clock of `time.monotonic`, which all processes share.

    Examples
    --------
    >>> run_child("dpcml.benchmarks.peak", {"size": 64, "seconds": 0.01})["gflops"] > 0
    True
    """
    sent = json.dumps({**arguments, "started": time.monotonic()})
    done = subprocess.run(
        [sys.executable, "-m", module, sent],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise ChildError(f"python -m {module} ended with code {done.returncode}: {said[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def received() -> dict[str, Any]:
    """Return the arguments that `run_child` sent to this process."""
    arguments: dict[str, Any] = json.loads(sys.argv[1])
    return arguments


def reply(**figures: Any) -> None:
    """Hand figures back to `run_child`."""
    sys.stdout.write(json.dumps(figures) + "\n")


def resident_bytes(*, peak: bool) -> int:
    """Return this process's resident memory, now or at its highest.

    Linux's own count is preferred: ``getrusage`` starts from the size of the process that started this one.

    Examples
    --------
    >>> resident_bytes(peak=True) > 10**6
    True
    """
    status = Path("/proc/self/status")
    if status.exists():
        name = "VmHWM:" if peak else "VmRSS:"
        line = next(line for line in status.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
