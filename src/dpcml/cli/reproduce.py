"""``dpcml reproduce``: the tables and figures of the paper, from our runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import AsJson, note, print_json
from dpcml.utils.errors import ParameterError


def reproduce(
    study: Annotated[str, typer.Argument(help="A study, 'all' of the paper's, 'list', or 'verify'.")] = "list",
    data: Annotated[list[str] | None, typer.Option(help="Only this data set or file; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only this row; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per row; as the study says by default.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few epochs, small grids, one seed; results go to a folder 'quick'.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for results and reports; results/paper by default.")] = None,
    cells: Annotated[int | None, typer.Option(min=1, help="verify: figures to run again; 20 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="verify: seed of the draw of figures; 0 by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study and show our figures beside the paper's; runs that are done already are skipped.

    Writes per study a CSV file with one line per run and a Markdown report, and report.md over all studies.

    'verify' runs random figures of the results files again, and says which differ; the exit code is 1 if any does.
    """
    from dpcml.paper.studies import reproduce_all, reproduce_one, study_titles

    if study == "verify":
        if seeds is not None:
            raise ParameterError("--seeds: verify runs the seeds that it draws; leave it out, or choose with --seed")
        _verify(cells or 20, data, label, seed or 0, quick, out, as_json)
        return
    for name, given in (("--cells", cells is not None), ("--seed", seed is not None), ("--json", as_json)):
        if given:
            raise ParameterError(f"{name}: is an option of 'dpcml reproduce verify' only; leave it out")
    if study == "list":
        for name, title in study_titles().items():
            print(f"{name:<14} {title}")
    elif study == "all":
        print(reproduce_all(data=data, labels=label, seeds=seeds, quick=quick, out=out, say=note))
    else:
        print(reproduce_one(study, data=data, labels=label, seeds=seeds, quick=quick, out=out, say=note))


def _verify(
    cells: int, data: list[str] | None, label: list[str] | None, seed: int, quick: bool, out: Path | None, as_json: bool
) -> None:
    """Print which of some random figures differ, and exit with 1 if any does."""
    from dpcml.paper.verify import verify

    found = verify(cells, data=data, labels=label, seed=seed, quick=quick, out=out, say=note)
    if as_json:
        print_json(found.to_dict())
    else:
        print(f"{found.identical} of {found.cells} figures are identical")
        for one in found.different:
            where = f"{one.study}: {one.data}, {one.row}, seed {one.seed}, {one.metric}"
            print(f"{where}: {one.file} in the file, now {one.now}")
        if found.outdated:
            print(f"{found.outdated} were made by other code, settings or data; 'dpcml reproduce NAME' renews them")
    if found.different:
        raise typer.Exit(1)
