"""Printing: tables and progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any

import typer

from dpcml.utils.text import printable

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PIPE_WIDTH = 200  # columns of a table that is not shown on a terminal


def console() -> Any:
    """Return a rich console on standard output; without a terminal it is plain and does not wrap."""
    from rich.console import Console

    plain = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPE_WIDTH if plain else None, highlight=False, emoji=False)


def print_json(figures: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(figures, indent=2, allow_nan=False))


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, below its title if it has one; columns of numbers are right-aligned."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)) if title else None, title_justify="left", box=None, pad_edge=False)
    for name in header:
        right = name in ("", "score", "share", "similarity", "users", "items", "positives")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console().print(table)


def note(text: str) -> None:
    """Print a line on standard error."""
    print(printable(text), file=sys.stderr)


Report = Callable[..., None]  # called with the amount done, the total or None, and perhaps a text to show


def bytes_bar(title: str) -> AbstractContextManager[Report | None]:
    """Show a progress bar of bytes on standard error, if it is a terminal; yields a function to report them to.

    The bar moves to and fro while nothing is downloaded.
    """
    return _bar(f"reading {title}", "DownloadColumn")


def count_bar(title: str) -> AbstractContextManager[Report | None]:
    """Show a progress bar of a count on standard error, if it is a terminal; yields a function to report it to."""
    return _bar(title, "MofNCompleteColumn")


@contextmanager
def _bar(title: str, amount: str) -> Iterator[Report | None]:
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
        task = shown.add_task(title, total=None)
        yield lambda done, total, text="": shown.update(
            task, completed=done, total=total, description=f"{title} {text}".strip()
        )
