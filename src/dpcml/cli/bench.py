"""``dpcml bench``: speed as ratios within one run."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcml.cli.console import AsJson, print_json

app = typer.Typer(help="Measure speed, as ratios within one run.", no_args_is_help=True)


@app.callback()
def options() -> None:
    """Measure speed, as ratios within one run."""


@app.command()
def evaluate(
    data: Annotated[str, typer.Option(help="A data set's name, a file, or 'planted'.")] = "steam-200k",
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; the best counts.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Evaluate a vector model (C 5, d 100), against sorting every user's scores with NumPy."""
    from dpcml.benchmarks.evaluation import bench_evaluation
    from dpcml.data.catalog import load_or_read
    from dpcml.data.planted import planted

    interactions = planted(4000, 5000).data if data == "planted" else load_or_read(data)
    found = {"data": data, **bench_evaluation(interactions, repeats=repeats)}
    if as_json:
        print_json(found)
        return
    print(f"{data}: {found['users']:,} users, {found['items']:,} items, {found['vectors']} vectors of {found['dim']}")
    print(f"  every metric, scoring included   {found['seconds']:.3f} s")
    print(f"  ranks and accuracy, given scores {found['ranking_seconds']:.3f} s")
    print(f"  the same with NumPy's argsort    {found['numpy_seconds']:.3f} s")
    print(f"  ratio                            {found['ratio_to_numpy']:.1f}x")
