"""Every script in examples/ runs and prints what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWN = {
    "quickstart.py": "because of your interest in",
    "compare_models.py": "* best, = not significantly different",
    "new_users.py": "recall@20 of 50 new users",
    "tune_and_train.py": "tuned",
    "interests_and_mix.py": "mix=1.0",
    "first_day.py": "of ten items 0 are known",
}


def test_every_example_is_run():
    assert {file.name for file in EXAMPLES.glob("*.py")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_runs(name, tmp_path):
    if name == "tune_and_train.py":
        pytest.importorskip("optuna")
    command = [sys.executable, "-W", "error::FutureWarning", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert SHOWN[name] in done.stdout


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.name)
def test_uses_public_names_only(file):
    imports = [line for line in file.read_text(encoding="utf-8").splitlines() if "dpcml" in line and "import" in line]
    assert [line for line in imports if not line.startswith("from dpcml import ")] == []
