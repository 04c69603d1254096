import os
import pty
import subprocess
import sys

import pytest

from dpcml.training.progress import working

PROGRAM = "from dpcml.training.progress import working\nwith working('compiling [kernels]', {}): pass"


def on_terminal(program):
    """Return what a program writes to a terminal as standard error."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen([sys.executable, "-c", program], stderr=theirs, stdout=subprocess.PIPE, env=environment)
    os.close(theirs)
    seen = b""
    try:
        while some := os.read(ours, 4096):
            seen += some
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.communicate()[0] == b""
    return seen.decode()


def test_nothing_is_shown_without_a_terminal(capfd):
    with working("compiling"):
        pass
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="there are no terminals here")
def test_a_terminal_shows_the_text_as_it_is():
    assert "compiling [kernels]" in on_terminal(PROGRAM.format(None))
    assert on_terminal(PROGRAM.format(False)) == ""
