"""Runs in several processes give the figures of runs in one."""

from dpcml.data.synthetic import planted
from dpcml.paper.runs import DatasetCache, model_jobs
from dpcml.paper.spec import Spec
from dpcml.paper.studies import _run


def test_processes_give_the_same_figures_and_keep_reasons_of_failures(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    world = str(tmp_path / "world.csv")
    rows = (
        {"data": world, "label": "neighbours", "model": "itemknn", "parameters": {"k": 20}},
        {"data": world, "label": "popular", "model": "popularity"},
        {"data": str(tmp_path / "missing.csv"), "label": "nothing", "model": "popularity"},
    )
    spec = Spec("small", "A small study", "About.", "text", (3, 5), 1, rows)
    found = []
    for workers in (1, 2):
        said: list[str] = []
        jobs = list(model_jobs(spec, DatasetCache()))
        store = _run(spec, jobs, tmp_path / str(workers) / "small.csv", None, workers, said.append)
        assert len(said) == 3
        assert "missing.csv" in store.failed["reason"][0]
        found.append(store.done.drop("seconds"))
    assert found[0].equals(found[1])
