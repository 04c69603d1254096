"""``dpcml tune``: search for the settings of a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, note
from dpcml.cli.options import Data, takes_reading
from dpcml.cli.settings import parse_settings

if TYPE_CHECKING:
    from dpcml.tuning.search import Standing, Tuned

QUICK_BUDGET, QUICK_EPOCHS = 4, 5


@takes_reading
def tune(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for trials.csv and best.toml.")],
    model: Annotated[str, typer.Option(help="A preset or a model: dpcml, dpcml2, unis, ease...")] = "dpcml",
    space: Annotated[str, typer.Option(help="grid (the paper's for its presets), wide, or a TOML file.")] = "grid",
    budget: Annotated[int, typer.Option(min=1, help="Settings to try; the same for every model, to be fair.")] = 30,
    sampler: Annotated[str, typer.Option(help="random, grid, or bayes (optuna).")] = "random",
    defaults: Annotated[bool, typer.Option("--defaults", help="Try the model's own settings first.")] = False,
    metric: Annotated[str, typer.Option(help="What counts on the validation part.")] = "P@3",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter that is not searched.")
    ] = None,
    halvings: Annotated[int, typer.Option(min=0, help="Times the better half is trained for twice the epochs.")] = 0,
    engine: Annotated[str, typer.Option(help="local, or ray.")] = "local",
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Trials at once; one per core by default, one where models have no epochs."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search and of the models.")] = 0,
    split_seed: Annotated[int, typer.Option(min=0, help="Seed of the split, whatever --seed.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="4 settings, 5 epochs each: to see that it works.")] = False,
    resume: Annotated[bool, typer.Option(help="Skip trials that --out holds already.")] = True,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Search for settings on 60 % of each user's positives, judged on 20 %; the test part is never looked at.

    A search that was cut off goes on where it was when the command is given again.
    """
    from dpcml.tuning.best import write_best
    from dpcml.tuning.search import tune as search
    from dpcml.workflow import Source

    source = Source(data, reading)
    with bytes_bar(data) as progress:
        interactions = source.read(progress)
    with _hint(out), _bar(f"tuning {model}", metric) as watch:
        found = search(
            interactions, model, space=space, budget=min(budget, QUICK_BUDGET) if quick else budget, sampler=sampler,
            defaults=defaults, metric=metric, fixed=parse_settings(settings or ()), halvings=halvings,
            epochs=QUICK_EPOCHS if quick else None, seed=seed, split_seed=split_seed, engine=engine, workers=workers,
            file=out / "trials.csv", resume=resume, label=data, watch=watch,
        )  # fmt: skip
    best = out / "best.toml"
    place = source.to_dict()["data"]
    write_best(best, found, data=place, seed=seed, split_seed=split_seed, reading=reading)
    if as_json:
        print(json.dumps({"out": str(out), **_figures(found)}, allow_nan=False))  # one line, the last one
    else:
        _show(found, out)


def _figures(found: Tuned) -> dict[str, Any]:
    names = ("model", "trials", "failed", "metric", "best_value", "best_parameters", "seconds", "split")
    return {name: getattr(found, name) for name in names}


def _show(found: Tuned, out: Path) -> None:
    failed = f", {found.failed} of them failed" if found.failed else ""
    print(f"{found.model}: {found.trials} trials{failed}, {found.seconds:.1f} s, split {found.split}")
    print(f"best {found.metric} {found.best_value:.4f} (validation, released protocol) with")
    for name, value in found.best_parameters.items():
        print(f"  {name} = {value}")
    print(f"all trials: {out / 'trials.csv'}\nnext: dpcml train --config {out / 'best.toml'} --out DIR")


@contextmanager
def _hint(out: Path) -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"finished trials are in {out / 'trials.csv'}: go on with the same command")
        raise


@contextmanager
def _bar(title: str, metric: str) -> Iterator[Callable[[Standing], object]]:
    """Show trials and the best figure so far on a terminal; elsewhere only what failed."""
    if not sys.stderr.isatty():
        yield _failure
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def watch(standing: Standing) -> None:
            if standing.outcome.value is None:
                shown.console.print(_failed(standing), markup=False, highlight=False)
            best = "" if standing.best is None else f"best {metric} {standing.best:.4f}"
            shown.update(task, completed=standing.done, total=standing.total, description=best)

        yield watch


def _failure(standing: Standing) -> None:
    if standing.outcome.value is None:
        note(_failed(standing))


def _failed(standing: Standing) -> str:
    return f"trial {standing.task.number} failed: {standing.outcome.error}"
