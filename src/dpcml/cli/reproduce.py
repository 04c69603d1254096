"""``dpcml reproduce``: the tables and figures of the paper, from our runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpcml.cli.console import AsJson, note, print_json
from dpcml.utils.errors import ParameterError


def reproduce(
    study: Annotated[
        str, typer.Argument(help="A study, 'search', 'all' of the paper's, 'list', or 'verify'.")
    ] = "list",
    data: Annotated[list[str] | None, typer.Option(help="Only this data set or file; may be repeated.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only this row; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per row; as the study says by default.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few epochs, small grids, one seed; results go to a folder 'quick'.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for results and reports; results/paper by default.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes of one thread each; by default one process on all threads.")
    ] = 1,
    cells: Annotated[int | None, typer.Option(min=1, help="verify: figures to run again; 20 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="verify: seed of the draw of figures; 0 by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study and show our figures beside the paper's; runs that are done already are skipped.

    Writes per study a CSV file with one line per run and a Markdown report, and report.md over all studies.

    'search' finds the settings of the methods on validation parts, with the same number of trials each; 'all' does it
    first. Finished trials are skipped. --label names models: dpcml2, ease.

    'verify' runs random figures of the results files again, and says which differ; the exit code is 1 if any does.
    """
    from dpcml.paper.studies import reproduce_all, reproduce_one, search_settings, study_titles

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
    elif study == "search":
        if seeds is not None:
            raise ParameterError("--seeds: a search has the split of seed 0 only; leave it out")
        if search_settings(data=data, models=label, quick=quick, out=out, workers=workers, say=note):
            raise typer.Exit(1)
    elif study == "all":
        print(reproduce_all(data=data, labels=label, seeds=seeds, quick=quick, out=out, workers=workers, say=note))
    else:
        asked: dict[str, Any] = {"data": data, "labels": label, "seeds": seeds, "quick": quick, "out": out}
        print(reproduce_one(study, **asked, workers=workers, say=note))


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
