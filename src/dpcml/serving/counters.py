"""Numbers that the worker processes of a server share, in memory that no full disk can take away."""

from __future__ import annotations

import mmap
import os
import tempfile
from contextlib import suppress
from multiprocessing import reduction
from typing import Any

import numpy as np

from dpcml.utils.arrays import FloatArray

COLUMNS = 4096  # numbers per worker


class CounterBlock:
    """A table of numbers with one row per worker. Every worker writes its own row and reads all of them.

    The memory has no name and is reserved at once, so that neither a full nor a missing temporary folder can end a
    worker. The block can be passed to a process that `multiprocessing` starts.

    Parameters
    ----------
    rows
        Number of workers.

    Examples
    --------
    >>> block = CounterBlock(2)
    >>> block.values[1, 0] += 3
    >>> float(block.values[:, 0].sum())
    3.0
    """

    def __init__(self, rows: int = 1) -> None:
        self._rows = rows
        self._file = _reserve(8 * rows * COLUMNS)
        self.values = self._map()

    def _map(self) -> FloatArray:
        memory = mmap.mmap(self._file, 8 * self._rows * COLUMNS)
        return np.frombuffer(memory, dtype=np.float64).reshape(self._rows, COLUMNS)

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self._rows, "file": reduction.DupFd(self._file)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._rows, self._file = state["rows"], state["file"].detach()
        self.values = self._map()

    def __del__(self) -> None:
        with suppress(AttributeError, OSError, TypeError):  # when the interpreter ends, parts of it are gone
            os.close(self._file)  # the mapping stays valid for as long as an array uses it


def _reserve(size: int) -> int:
    """Return the descriptor of a nameless file whose blocks are allocated, so that writing to it cannot fail."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("dpcml-counters")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.posix_fallocate(file, 0, size)
    return file
