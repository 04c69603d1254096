"""What a training run shows on the terminal: a progress bar, or a moving line for work without steps to count."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcml.training.trainer import History


def is_shown(wanted: bool | None) -> bool:
    """Return whether progress is shown: as wanted, by default if standard error is a terminal.

    Examples
    --------
    >>> is_shown(True), is_shown(False)
    (True, False)
    """
    return sys.stderr.isatty() if wanted is None else wanted


def tell(text: str) -> None:
    """Print a line on standard error, above the moving line if there is one."""
    with _in_place_of_line():
        print(text, file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def working(text: str, shown: bool | None = None) -> Iterator[None]:
    """Show a moving line on standard error while the body of the ``with`` runs, where that is a terminal.

    A line or a bar that is shown within another line takes its place for as long.

    Parameters
    ----------
    text
        What is being done.
    shown
        Whether to show the line; by default, if standard error is a terminal.

    Examples
    --------
    >>> with working("compiling kernels", shown=False):
    ...     pass
    """
    if not is_shown(shown):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with _in_place_of_line(), Console(stderr=True).status(Text(text)) as line:
        _lines.append(line)
        try:
            yield
        finally:
            _lines.remove(line)


_lines: list[Any] = []  # moving lines, the innermost last


@contextmanager
def _in_place_of_line() -> Iterator[None]:
    """Hide the moving line, if there is one, while something else is shown."""
    line = _lines[-1] if _lines else None
    if line is not None:
        line.stop()
    try:
        yield
    finally:
        if line is not None:
            line.start()


class Progress:
    """Shows epochs, loss, speed, validation figure and time left on standard error, where that is a terminal.

    Parameters
    ----------
    total
        Number of epochs.
    done
        Epochs that a resumed run has already.
    positives
        Training positives, for the speed; 0 shows no speed.
    shown
        Whether to show the bar; by default, if standard error is a terminal.

    Examples
    --------
    >>> with Progress(total=3, shown=False) as progress:
    ...     progress.epoch_part(0.5)
    """

    def __init__(self, total: int, *, done: int = 0, positives: int = 0, shown: bool | None = None) -> None:
        self.shown = is_shown(shown)
        self.total, self.done, self.positives = total, done, positives
        self._bar: Any = None
        self._task: Any = None
        self._place = ExitStack()

    def __enter__(self) -> Progress:
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=self.total, completed=self.done)
            self._place.enter_context(_in_place_of_line())
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._place.close()

    def epoch_part(self, share: float) -> None:
        """Move the bar within the running epoch; ``share`` of it is done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done + share)

    def epoch_done(self, history: History) -> None:
        """Move the bar to the end of the epoch, and show loss, validation value and speed."""
        self.done += 1
        if self._bar is None:
            return
        last = history.epochs[-1]
        validated = [epoch.validation for epoch in history.epochs if epoch.validation is not None]
        description = f"loss {last.loss:.4f}"
        if validated:
            description += f", {history.metric} {validated[-1]:.4f} (best {max(validated):.4f})"
        if self.positives and last.seconds:
            description += f", {self.positives / last.seconds / 1e6:.2f} M positives/s"
        self._bar.update(self._task, completed=self.done, description=description)

    @contextmanager
    def slow_step(self, text: str, after: float = 1.0) -> Iterator[None]:
        """Print ``text`` if the body of the ``with`` takes longer than ``after`` seconds."""
        if not self.shown:
            yield
            return
        timer = threading.Timer(after, lambda: print(text, file=sys.stderr, flush=True))  # noqa: T201
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
