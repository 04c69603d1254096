"""``dpcml export``: what a model has learned, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import AsJson, print_json
from dpcml.cli.options import Folder


def export(
    folder: Folder,
    to: Annotated[str, typer.Option(help="npy (any model), parquet, or faiss-ready.")] = "npy",
    out: Annotated[Path, typer.Option(help="A new folder, or an older export.")] = Path("dpcml-export"),
    as_json: AsJson = False,
) -> None:
    """Write a model's arrays and ids to a folder that explains itself."""
    from dpcml.exporting import export as write
    from dpcml.storage import load

    target = write(load(folder), to, out)
    files = {file.name: file.stat().st_size for file in sorted(target.iterdir())}
    if as_json:
        print_json({"out": str(out), "form": to, "files": files})
        return
    for name, size in files.items():
        print(f"{size / 1e6:>10.2f} MB  {out / name}")
