"""A moving line on the terminal, for work that has no progress to count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working(text: str, shown: bool | None = None) -> Iterator[None]:
    """Show a moving line on standard error while the body of the ``with`` runs, where that is a terminal.

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
    if not (sys.stderr.isatty() if shown is None else shown):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield
