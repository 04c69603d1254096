"""Memory: how much is free, and an error before an allocation that cannot succeed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from dpcml.utils.errors import ParameterError

CGROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """Return the memory that this process can still get, swap included; None where the system does not say.

    In a container it is what the limit of the container leaves.

    Examples
    --------
    >>> free = free_bytes()
    >>> free is None or free > 0
    True
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        free = sizes["MemAvailable"] + sizes["SwapFree"]
    except (OSError, ValueError, KeyError, IndexError):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError):
            return None
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        limit = int((CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((CGROUP / "memory.current").read_text(encoding="ascii"))
        free = min(free, max(limit - used, 0))
    return free


def check_memory(what: str, needed: int, way_out: str) -> None:
    """Raise `ParameterError` if something needs more memory than there is.

    Parameters
    ----------
    what
        What needs it.
    needed
        Estimate in bytes.
    way_out
        What the user can change.

    Examples
    --------
    >>> check_memory("the table", 2**70, "make it smaller")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: the table needs about 1,180,591,620,717 GB of memory, ... GB are free; ...
    """
    free = free_bytes()
    if free is not None and needed > free:
        raise ParameterError(
            f"{what} needs about {needed / 1e9:,.0f} GB of memory, {free / 1e9:,.1f} GB are free; {way_out}"
        )
