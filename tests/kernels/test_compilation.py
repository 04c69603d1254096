"""The cache on disk, in processes of their own with a copy of the package."""

import os
import shutil
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from numba.core.errors import TypingError

import dpcml
from dpcml.kernels import compilation
from dpcml.kernels.compilation import Index, cached_njit

PROGRAM = """
import sys

import numpy as np
from dpcml.kernels.sampling import fill_filters

filters = np.zeros(3, np.uint64)
fill_filters(np.array([0, 3, 5]), np.array([1, 4, 9, 2, 7], np.int32), filters)
print(sum(fill_filters.stats.cache_hits.values()), "numba.np.linalg" in sys.modules, *filters)
"""


def test_an_edit_of_a_called_kernel_in_another_file_is_noticed(tmp_path):
    copy = tmp_path / "dpcml"
    shutil.copytree(Path(dpcml.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))

    def run():
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        found = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
        assert not found.returncode, found.stderr
        hits, compiler, *filters = found.stdout.split()
        return int(hits), compiler, filters

    compiled, again = run(), run()
    assert compiled == (0, "True", again[2])
    assert again[0] == 1, "the second process loads what the first compiled"
    assert again[1] == "False", "and does not fill the registries of the compiler for it"
    source = copy / "kernels" / "random.py"
    source.write_text(source.read_text().replace("0x9E3779B97F4A7C15", "0xD1B54A32D192ED03"))
    hits, _, filters = run()
    assert hits == 0
    assert filters != compiled[2]


def test_a_damaged_cache_counts_as_missing(tmp_path):
    """A flipped bit in machine code would end the process."""
    from dpcml.kernels.compilation import SOURCE_HASH, Index

    index = Index(str(tmp_path), "kernel", SOURCE_HASH)
    index.save("int64", "machine code")
    assert index.load("int64") == "machine code"
    for file in tmp_path.iterdir():
        whole = file.read_bytes()
        for place in range(len(whole)):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            assert index.load("int64") is None
        file.write_bytes(whole)
    assert index.load("int64") == "machine code"


def test_numba_without_its_compiler_is_refused_in_our_words():
    """Finding 19: NUMBA_DISABLE_JIT=1 gave a traceback from within a kernel."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    for words, code in ((["recommend", "nowhere", "--user", "1"], 2), (["--help"], 0)):
        command = [sys.executable, "-m", "dpcml", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
    command = [sys.executable, "-c", "import dpcml; dpcml.DPCML"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "ParameterError: NUMBA_DISABLE_JIT=1: the kernels cannot run without" in done.stderr


def test_an_index_of_a_version_with_other_modules_is_written_anew(tmp_path):
    from numba.core.caching import IndexDataCacheFile

    from dpcml.kernels.compilation import SOURCE_HASH, Index

    old = IndexDataCacheFile(str(tmp_path), "kernel", 1)
    module = types.ModuleType("gone")
    exec("class Signature: pass", module.__dict__)
    sys.modules["gone"] = module
    old._save_index({module.Signature(): "kernel.1.nbc"})
    del sys.modules["gone"]
    index = Index(str(tmp_path), "kernel", SOURCE_HASH)
    assert index.load("int64") is None
    index.save("int64", "machine code")
    assert index.load("int64") == "machine code"


TOGETHER = """
import sys, time
from pathlib import Path
import numpy as np
from dpcml.kernels.sampling import fill_filters

Path(sys.argv[1]).touch()
while len(list(Path(sys.argv[1]).parent.iterdir())) < 2:
    time.sleep(0.001)
fill_filters(np.array([0, 3]), np.array([1, 4, 9], np.int32), np.zeros(3, np.uint64))
print(sum(fill_filters.stats.cache_hits.values()))
"""


def test_processes_that_need_a_kernel_at_the_same_time_compile_it_once(tmp_path):
    (tmp_path / "ready").mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER, tmp_path / "ready" / name], env=environment, stdout=subprocess.PIPE
        )
        for name in "ab"
    ]
    assert sorted(int(one.communicate()[0]) for one in both) == [0, 1]
    assert not list((tmp_path / "cache").rglob("*.claim"))


FACTORY = """
import sys

from numba import njit
from dpcml.kernels.compilation import cached_njit


def helper(step):
    @njit
    def walk(n):  # too long for the compiler to put into its caller
        found = 0
        for i in range(n):
            found += i * n + step
            if found > 1000000:
                found = found // 3 + n
        for i in range(n):
            found += i * n + step * 2
            if found > 1000000:
                found = found // 3 + n
        return found

    return walk


one, two = helper(1), helper(2)


def kernel(step):
    @cached_njit()
    def run(n):
        walk = one if step == 1 else two
        return walk(n) + walk(n + 1) * walk(n + 2)

    return run


print(*(kernel(int(step))(10) for step in sys.argv[1:]))
"""


def test_functions_of_one_factory_that_two_processes_compile_are_not_mixed_up(tmp_path):
    """By itself Numba gives both the same name, and a process that loads both has one of them twice."""
    script = tmp_path / "factory.py"
    script.write_text(FACTORY, encoding="utf-8")

    def run(*steps):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        found = subprocess.run([sys.executable, script, *steps], env=environment, capture_output=True, text=True)
        assert not found.returncode, found.stderr
        return found.stdout.split()

    (first,), (second,) = run("1"), run("2")
    assert first != second
    assert run("1", "2") == [first, second]
    assert run("2", "1") == [second, first]


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """A kernel that cannot be compiled, with a cache of its own."""
    monkeypatch.setattr(compilation, "kernel_cache_folder", lambda: tmp_path)

    def kernel(number):
        return number.nothing

    return cached_njit()(kernel)


def test_an_error_leaves_no_claim(failing, tmp_path):
    with pytest.raises(TypingError):
        failing(1)
    assert not failing._cache._claims
    assert not list(tmp_path.rglob("*.claim"))


def test_a_process_waits_for_a_kernel_only_so_long(failing, monkeypatch):
    """The other process may be stopped."""
    asked = []
    monkeypatch.setattr(compilation, "WAIT", 0.05)
    monkeypatch.setattr(compilation, "_try_lock", lambda file: bool(asked.append(file)))
    with pytest.raises(TypingError):  # it has begun to compile
        failing(1)
    assert len(asked) > 1


def test_a_lock_ends_with_its_process(tmp_path):
    held = compilation._try_lock(tmp_path / "a.claim")
    assert compilation._try_lock(tmp_path / "a.claim") is False
    held.close()
    assert compilation._try_lock(tmp_path / "a.claim")
    assert compilation._try_lock(tmp_path / "nowhere" / "a.claim") is None


def test_signatures_that_are_saved_at_the_same_time_keep_their_code(tmp_path):
    def save(number):
        Index(str(tmp_path), "kernel", 7).save(f"signature {number}", f"code {number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(40)))
    index = Index(str(tmp_path), "kernel", 7)
    assert [index.load(f"signature {number}") for number in range(40)] == [f"code {number}" for number in range(40)]
