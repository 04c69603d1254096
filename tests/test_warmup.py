"""Compilation by other processes: they must compile what a training calls, and start only where that helps."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dpcml import warmup
from dpcml.kernels.compilation import needs_compiler
from dpcml.kernels.minibatch import minibatch_kernel

RECORD = """
import sys
from dpcml.kernels import compilation

load = compilation.SourceHashCache.load_overload

def record(self, sig, context):
    print(self._impl.filename_base, sig)
    return load(self, sig, context)

compilation.SourceHashCache.load_overload = record
"""
WARM = "from dpcml.warmup import warm_part; warm_part('engine'); warm_part('others')"
TRAIN = """
from dpcml.models.blend import Blend
from dpcml.workflow import DataSource, train_and_save

source = DataSource(sys.argv[1])
train_and_save(Blend().set_params(epochs=5), source.read(), sys.argv[2], source=source, progress=False)
"""


def test_a_training_needs_no_kernel_that_the_warm_up_has_not_compiled(tmp_path):
    likes = np.argwhere(np.random.default_rng(1).random((40, 300)) < 0.4)
    file = tmp_path / "likes.csv"
    file.write_text("user,item\n" + "".join(f"u{user},i{item}\n" for user, item in likes))

    def kernels(program):
        command = [sys.executable, "-c", RECORD + program, file, tmp_path / "model"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return set(done.stdout.splitlines())

    compiled, needed = kernels(WARM), kernels(TRAIN)  # compiling one loads others that it calls
    assert needed
    assert not needed - compiled


@pytest.fixture
def started(monkeypatch, tmp_path):
    """A folder for compiled kernels without any, two cores, and no process that starts; returns the commands."""
    found = []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warmup, "thread_count", lambda: 2)
    monkeypatch.setattr(warmup.atexit, "register", lambda end: end)
    monkeypatch.setattr(warmup.subprocess, "Popen", lambda command, **_: found.append(command) or Process())
    return found


class Process:
    """Takes the place of a process."""

    def terminate(self):
        """End it."""


def test_each_part_is_compiled_by_a_process_until_that_was_done(started):
    assert warmup.start_warmup()
    assert [command[-1] for command in started] == list(warmup.PARTS)
    warmup._mark("engine")
    assert warmup.start_warmup()
    assert [command[-1] for command in started[2:]] == ["others"]
    warmup._mark("others")
    assert not warmup.start_warmup()
    assert len(started) == 3


def test_no_process_starts_on_one_core_or_without_a_folder(started, monkeypatch):
    monkeypatch.setattr(warmup, "thread_count", lambda: 1)
    assert not warmup.start_warmup()
    monkeypatch.setattr(warmup, "thread_count", lambda: 2)
    monkeypatch.setattr(warmup, "mark_file", lambda part: None)
    assert not warmup.start_warmup()
    assert not started


def test_no_room_for_a_process_is_no_error(started, monkeypatch):
    def full(*_, **__):
        raise BlockingIOError("no room")

    monkeypatch.setattr(warmup.subprocess, "Popen", full)
    assert not warmup.start_warmup()


def test_another_numba_or_source_asks_for_another_mark(monkeypatch):
    before = warmup.mark_file("engine")
    monkeypatch.setattr(warmup, "version", lambda name: "0.0")
    assert warmup.mark_file("engine") != before


def test_the_folder_of_kernels_need_not_exist_yet(started, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "new" / "kernels"))
    assert warmup.mark_file("engine").parent == tmp_path / "new" / "kernels"
    assert warmup.start_warmup()
    assert len(started) == 2


def test_a_kernel_that_is_expected_starts_no_further_process(monkeypatch):
    kernels = [minibatch_kernel(*options) for options in warmup._engines(warmup._default_models())]
    assert kernels
    for kernel in kernels:
        monkeypatch.setattr(kernel._cache, "holds", lambda codegen: False)
        monkeypatch.setattr(kernel._cache, "expected", False)
    assert all(needs_compiler(kernel) for kernel in kernels if not kernel.signatures)
    warmup.expect_engine()
    assert not any(needs_compiler(kernel) for kernel in kernels)


def test_the_module_imports_nothing_that_takes_long():
    program = "import sys, dpcml.warmup; print(*{'numba', 'scipy', 'dpcml.models.blend'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)
    assert done.stdout.strip() == ""
