"""Worker processes and Ray tasks must give what one process gives; a worker that dies must not end the others."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from dpcml.tuning import SearchSpace, tune
from dpcml.tuning.space import Choice
from dpcml.tuning.workers import RayPool, SearchConfig
from dpcml.utils.errors import MissingExtraError
from dpcml.utils.packages import require

KNN = SearchSpace("knn", {"k": Choice((1, 2, 5, 10, 20, 30))}, {"shrink": 1.0})


def values(found):
    return dict(zip(found.frame["parameters"], found.frame["value"], strict=True))


def test_workers_change_nothing_but_the_time(blocks):
    here = tune(blocks, "itemknn", space=KNN, budget=4, workers=1)
    two = tune(blocks, "itemknn", space=KNN, budget=4, workers=2)
    assert values(two) == values(here)
    assert two.best_value == here.best_value
    require("ray", "ray")
    assert values(tune(blocks, "itemknn", space=KNN, budget=4, workers=2, engine="ray")) == values(here)


def test_tpe_shares_a_study_among_workers(blocks):
    found = tune(blocks, "itemknn", space=KNN, budget=6, workers=2, sampler="tpe")
    assert found.trials == 6
    assert found.frame["parameters"].n_unique() == found.frame.height <= 6, "a point that comes twice is run once"


def search(data, file):
    tune(data, "itemknn", space=KNN, budget=6, workers=2, file=file)


def test_two_searches_share_one_study(blocks, tmp_path):
    """The same command twice, at the same time: each trial is run once, by either."""
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=search, args=(blocks, tmp_path / "t.csv")) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    found = tune(blocks, "itemknn", space=KNN, budget=6, file=tmp_path / "t.csv")
    assert len(values(found)) == 6


def test_a_worker_that_dies_takes_only_its_trial_with_it(blocks, tmp_path, monkeypatch):
    """Process 0 is killed in its first trial; its successor and the other process run the rest."""
    killer = tmp_path / "sitecustomize.py"
    killer.write_text(
        "import os, sys, time\n"
        "import dpcml.tuning.workers as workers\n"
        f"killed = {str(tmp_path / 'killed')!r}\n"
        "run = workers.run_trial\n"
        "def run_trial(study, trial, *rest):\n"
        "    if trial.user_attrs['worker'].endswith(':0'):\n"
        "        open(killed, 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    until = time.monotonic() + 120\n"
        "    while not os.path.exists(killed) and time.monotonic() < until:  # process 0 may start later\n"
        "        time.sleep(0.05)\n"
        "    run(study, trial, *rest)\n"
        "workers.run_trial = run_trial\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    found = tune(blocks, "itemknn", space=KNN, budget=4, workers=2, file=tmp_path / "t.csv")
    assert (found.trials, found.failed) == (4, 1)
    assert "was ended by signal 9; out of memory, perhaps" in "".join(found.frame["error"])
    monkeypatch.undo()
    again = tune(blocks, "itemknn", space=KNN, budget=4, workers=1, file=tmp_path / "t.csv")
    assert set(again.frame["status"]) == {"ok"}, "the failed trial is run again by the next call"


def test_a_missing_ray_says_how_to_install_it(blocks, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[ray\]'"):
        RayPool(SearchConfig(tmp_path / "j", "s", "itemknn", KNN), blocks, blocks, 1)


def test_a_script_without_a_guard_is_told_so(tmp_path):
    """Spawned processes import the script again, and end before their first trial."""
    script = tmp_path / "search.py"
    script.write_text(
        "from dpcml.data.synthetic import planted\n"
        "from dpcml.tuning import tune\n"
        "tune(planted(40, 30, seed=0).data, 'itemknn', budget=2, workers=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]
