from typer.testing import CliRunner

from dpcml.cli import app


def test_demo_prints_and_writes(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--users", "200", "--items", "200", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "planted world: 200 users" in result.output
    assert "protocol strict" in result.output
    assert {"world.csv", "comparison.csv", "interests.png"} <= {file.name for file in (tmp_path / "out").iterdir()}


def test_impossible_worlds_are_bad_input(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--items", "3", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "n_categories=12" in result.output
    assert not (tmp_path / "out").exists()
