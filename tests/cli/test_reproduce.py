import polars as pl
import pytest
from typer.testing import CliRunner

from dpcml.cli import app
from dpcml.data.synthetic import planted


@pytest.fixture
def world(tmp_path):
    planted(120, 80, seed=1).write_csv(tmp_path / "world.csv")
    return str(tmp_path / "world.csv")


def invoke(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def test_studies_are_listed():
    lines = invoke("list").stdout.splitlines()
    assert any(line.startswith("overall ") for line in lines)
    assert any(line.startswith("ml-10m ") for line in lines)


def test_some_rows_of_a_study_on_a_file(world, tmp_path):
    words = ["overall", "--data", world, "--label", "popularity", "--label", "itemKNN", "--seeds", 2, "--out", tmp_path]
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    assert "| popularity | 2 |" in result.stdout
    done = pl.read_csv(tmp_path / "overall.csv")
    assert sorted(done["seed"].to_list()) == [0, 0, 1, 1]
    assert (tmp_path / "report.md").exists()
    assert "seed 1" not in invoke(*words).stderr, "finished runs are skipped"


@pytest.mark.parametrize("study", ["overall", "all"])
def test_an_unknown_row_is_bad_input(study, tmp_path):
    result = invoke(study, "--label", "itemkn", "--out", tmp_path)
    assert result.exit_code == 2
    assert "no row 'itemkn' in these studies: did you mean 'itemKNN'?" in result.stderr
    assert not list(tmp_path.iterdir())


def test_all_does_the_studies_of_a_set(world, tmp_path, monkeypatch):
    result = invoke("all", "--data", "gowalla", "--quick", "--out", tmp_path)
    assert result.exit_code == 2, "no study of the paper is about it"
    assert "overall: is about" in result.stderr


def test_an_unknown_study_is_bad_input(tmp_path):
    result = invoke("overal", "--out", tmp_path)
    assert result.exit_code == 2
    assert "did you mean 'overall'" in result.stderr
