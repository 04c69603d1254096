import json

import numpy as np
from typer.testing import CliRunner

from dpcml.cli import app


def test_bench_evaluate_prints_one_object(tmp_path):
    rng = np.random.default_rng(0)
    rows = sorted({(int(u), int(i)) for u, i in rng.integers(0, 30, (400, 2))})
    (tmp_path / "likes.csv").write_text("user,item\n" + "\n".join(f"{u},{i}" for u, i in rows))
    command = ["bench", "evaluate", "--data", str(tmp_path / "likes.csv"), "--repeats", "1"]
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert {"seconds", "ranking_seconds", "numpy_seconds", "ratio_to_numpy"} <= set(found)
    assert found["users"] == 30
    assert "ratio" in CliRunner().invoke(app, command).stdout


def test_unknown_data_is_bad_input():
    result = CliRunner().invoke(app, ["bench", "evaluate", "--data", "steam-200"])
    assert result.exit_code == 2
    assert "did you mean 'steam-200k'" in result.output
