"""Words that the parser of the command line does not know."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from dpcml import Popularity, save
from dpcml.cli import app


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--nonsense"], "error: No such option: --nonsense"),
        (["--nonsense"], "error: No such option: --nonsense"),
        (["trian"], "error: No such command 'trian'"),
        (["recommend"], "error: Missing argument 'DIR'"),
        (["recommend", "model", "-n", "x"], "error: Invalid value for '-n': 'x' "),
        (["compare", "--folds", "0"], "error: Invalid value for '--folds': '0' should be greater"),
        (["evaluate", "model", "--k"], "error: Option '--k' requires an argument"),
        (["data", "fetch"], "error: Missing argument 'NAME'"),
    ],
)
def test_a_wrong_word_is_one_line_that_names_the_way_out(words, message):
    done = CliRunner().invoke(app, words, prog_name="dpcml")
    assert done.exit_code == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
    assert "--help'" in done.stderr


def test_a_warning_is_one_line_and_shown_once():
    """Python shows it again after a compilation, which changes the filters for a moment."""
    code = "import warnings; from dpcml.cli import _warn_once; _warn_once(); warnings.simplefilter('always')\n"
    code += "for text in ('no weights', 'no weights', 'another'): warnings.warn(text)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "warning: no weights\nwarning: another\n"


def test_a_command_without_words_shows_its_help():
    for words in ([], ["data"]):
        done = CliRunner().invoke(app, words, prog_name="dpcml")
        assert "Usage: dpcml" in done.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["recommend", "{}/model", "--user", "1"], 0, ""),
        (["demo", "--out", "here"], 2, "error: here: the current folder has been deleted"),
    ],
)
def test_where_the_current_folder_is_gone_full_paths_work_and_others_are_one_line(tmp_path, words, code, said):
    """Finding 19: coverage, which Numba imports where it is installed, asked for the current folder."""
    save(Popularity().fit(np.eye(3)), tmp_path / "model")
    (tmp_path / "gone").mkdir()
    gone = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    command = ["sh", "-c", gone, "sh", tmp_path / "gone", sys.executable, "-P", "-m", "dpcml"]
    given = [word.format(tmp_path) for word in words]
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[: len(said)]) == (code, said), done.stderr
    assert "Traceback" not in done.stderr


def test_numba_names_sources_where_the_current_folder_is_gone(tmp_path):
    """Finding 19: it named them relative to the current folder, and so compiled nothing."""
    code = "from dpcml.cli import _without_current_folder as allow; allow()\n"
    code += "from numba.core.ir import Loc; print(Loc('/a.py', 1).strformat())"
    (tmp_path / "gone").mkdir()
    gone = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    command = ["sh", "-c", gone, "sh", tmp_path / "gone", sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert 'File "/a.py", line 1' in done.stdout, done.stderr
