"""Options that benchmarks share, and where their figures go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcml.cli.console import note, print_json

BenchData = Annotated[
    str | None,
    typer.Option(
        help="A data set's name, a file, or 'planted' (of Steam-200k's shape); by default steam-200k where found."
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="Repetitions; the best counts.")]
Out = Annotated[Path | None, typer.Option(help="Also write the figures to this file, as JSON.")]


def finish(found: dict[str, Any], out: Path | None, as_json: bool) -> bool:
    """Write figures where they are wanted; says whether nothing else is to be printed."""
    if out is not None:
        import json

        from dpcml.utils.files import write_text

        write_text(out, json.dumps(found, indent=2, allow_nan=False) + "\n")
    if as_json:
        print_json(found)
    return as_json


def whole_numbers(text: str) -> list[int]:
    """Return whole numbers that are separated by commas; each may be written as 1e5.

    Examples
    --------
    >>> whole_numbers("1e5,2000")
    [100000, 2000]
    """
    from dpcml.utils.errors import ParameterError

    try:
        found = [int(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        found = []
    if not found or min(found) < 1000:
        raise ParameterError(f"--sizes {text}: pass numbers of at least 1000 with commas, such as 1e5,1e6")
    return found


def say_if_busy(found: dict[str, Any], then: str = "see 'spread' for how far to trust these figures") -> None:
    """Say on standard error that other work was going on while times were taken."""
    if (found["load_before"] or 0) > found["threads"] / 2:
        note(f"the machine was busy (load {found['load_before']:.1f}): {then}")
