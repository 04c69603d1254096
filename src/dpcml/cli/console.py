"""Printing: tables and progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def bytes_bar(title: str) -> Iterator[Callable[[int, int | None], None] | None]:
    """Show a progress bar of a download on a terminal's standard error; yields what to report bytes to."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None, visible=False)

        def report(done: int, total: int | None) -> None:
            shown.update(task, completed=done, total=total, visible=True)

        yield report


@contextmanager
def count_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar of things done on a terminal's standard error; yields what to report their number to."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
