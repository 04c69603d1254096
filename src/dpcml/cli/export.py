"""``dpcml export``: the arrays of a model, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import AsJson, print_json
from dpcml.cli.options import Folder


def export(
    folder: Folder,
    to: Annotated[str, typer.Option(help="npy (any model), parquet, faiss-ready, or onnx.")] = "npy",
    out: Annotated[Path, typer.Option(help="A new folder, or an older export to replace.")] = Path("dpcml-export"),
    as_json: AsJson = False,
) -> None:
    """Write the arrays and ids of a model to a folder, with a file that describes them."""
    from dpcml.export import export as write
    from dpcml.storage import load

    target = write(load(folder), to, out)
    files = {file.name: file.stat().st_size for file in sorted(target.iterdir())}
    if as_json:
        print_json({"out": str(out), "form": to, "files": files})
        return
    for name, size in files.items():
        print(f"{size / 1e6:>10.2f} MB  {out / name}")
