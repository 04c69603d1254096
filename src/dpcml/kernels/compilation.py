"""Compiler options of the kernels, and a cache on disk that notices an edit of any kernel source."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

# Sums may be reordered for SIMD, in the same way on every thread. NaN and infinity keep their meaning.
REORDER = {"reassoc", "contract", "nsz", "arcp"}
# For scores that are known to be numbers: comparisons need not handle NaN.
NO_NAN = {"nnan", "nsz", "contract"}
# For kernels of the training loop. Without reference counts (_nrt) an epoch takes a third less time; it is safe because
# the caller keeps all arrays alive during the call and the kernels allocate none.
TRAINING: dict[str, Any] = {"nogil": True, "fastmath": REORDER, "error_model": "numpy", "_nrt": False}

SOURCE_HASH = zlib.crc32(b"".join(source.read_bytes() for source in sorted(Path(__file__).parent.glob("*.py"))))


class Index(IndexDataCacheFile):
    """The list of cached signatures; empty if another version wrote it, whose types have moved or gone."""

    def _load_index(self) -> dict[Any, Any]:
        try:
            found: dict[Any, Any] = super()._load_index()
        except (ImportError, AttributeError):  # raised by pickle, before Numba compares the hash of the sources
            return {}
        return found


class SourceHashCache(FunctionCache):
    """Numba's cache on disk, valid as long as `SOURCE_HASH` is the same.

    By itself Numba checks only the file of the cached function, not the files of the functions that it calls.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = Index(self._cache_path, self._impl.filename_base, SOURCE_HASH)


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function at its first call and caches it until any kernel source changes.

    Parameters
    ----------
    **options
        Options of ``numba.njit``.

    Examples
    --------
    >>> from dpcml.kernels.sampling import nth_negative
    >>> isinstance(nth_negative._cache, SourceHashCache)
    True
    """

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        dispatcher._cache = SourceHashCache(function)
        return dispatcher

    return compiled
