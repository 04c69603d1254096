"""``dpcml reproduce``: studies whose results stand beside the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import note


def reproduce(
    study: Annotated[str, typer.Argument(help="The name of a study, or 'list'.")] = "list",
    data: Annotated[list[str] | None, typer.Option(help="Only these data sets; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only these rows; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per row; as the study says by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results and tables.")] = Path("results"),
) -> None:
    """Run a study and show our figures beside the paper's; runs that are done already are skipped."""
    from dpcml.experiments.report import markdown
    from dpcml.experiments.runner import read_spec, run, specs
    from dpcml.files import write_text

    if study == "list":
        for name in specs():
            print(f"{name:<12} {read_spec(name).title}")
        return
    spec = read_spec(study)
    done = run(spec, out / f"{study}.csv", data=data, labels=label, seeds=seeds, say=note)
    text = markdown(spec, done)
    write_text(out / f"{study}.md", text)
    print(text)
