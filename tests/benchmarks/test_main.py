import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app, set_by_set
from benchmarks.simd import SHIPPED, bench_simd
from benchmarks.workloads import StepConfig
from dpcml import planted
from dpcml.cli import app as dpcml_app


@pytest.fixture
def likes(tmp_path):
    rng = np.random.default_rng(0)
    rows = sorted({(int(u), int(i)) for u, i in rng.integers(0, 30, (400, 2))})
    (tmp_path / "likes.csv").write_text("user,item\n" + "\n".join(f"{u},{i}" for u, i in rows))
    return str(tmp_path / "likes.csv")


def test_sets_are_written_one_by_one_beside_those_of_other_runs(tmp_path):
    out = tmp_path / "found.json"
    seen = list[list[str]]()

    def measure(name):
        seen.append([one["data"] for one in json.loads(out.read_text())["sets"]] if out.exists() else [])
        return {"data": name, "run": len(seen)}

    set_by_set("some", ["a", "b"], measure, out)
    found = set_by_set("some", ["b", "c"], measure, out)
    assert seen == [[], ["a"], ["a", "b"], ["a", "b"]]
    assert found["sets"] == [{"data": "b", "run": 3}, {"data": "c", "run": 4}]
    kept = json.loads(out.read_text())
    assert kept == {"benchmark": "some", "sets": [{"data": "a", "run": 1}, *found["sets"]]}


def test_evaluate_prints_one_object(likes):
    command = ["evaluate", "--data", likes, "--repeats", "1"]
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert {"seconds", "ranking_seconds", "numpy_seconds", "ratio_to_numpy"} <= set(found)
    assert found["users"] == 30
    assert "ratio" in CliRunner().invoke(app, command).stdout


def test_train_prints_one_object_and_writes_the_same(likes, tmp_path):
    pytest.importorskip("torch")
    sizes = ["--vectors", "2", "--dim", "8", "--candidates", "3", "--repeats", "1", "--threads", "1", "--no-cold"]
    command = ["train", "--data", likes, *sizes, "--out", str(tmp_path / "a" / "train.json")]
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    expected = {"seconds_per_epoch", "torch_seconds_per_epoch", "ratio_to_torch", "share_of_peak", "thread_speedup"}
    assert {*expected, "first_call_seconds"} <= set(found)
    assert json.loads((tmp_path / "a" / "train.json").read_text()) == found


def test_scaling_prints_the_growth():
    result = CliRunner().invoke(app, ["scaling", "--sizes", "2000,4e3", "--items", "300", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "growth" in result.stdout
    assert len(result.stdout.splitlines()) == 3


def test_methods_prints_one_object_and_writes_the_same(likes, tmp_path):
    chosen = ["--model", "itemknn", "--model", "rp3beta", "--repeats", "1"]
    command = ["methods", "--data", likes, *chosen, "--out", str(tmp_path / "methods.json")]
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert [one["name"] for one in found["methods"]] == ["itemknn", "rp3beta"]
    assert json.loads((tmp_path / "methods.json").read_text()) == found
    shown = CliRunner().invoke(app, command).stdout
    assert "rp3beta" in shown
    assert "RP3Beta" in shown


@pytest.mark.parametrize("sizes", ["many", "10,20", ""])
def test_bad_sizes_are_bad_input(sizes):
    result = CliRunner().invoke(app, ["scaling", "--sizes", sizes])
    assert result.exit_code == 2
    assert "at least 1000" in result.output


@pytest.mark.parametrize("verb", ["evaluate", "train", "methods"])
def test_unknown_data_is_bad_input(verb):
    result = CliRunner().invoke(app, [verb, "--data", "steam-200"])
    assert result.exit_code == 2
    assert "did you mean 'steam-200k'" in result.output


def test_recommend_measures_exact_search_and_an_index(tmp_path):
    pytest.importorskip("usearch")
    out = tmp_path / "recommend.json"
    result = CliRunner().invoke(app, ["recommend", "--sizes", "2000", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "2,000 items" in result.stdout
    found = json.loads(out.read_text())["catalogues"][0]
    assert {"p50_ms", "p99_ms", "users_per_second", "share_of_matrix_product"} <= set(found["exact"])
    for search in found["index"]["searches"]:
        assert {"width", "recall", "p50_ms", "p99_ms"} <= set(search)
        assert search["recall"] > 0.95


def test_the_old_verb_names_the_new_command():
    result = CliRunner().invoke(dpcml_app, ["bench", "train", "--data", "planted", "--json"])
    assert result.exit_code == 2
    assert "python -m benchmarks train --data planted --json" in result.output
    assert "bench" not in CliRunner().invoke(dpcml_app, ["--help"]).output


def test_runs_as_a_module_from_the_root_of_the_repository():
    command = [sys.executable, "-m", "benchmarks", "train", "--help"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert "--data" in done.stdout


def test_simd_writes_both_sizes_and_prints_ratios(likes, tmp_path, monkeypatch):
    def few_variants(train, *, rounds):  # the others would compile for a minute
        step = StepConfig(n_vectors=2, dim=8, batch_size=32)
        return bench_simd(train, step=step, rounds=rounds, variants=(SHIPPED, "no prefetch"))

    monkeypatch.setattr("benchmarks.simd.bench_simd", few_variants)
    monkeypatch.setattr("benchmarks.workloads.sized_data", lambda positives: planted(60, 40).data)
    out = tmp_path / "simd.json"
    printed = CliRunner().invoke(app, ["simd", "--data", likes, "--repeats", "2", "--out", str(out)]).stdout
    assert "no prefetch" in printed
    runs = json.loads(out.read_text())["runs"]
    assert len(runs) == 2
    assert all(run["ratio"][SHIPPED] == 1 for run in runs.values())


def test_frontier_prints_one_object_and_draws(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("dpcml.workflow.DataSource.read", lambda source: planted(60, 40).data)
    command = ["frontier", "--data", "planted", "--model", "ease", "--seeds", "2", "-n", "5"]
    drawn = CliRunner().invoke(app, [*command, "--figure", str(tmp_path / "frontier.png"), "--json"])
    found = json.loads(drawn.stdout)
    assert (tmp_path / "frontier.png").stat().st_size > 1000
    assert {row["method"] for row in found["points"]} == {"minority", "mmr", "xquad", "calibrated"}
    at_zero = [row["NDCG@5"] for row in found["points"] if row["mix"] == 0]
    assert len(at_zero) == 4
    assert all(values == at_zero[0] for values in at_zero)
    assert "inside ours" in CliRunner().invoke(app, command).stdout
    assert CliRunner().invoke(app, [*command, "--part", "tests"]).exit_code


def test_weights_prints_one_object(tmp_path):
    rng = np.random.default_rng(0)
    rows = sorted({(int(u), int(i)) for u, i in rng.integers(0, 30, (400, 2))})
    lines = [f"{u},{i},{(u * i) % 40}" for u, i in rows]
    (tmp_path / "plays.csv").write_text("user,item,plays\n" + "\n".join(lines))
    command = ["weights", "--data", str(tmp_path / "plays.csv"), "--column", "plays", "--model", "itemknn"]
    found = json.loads(CliRunner().invoke(app, [*command, "--set", "k=5", "--json"]).stdout)
    without, weighted = found["rows"]
    assert (without["model"], without["weights"], weighted["weights"]) == ("itemknn", False, True)
    assert without["NDCG@10 all"] != weighted["NDCG@10 all"]
    assert 0 < found["heavy_share"] < 1
    assert "NDCG@10 heavy" in CliRunner().invoke(app, command).stdout
