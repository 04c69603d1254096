import json

from typer.testing import CliRunner

from benchmarks.__main__ import app


def test_one_part_is_measured_and_the_file_keeps_the_others(tmp_path):
    out = tmp_path / "scale.json"
    out.write_text(json.dumps({"benchmark": "scale", "ray": {"overhead_of_one": 0.01}, "train": "older"}))
    command = ["scale", "--sizes", "1e3", "--part", "train", "--out", str(out), "--figure", str(tmp_path / "scale.png")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "growth 1.00x" in done.stdout
    assert "one Ray worker +1.0%" in done.stdout
    found = json.loads(out.read_text())
    assert found["ray"] == {"overhead_of_one": 0.01}
    assert {(one["vectors"], one["dim"]) for one in found["train"]} == {(5, 100), (2, 100), (5, 50)}
    assert all(one["predicted_cpu_seconds"] > 0 and one["peak_bytes"] > 0 for one in found["train"])
    assert (tmp_path / "scale.png").stat().st_size > 1000


def test_an_unknown_part():
    done = CliRunner().invoke(app, ["scale", "--part", "trian"])
    assert done.exit_code == 2
    assert "did you mean 'train'" in done.output
