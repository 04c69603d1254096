import os
import pty
import subprocess
import sys
import time

import pytest

from dpcml.training import progress
from dpcml.training.progress import Progress, working
from dpcml.training.trainer import Epoch, History

MOVING = "from dpcml.training.progress import working\nwith working('compiling [kernels]', {}): pass"
NESTED = """
import time
from dpcml.training.progress import Progress, working
with working("fitting"):
    with working("initial vectors"):
        time.sleep(0.3)
    with Progress(4):
        time.sleep(0.3)
    time.sleep(0.3)
"""
SHOWN = """
import numpy as np
from dpcml.training.trainer import Epoch, History
from dpcml.training.progress import Progress
with Progress(4, positives=10**6) as progress:
    history = History("P@3")
    for number in range(1, 5):
        progress.epoch_part(0.5)
        history.epochs.append(Epoch(number, 0.8 / number, 0.1, 0.5, 0.25 if number == 2 else None))
        progress.epoch_done(history)
        progress._bar.refresh()
"""


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


def test_nothing_is_shown_without_a_terminal(capsys):
    with Progress(3) as progress:
        progress.epoch_part(0.5)
        progress.epoch_done(History("P@3", [Epoch(1, 0.5, 0.1, 1.0)]))
        with progress.slow_step("compiling", after=0.0):
            time.sleep(0.05)
    assert capsys.readouterr() == ("", "")
    assert progress.done == 1


def test_training_is_quiet_without_a_terminal(parts, model, capfd):
    model(epochs=2).fit(parts.train, parts.valid)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="there are no terminals here")
def test_terminal_shows_loss_figure_and_speed():
    text = on_terminal(SHOWN)
    for part in ("training", "loss 0.8000", "4/4", "loss 0.2000", "P@3 0.2500 (best 0.2500)", "2.00 M positives/s"):
        assert part in text


def test_slow_step_speaks_only_when_slow(capsys):
    progress = Progress(1, shown=True)
    with progress.slow_step("compiling kernels, once", after=30.0):
        pass
    assert capsys.readouterr().err == ""
    with progress.slow_step("compiling kernels, once", after=0.01):
        time.sleep(0.3)
    assert capsys.readouterr().err == "compiling kernels, once\n"


def test_failed_step_is_not_called_slow(capsys):
    with pytest.raises(RuntimeError), Progress(1, shown=True).slow_step("compiling", after=0.2):
        raise RuntimeError
    time.sleep(0.4)
    assert capsys.readouterr().err == ""


def test_no_moving_line_without_a_terminal(capfd):
    with working("compiling"):
        pass
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="there are no terminals here")
def test_a_terminal_shows_the_text_as_it_is():
    assert "compiling [kernels]" in on_terminal(MOVING.format(None))
    assert on_terminal(MOVING.format(False)) == ""


@pytest.mark.skipif(not hasattr(pty, "openpty"), reason="there are no terminals here")
def test_a_bar_or_line_takes_the_place_of_the_line_around_it():
    seen = on_terminal(NESTED)
    inner, bar = seen.index("initial vectors"), seen.index("training")
    assert "fitting" in seen[:inner]
    assert "fitting" in seen[bar:], "it comes back"
    last_line, last_bar = seen.rindex("initial vectors"), seen.rindex("training")
    assert "fitting" not in seen[inner:last_line]
    assert "fitting" not in seen[bar:last_bar]


def test_an_error_within_leaves_no_line():
    with pytest.raises(ValueError, match="no"), working("fitting", True), working("initial vectors", True):
        raise ValueError("no")
    assert not progress._lines
