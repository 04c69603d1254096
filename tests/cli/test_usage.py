"""Words that the parser of the command line does not know."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dpcml.cli import app


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--nonsense"], "error: No such option: --nonsense"),
        (["--nonsense"], "error: No such option: --nonsense"),
        (["trian"], "error: No such command 'trian'"),
        (["recommend"], "error: Missing argument 'DIR'"),
        (["recommend", "model", "-n", "x"], "error: Invalid value for '-n'"),
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


def test_a_command_without_words_shows_its_help():
    for words in ([], ["data"]):
        done = CliRunner().invoke(app, words, prog_name="dpcml")
        assert "Usage: dpcml" in done.output
