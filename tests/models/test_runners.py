"""Compilation in another process: it must compile the very types that an engine calls its kernel with."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from dpcml import DPCML, planted
from dpcml.models import runners
from dpcml.models.runners import compile_in_background, compile_kernel
from dpcml.training.engine import Engine
from dpcml.training.samplers import CLOSEST, SAMPLERS


@pytest.fixture(scope="module")
def train():
    return planted(40, 30).data


class Recorder:
    """Takes the place of a kernel, and keeps the types of what it is called with."""

    signatures = ()

    def __call__(self, *arguments):
        self.types = tuple(numba.typeof(argument) for argument in arguments)


class Process:
    """Takes the place of a process."""

    def __init__(self, command):
        self.command = command


@pytest.fixture
def recorded(monkeypatch):
    """Every engine's kernel becomes a recorder; returns all of them."""
    found = []

    def kernel(*options):
        found.append(Recorder())
        found[-1].options = options
        return found[-1]

    monkeypatch.setattr("dpcml.training.engine.minibatch_kernel", kernel)
    return found


@pytest.fixture
def started(monkeypatch):
    """Nothing is in the cache and no process starts; returns the commands."""
    found = []
    monkeypatch.setattr(runners, "needs_compiler", lambda kernel: True)
    monkeypatch.setattr(runners, "thread_count", lambda: 2)
    monkeypatch.setattr(runners.subprocess, "Popen", lambda command, **_: found.append(command) or Process(command))
    runners._start.cache_clear()
    yield found
    runners._start.cache_clear()


@pytest.mark.parametrize("negatives", list(SAMPLERS))
@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_both_compile_the_same_types_for_the_same_options(train, recorded, negatives, optimizer):
    choices = {"negatives": negatives, "optimizer": optimizer, "diversity_per": "pair", "init": "random"}
    model = DPCML(n_vectors=3, dim=9, n_threads=2, **choices)
    model.make_engine(train).compile()
    compile_kernel(*recorded[0].options)
    mine, other = recorded
    assert other.options == mine.options
    assert other.types == mine.types


def test_a_process_starts_once_for_a_kernel_and_every_fit_waits_for_it(train, started, recorded, monkeypatch):
    waits = []
    monkeypatch.setattr(Process, "wait", lambda self: waits.append(self), raising=False)
    monkeypatch.setattr(Engine, "compile", lambda self: None)
    monkeypatch.setattr(Engine, "epoch", lambda *_: 0.0)
    for _ in range(2):
        DPCML(n_vectors=2, dim=9, init="random", epochs=1).fit(train)
    assert [command[3:] for command in started] == [[str(option) for option in recorded[0].options]]
    assert len(waits) == 2
    assert waits[0] is waits[1]


def test_only_the_kernel_for_the_number_of_vectors_that_was_found_is_waited_for(train, started, recorded, monkeypatch):
    waits = []
    monkeypatch.setattr(Process, "wait", lambda self: waits.append(self), raising=False)
    monkeypatch.setattr(Engine, "compile", lambda self: None)
    monkeypatch.setattr(Engine, "epoch", lambda *_: 0.0)
    monkeypatch.setattr(DPCML, "_adapt", lambda self, *_: setattr(self, "vector_rate_", np.array([3.0])))
    DPCML(dim=9, init="random", epochs=1).fit(train)
    expected, found = (int(command[3]) for command in started)
    assert expected < found
    assert [process.command for process in waits] == [started[1]]


def test_no_process_starts_on_one_core_or_for_a_known_kernel(train, started, monkeypatch):
    config = DPCML(n_vectors=2).train_config(train)
    monkeypatch.setattr(runners, "thread_count", lambda: 1)
    assert compile_in_background(config, 2, 8) is None
    monkeypatch.setattr(runners, "thread_count", lambda: 2)
    monkeypatch.setattr(runners, "needs_compiler", lambda kernel: False)
    assert compile_in_background(config, 2, 8) is None
    assert started == []


def test_a_process_that_cannot_start_is_no_error(train, started, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(runners.subprocess, "Popen", refuse)
    assert compile_in_background(DPCML(n_vectors=2).train_config(train), 2, 8) is None


def test_the_command_that_is_started_works():
    """The kernel is that of a doctest, mostly in the cache already."""
    command = [sys.executable, "-m", "dpcml.models.runners", "2", "8", str(CLOSEST), "adam", "False"]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
