"""``dpcml reproduce``: the tables and figures of the paper, from our runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import note


def reproduce(
    study: Annotated[str, typer.Argument(help="The name of a study, 'all' of the paper's, or 'list'.")] = "list",
    data: Annotated[list[str] | None, typer.Option(help="Only this data set or file; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only this row; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per row; as the study says by default.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few epochs, small grids, one seed; results go to a folder 'quick'.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for results and reports; results/paper by default.")] = None,
) -> None:
    """Run a study and show our figures beside the paper's; runs that are done already are skipped.

    Writes per study a CSV file with one line per run and a Markdown report, and report.md over all studies.
    """
    from dpcml.paper.studies import reproduce_all, reproduce_one, study_titles

    if study == "list":
        for name, title in study_titles().items():
            print(f"{name:<14} {title}")
    elif study == "all":
        print(reproduce_all(data=data, labels=label, seeds=seeds, quick=quick, out=out, say=note))
    else:
        print(reproduce_one(study, data=data, labels=label, seeds=seeds, quick=quick, out=out, say=note))
