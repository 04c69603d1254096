"""Trials in processes and on Ray must give what they give here; a worker that dies must not stop the others."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from dpcml.tuning.engines import ENGINES, InProcess, Share, share_of, threads_of_children
from dpcml.tuning.processes import Processes, _serve
from dpcml.tuning.trial import Task
from dpcml.utils.errors import MissingExtraError, ParameterError
from dpcml.utils.packages import require
from dpcml.utils.threads import thread_count

TASKS = [Task(k, "itemknn", {"k": k, "shrink": 1.0}) for k in (1, 2, 3)] + [Task(4, "itemknn", {"k": -1})]


@pytest.fixture(scope="module")
def parts(request):
    return request.getfixturevalue("blocks").split((0.6, 0.2, 0.2), 0)


def values(engine):
    with engine:
        found = {task.number: outcome for task, outcome in engine.run(TASKS)}
    assert found[4].status == "failed"
    assert "k=-1" in found[4].error
    return {number: outcome.value for number, outcome in found.items()}


def test_every_engine_gives_the_same(parts):
    here = values(InProcess(parts[0], parts[1], Share(1, 1)))
    assert None not in [here[k] for k in (1, 2, 3)]
    assert values(ENGINES["local"](parts[0], parts[1], Share(2, 1))) == here
    require("ray", "ray")
    assert values(ENGINES["ray"](parts[0], parts[1], Share(2, 1))) == here


def test_a_worker_that_dies_takes_only_its_trial_with_it(parts):
    engine = Processes(parts[0], parts[1], Share(1, 1))

    def kill():
        while not engine.workers or engine.workers[0].task is None:
            time.sleep(0.01)
        os.kill(engine.workers[0].process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    with engine:
        killer.start()
        found = {task.number: outcome for task, outcome in engine.run(TASKS[:2])}
        killer.join()
        left = [worker.process for worker in engine.workers]
    assert found[1].value is None
    assert "was ended by signal 9" in found[1].error
    assert found[2].status == "ok"
    assert not any(process.is_alive() for process in left), "nothing stays behind"


def test_cores_are_shared_out(monkeypatch):
    monkeypatch.setenv("DPCML_THREADS", "8")
    assert share_of("dpcml2") == Share(8, 1), "models with epochs: one per core"
    assert share_of("ease") == Share(1, 8), "others one at a time"
    assert share_of("dpcml2", workers=3) == Share(3, 2)
    assert share_of("dpcml2", workers=20) == Share(20, 1)
    with pytest.raises(ParameterError, match="workers=0: must be a whole number of at least 1"):
        share_of("dpcml2", workers=0)


def test_thread_settings_are_restored(monkeypatch):
    monkeypatch.setenv("DPCML_THREADS", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threads_of_children(2):
        assert (thread_count(), os.environ["OMP_NUM_THREADS"]) == (2, "2")
    assert thread_count() == 7
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_missing_ray_says_how_to_install_it(parts, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpcml\[ray\]'"):
        ENGINES["ray"](parts[0], parts[1], Share(1, 1))


def test_a_worker_whose_search_is_gone_ends_quietly(parts):
    """It may find that out when it asks for a trial, or when it has done one."""
    for tasks in [], [Task(1, "popularity", metric="MAP")]:
        ours, theirs = multiprocessing.Pipe()
        for task in tasks:
            ours.send(task)
        ours.close()
        assert _serve(theirs, parts[0], parts[1]) is None


def test_a_script_without_a_guard_is_told_so(tmp_path):
    """Spawned processes run the script again, and end before they can try anything."""
    script = tmp_path / "search.py"
    script.write_text(
        "from dpcml.data.synthetic import planted\n"
        "from dpcml.tuning.search import tune\n"
        "tune(planted(40, 30, seed=0).data, 'unis', budget=1, epochs=1, workers=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]
