"""Printing: tables and progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PIPE_WIDTH = 200  # columns of a table that is not shown on a terminal


def console() -> Any:
    """Return a rich console on standard output; without terminal it is plain, and wide enough not to wrap."""
    from rich.console import Console

    plain = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPE_WIDTH if plain else None, highlight=False, emoji=False)


def bar_mark() -> str:
    """Return what bars are made of: blocks where the output can show them.

    Examples
    --------
    >>> bar_mark() in "█#"
    True
    """
    try:
        "█".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "#"
    return "█"


def print_json(figures: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(figures, indent=2, allow_nan=False))


def note(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr)


Report = Callable[[int, int | None], None]  # told how much is done, and of how much if that is known


def bytes_bar(title: str) -> AbstractContextManager[Report | None]:
    """Show a progress bar of a download on a terminal's standard error; yields what to report bytes to."""
    return _bar(title, "DownloadColumn", visible=False)  # nothing is shown where nothing is fetched


def count_bar(title: str) -> AbstractContextManager[Report | None]:
    """Show a progress bar of things done on a terminal's standard error; yields what to report their number to."""
    return _bar(title, "MofNCompleteColumn", visible=True)


@contextmanager
def _bar(title: str, amount: str, *, visible: bool) -> Iterator[Report | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"), progress.BarColumn(), getattr(progress, amount)(),
        progress.TimeRemainingColumn(),
    )  # fmt: skip
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None, visible=visible)
        yield lambda done, total: shown.update(task, completed=done, total=total, visible=True)
