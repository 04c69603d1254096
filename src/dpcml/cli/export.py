"""``dpcml export``: a model's vectors for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import note


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What 'dpcml train' wrote.")],
    out: Annotated[Path, typer.Option(help="New folder for the files.")],
    to: Annotated[str, typer.Option(help="npy, parquet or faiss-ready.")] = "npy",
) -> None:
    """Write vectors and ids of a model as plain files."""
    from dpcml.exports import export as write
    from dpcml.storage import load

    written = write(load(folder), out, to)
    note(f"{written}: {', '.join(sorted(file.name for file in written.iterdir()))}")
