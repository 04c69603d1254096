"""Shell completion: what a shell asks the program for when somebody presses the tab key."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def completed(words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    given = {"_DPCML_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    code = "import sys; sys.argv[0] = 'dpcml'; from dpcml.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_commands_and_options_are_completed():
    assert completed("dpcml tr") == ["train"]
    assert completed("dpcml data de") == ["describe"]
    assert completed("dpcml recommend --mix") == ["--mix", "--mix-by"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(shell):
    code = "import sys; sys.argv = ['dpcml', '--show-completion', sys.argv[1]]; from dpcml.cli import main; main()"
    given = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run([sys.executable, "-c", code, shell], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "_DPCML_COMPLETE" in done.stdout
