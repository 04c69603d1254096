"""Compiler options of the kernels, and a cache on disk that notices an edit of any kernel source.

The cache is in ``$NUMBA_CACHE_DIR``, else beside the kernels, else in the user's cache folder, else among the temporary
files, whichever can be written; without any, every process compiles the kernels it needs.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from dpcml.utils.errors import ParameterError
from dpcml.utils.files import cache_folder, temporary_cache_folder

config: Any = numba.config  # it fills itself from the environment

if config.DISABLE_JIT:
    raise ParameterError("NUMBA_DISABLE_JIT=1: the kernels cannot run without Numba's compiler; unset the variable")

# Sums may be reordered for SIMD, in the same way on every thread. NaN and infinity keep their meaning.
REORDER = {"reassoc", "contract", "nsz", "arcp"}
# For scores that are known to be numbers: comparisons need not handle NaN.
NO_NAN = {"nnan", "nsz", "contract"}
# For kernels that allocate nothing. Without reference counts (_nrt) an epoch takes a third less time, and there is less
# code to compile; it is safe because the caller keeps all arrays alive during the call.
# Nobody calls kernels from C, so they need no entry for it.
PLAIN: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
TRAINING: dict[str, Any] = {"fastmath": REORDER, **PLAIN}

SOURCE_HASH = zlib.crc32(b"".join(source.read_bytes() for source in sorted(Path(__file__).parent.glob("*.py"))))


@cache
def warn_once(text: str) -> None:
    """Log one line; without a configuration of logging it goes to standard error."""
    logging.getLogger("dpcml").warning(text)


@cache
def kernel_cache_folder() -> Path | None:
    """Return the folder of compiled kernels; None if no folder can be written, which one line says.

    Examples
    --------
    >>> folder = kernel_cache_folder()
    >>> folder is None or folder.is_dir()
    True
    """
    named = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    shared = temporary_cache_folder()
    for folder in (*named, Path(__file__).parent / "__pycache__", cache_folder() / "kernels"):
        if not folder.is_relative_to(shared) and _writable(folder):
            return folder
    if _own(shared) and _writable(shared / "kernels"):
        warn_once(f"compiled kernels are kept in {shared}, among the temporary files; set NUMBA_CACHE_DIR to keep them")
        return shared / "kernels"
    warn_once("no folder for compiled kernels can be written: every process compiles them anew; set NUMBA_CACHE_DIR")
    return None


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _own(folder: Path) -> bool:
    """Return whether a folder is ours alone: the cache holds machine code, which others must not write for us."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


class Index(IndexDataCacheFile):
    """The cached signatures of a function and their code, each with a checksum.

    What is damaged, or was written by a version whose types have moved or gone, counts as missing.
    """

    def _load_index(self) -> dict[Any, Any]:
        try:
            found = pickle.loads(_checked(self._index_path))
            if found[0] == (self._version, self._source_stamp):
                return dict(found[1])
        except (OSError, ImportError, AttributeError, pickle.UnpicklingError, EOFError, ValueError, TypeError):
            pass
        return {}

    def _save_index(self, overloads: dict[Any, Any]) -> None:
        self._write(self._index_path, ((self._version, self._source_stamp), overloads))

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_checked(self._data_path(name)))  # Numba takes an OSError for a file that is gone

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(data).digest() + data)


def _checked(path: str) -> bytes:
    """Return the content of a file of the cache; raise `OSError` if it is damaged."""
    content = Path(path).read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise OSError(f"{path}: damaged")
    return content[32:]


class SourceHashCache(FunctionCache):
    """Numba's cache on disk, valid as long as `SOURCE_HASH` is the same.

    By itself Numba checks only the file of the cached function, not the files of the functions that it calls.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        with _numba_cache_folder(kernel_cache_folder()):
            super().__init__(function)
        self._cache_file = Index(self._cache_path, self._impl.filename_base, SOURCE_HASH)

    def holds(self, codegen: Any) -> bool:
        """Return whether there is code of the function for this processor, whatever the types of its arguments."""
        wanted = self._index_key(None, codegen)[1:]  # processor, code and what the function closes over
        return any(key[1:] == wanted for key in self._cache_file._load_index())

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code; where that fails, for want of space mostly, go on without the cache."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            warn_once(f"compiled kernels cannot be kept in {self._cache_path} ({error.strerror}); set NUMBA_CACHE_DIR")


def needs_compiler(kernel: Any) -> bool:
    """Return whether a kernel is neither compiled nor in the cache on disk, but could be kept there.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcml.kernels.sampling import nth_negative
    >>> _ = nth_negative(np.array([0, 1], np.int32), 0, 2, 0)
    >>> needs_compiler(nth_negative)
    False
    """
    kept = kernel._cache
    return not kernel.signatures and isinstance(kept, SourceHashCache) and not kept.holds(kernel.targetctx.codegen())


@contextmanager
def _numba_cache_folder(folder: Path | None) -> Iterator[None]:
    """Let Numba look for the cache of a function in a folder; by itself it may make one that is called ``~``."""
    before = config.CACHE_DIR
    if folder is not None and folder != Path(__file__).parent / "__pycache__":
        config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


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
        if kernel_cache_folder() is not None:
            dispatcher._cache = SourceHashCache(function)
        return dispatcher

    return compiled
