"""Options that benchmarks share, and where their figures go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcml.cli.console import print_json

Data = Annotated[
    str | None,
    typer.Option(
        help="A data set's name, a file, or 'planted'; by default steam-200k where it is found, else planted."
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="Repetitions; the best counts.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores by default.")]
Out = Annotated[Path | None, typer.Option(help="Also write the figures to this file, as JSON.")]


def finish(found: dict[str, Any], out: Path | None, as_json: bool) -> bool:
    """Write figures where they are wanted; says whether nothing else is to be printed."""
    if out is not None:
        import json

        from dpcml.files import write_text

        write_text(out, json.dumps(found, indent=2, allow_nan=False) + "\n")
    if as_json:
        print_json(found)
    return as_json
