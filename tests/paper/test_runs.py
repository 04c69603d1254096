from dataclasses import replace

import polars as pl
import pytest

from dpcml.data.synthetic import planted
from dpcml.paper.published import METRICS
from dpcml.paper.run_store import RunStore, all_parameters
from dpcml.paper.runs import model_jobs, run_jobs
from dpcml.paper.spec import Spec
from dpcml.utils.errors import DataError


def run(spec, path, say=lambda text: None):
    return run_jobs(model_jobs(spec), path, say).done


def study(name, *entries, protocol="text", seeds=2):
    return Spec(name, "A small study", "About.", protocol, (3, 5), seeds, entries)


@pytest.fixture
def spec(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    world = str(tmp_path / "world.csv")
    return study(
        "small",
        {"data": world, "label": "neighbours", "model": "itemknn", "parameters": {"k": 20}},
        {"data": world, "label": "popular", "model": "popularity"},
        {"data": str(tmp_path / "missing.csv"), "label": "nothing", "model": "popularity"},
    )


def test_a_run_that_fails_is_kept_with_its_reason_until_it_succeeds(spec, tmp_path):
    run(spec, tmp_path / "small.csv")
    failed = RunStore(tmp_path / "small.csv").failed
    assert failed["label"].to_list() == ["nothing"] * 2
    assert "missing.csv" in failed["reason"][0]
    planted(120, 80, seed=1).write_csv(tmp_path / "missing.csv")
    assert run(spec, tmp_path / "small.csv").height == 6
    assert not (tmp_path / "small.failures.csv").exists()


def test_a_run_of_another_study_in_the_folder_is_taken_over(spec, tmp_path):
    run(spec, tmp_path / "small.csv")
    said: list[str] = []
    same = {**spec.entries[0], "label": "called otherwise", "parameters": {"k": 20, "shrink": 10}}
    done = run(study("other", same, seeds=1), tmp_path / "other.csv", say=said.append)
    assert "taken over" in said[0]
    assert done["label"].to_list() == ["called otherwise"]
    assert done["parameters"].to_list() == ['{"k": 20, "shrink": 10}']
    other = {**spec.entries[0], "label": "called otherwise"}
    run(study("third", other, protocol="released", seeds=1), tmp_path / "third.csv", say=said.append)
    assert "taken over" not in said[-1], "another protocol is another run"


def test_a_run_on_other_test_users_is_another_run(spec, tmp_path):
    store = run_jobs(model_jobs(spec), tmp_path / "small.csv")
    job = next(iter(model_jobs(spec)))
    assert store.has(job)
    others = replace(job, test_users="some.npy")
    assert not store.has(others)
    assert RunStore(tmp_path / "other.csv").borrow(job) is not None
    assert RunStore(tmp_path / "other.csv").borrow(others) is None


def test_foreign_files_in_the_folder_do_not_matter_and_damaged_results_are_named(spec, tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "notes.csv").write_text('a,b\n1\n"2,3,4\n')
    assert run(spec, tmp_path / "small.csv").height == 4
    (tmp_path / "small.csv").write_text("")
    with pytest.raises(DataError, match=r"small\.csv: cannot be read as a results file .*; move it away"):
        run(spec, tmp_path / "small.csv")


def test_runs_are_done_once_and_kept(spec, tmp_path):
    said: list[str] = []
    first = run(spec, tmp_path / "small.csv", say=said.append)
    assert first.height == 4
    assert {"split", "protocol", "version", "seed", "parameters", *METRICS} <= set(first.columns)
    assert len(said) == 6, "two runs of the missing file are reported and leave the others"
    assert any("missing.csv" in line for line in said)
    again: list[str] = []
    second = run(spec, tmp_path / "small.csv", say=again.append)
    assert len(again) == 2, "only the failed ones are tried again"
    assert second.drop("seconds").equals(first.drop("seconds"), null_equal=True)


def test_changed_settings_are_run_anew(spec, tmp_path):
    run(spec, tmp_path / "small.csv")
    done = run(study("small", {**spec.entries[0], "parameters": {"k": 1}}), tmp_path / "small.csv")
    assert done.filter(pl.col("label") == "neighbours")["parameters"].unique().to_list() == ['{"k": 1}']
    assert done.height == 4


def test_a_seed_decides_the_split(spec, tmp_path):
    done = run(spec, tmp_path / "small.csv")
    by_seed = done.group_by("seed").agg(pl.col("split").n_unique())
    assert by_seed["split"].to_list() == [1, 1], "models of one seed share the split"
    assert done["split"].n_unique() == 2


def test_settings_are_compared_with_the_defaults_that_they_leave_out():
    assert all_parameters("unis", "{}") == all_parameters("unis", '{"start": "random"}'), "by an old name, too"
    assert all_parameters("unis", "{}") != all_parameters("hars", "{}")
    assert all_parameters("itemknn", '{"k": 100.0}') == all_parameters("itemknn", "{}")


def test_figures_of_pytorch_models_do_not_depend_on_the_number_of_threads(tmp_path, monkeypatch):
    planted(300, 200, seed=1).write_csv(tmp_path / "world.csv")
    parameters = {"dim": 64, "epochs": 2, "n_candidates": 10}
    row = {"data": str(tmp_path / "world.csv"), "label": "HLR", "model": "hlr", "parameters": parameters}
    found = []  # without the rule, the losses differ in their last digits
    for threads in ("1", "2"):
        monkeypatch.setenv("DPCML_THREADS", threads)
        one = replace(study(f"on {threads}", row, seeds=1), measures=("accuracy", "generalisation"))
        found.append(run(one, tmp_path / f"{threads}.csv").drop("seconds"))
    assert found[0].equals(found[1])
