"""Compiler options of the kernels, and a cache on disk that notices an edit of any kernel source.

The cache is in ``$NUMBA_CACHE_DIR``, else beside the kernels, else in the user's cache folder, else among the temporary
files, whichever can be written; without any, every process compiles the kernels it needs. Processes that need the same
kernel at the same time do not compile it twice: the others wait for the first one, and load what it has saved.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pickle
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

from dpcml.utils.errors import ParameterError
from dpcml.utils.files import cache_folder, temporary_cache_folder

config: Any = numba.config  # it fills itself from the environment

if config.DISABLE_JIT:
    raise ParameterError("NUMBA_DISABLE_JIT=1: the kernels cannot run without Numba's compiler; unset the variable")

# For scores that are known to be numbers: comparisons need not handle NaN. No kernel lets the compiler reorder sums,
# fuse a product with a sum, or estimate a root: what it does then depends on the processor. Kernels say it themselves,
# by the lanes and by `multiply_add` of `dpcml.kernels.simd`.
NO_NAN = {"nnan", "nsz"}
# For kernels that allocate nothing. Without reference counts (_nrt) an epoch takes a third less time, and there is less
# code to compile; it is safe because the caller keeps all arrays alive during the call.
# Nobody calls kernels from C, so they need no entry for it.
PLAIN: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}


class FunctionNumbers:
    """Random numbers of compiled functions, which become part of the names of their machine code.

    Numba counts from 1 in each process. So where two processes compile two functions of one factory, both can get the
    same name in the cache on disk, and a third process, which loads both, runs the code of one in place of the other.
    """

    def __iter__(self) -> FunctionNumbers:
        return self

    def __next__(self) -> int:
        return int.from_bytes(os.urandom(7))


identity: Any = FunctionIdentity
identity._unique_ids = FunctionNumbers()

WAIT = 120.0  # seconds, at most, for another process that compiles the same kernel

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

    def save(self, key: Any, data: Any) -> None:
        """Save the code of a signature before the index names it, while no other process saves one.

        By itself Numba lets two processes take the same number for the code of two signatures.
        """
        with (Path(self._cache_path) / "saving.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            overloads = self._load_index()
            taken = set(overloads.values())
            free = next(name for name in map(self._data_name, count(1)) if name not in taken)
            self._save_data(overloads.setdefault(key, free), data)
            self._save_index(overloads)

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

    def __init__(self, function: Callable[..., Any], allocates: bool = True) -> None:
        with _numba_cache_folder(kernel_cache_folder()):
            super().__init__(function)
        self._cache_file = Index(self._cache_path, self._impl.filename_base, SOURCE_HASH)
        self._allocates = allocates
        self.expected = False  # from another process, see `expect`
        self._claims: dict[Path, Any] = {}  # files that are locked while this process compiles

    def holds(self, codegen: Any) -> bool:
        """Return whether there is code of the function for this processor, whatever the types of its arguments."""
        wanted = self._index_key(None, codegen)[1:]  # processor, code and what the function closes over
        return any(key[1:] == wanted for key in self._cache_file._load_index())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load compiled code; where there is none, wait for a process that compiles it, or tell others to wait.

        Unlike Numba's own cache it leaves the compiler alone, whose registries take a quarter of a second to fill: the
        first call in a process that only loads is that much quicker.
        """
        found = self._load(sig, target_context)
        if found is None and self._enabled:
            self._claim(sig, target_context.codegen())
            found = self._load(sig, target_context)
            if found is not None:
                self.release()
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        if self._allocates:
            rtsys.initialize(target_context)  # functions that count references
        return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code; where that fails, for want of space mostly, go on without the cache."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self.disable()
            warn_once(f"compiled kernels cannot be kept in {self._cache_path} ({error.strerror}); set NUMBA_CACHE_DIR")
        finally:
            self.release()

    def _claim_file(self, sig: Any, codegen: Any) -> Path:
        key = hashlib.sha256(repr(self._index_key(sig, codegen)).encode()).hexdigest()[:16]
        return Path(self._cache_path) / f"{self._impl.filename_base}.{key}.claim"

    def _claim(self, sig: Any, codegen: Any) -> None:
        """Lock the file by which others see that this process compiles a kernel, as soon as nobody else holds it."""
        file, until = self._claim_file(sig, codegen), time.monotonic() + WAIT
        while file not in self._claims and time.monotonic() < until:
            lock = _try_lock(file)
            if lock:
                self._claims[file] = lock
            elif lock is None:  # locks do not work here
                return
            else:
                time.sleep(0.02)

    def release(self) -> None:
        """Let other processes go on, which load what was saved or, after an error, compile by themselves."""
        while self._claims:
            file, lock = self._claims.popitem()
            file.unlink(missing_ok=True)
            lock.close()


def _try_lock(file: Path) -> Any:
    """Return an open file that this process has locked; False if another one has, None if it cannot be locked."""
    try:
        opened = file.open("ab")
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        opened.close()
        return False
    except OSError:
        opened.close()
        return None
    return opened


def needs_compiler(kernel: Any) -> bool:
    """Return whether a kernel is neither compiled nor in the cache on disk, nor on its way there.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcml.kernels.sampling import nth_negative
    >>> _ = nth_negative(np.array([0, 1], np.int32), 0, 2, 0)
    >>> needs_compiler(nth_negative)
    False
    """
    kept, codegen = kernel._cache, kernel.targetctx.codegen()
    if kernel.signatures or not isinstance(kept, SourceHashCache):  # without a cache it could not be kept
        return False
    return not kept.expected and not kept.holds(codegen)


def expect(kernel: Any) -> None:
    """Say that another process is about to compile a kernel: `needs_compiler` is False from now on."""
    if isinstance(kernel._cache, SourceHashCache):
        kernel._cache.expected = True


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
            dispatcher._cache = SourceHashCache(function, allocates=options.get("_nrt", True))
        _release_after_errors(dispatcher)
        return dispatcher

    return compiled


def _release_after_errors(dispatcher: Any) -> None:
    """Let other processes go on after an error: they need not wait for this one any more."""
    compiler, kept = dispatcher._compiler, dispatcher._cache
    compile_types = compiler.compile

    def compile_or_release(args: Any, return_type: Any) -> Any:
        try:
            return compile_types(args, return_type)
        except BaseException:
            if isinstance(kept, SourceHashCache):
                kept.release()
            raise

    compiler.compile = compile_or_release
