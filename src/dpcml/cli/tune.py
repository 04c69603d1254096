"""``dpcml tune``: hyper-parameter search."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, count_bar, note
from dpcml.cli.options import Address, Data, SplitBy, parse_settings, takes_reading

if TYPE_CHECKING:
    from dpcml.tuning import TuningProgress, TuningResult

QUICK_BUDGET, QUICK_EPOCHS = 4, 5


@takes_reading
def tune(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for best.toml, trials.csv and the state of the search.")],
    model: Annotated[str, typer.Option(help="A preset or a model: dpcml, dpcml2, unis, ease...")] = "dpcml",
    space: Annotated[str, typer.Option(help="grid (the paper's for its presets), wide, or a TOML file.")] = "grid",
    budget: Annotated[int, typer.Option(min=1, help="Number of trials; give every model the same.")] = 30,
    sampler: Annotated[str, typer.Option(help="random, grid, or tpe.")] = "random",
    defaults: Annotated[bool, typer.Option("--defaults", help="Try the model's own settings first.")] = False,
    metric: Annotated[str, typer.Option(help="Metric to maximise on the validation part.")] = "P@3",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter that is not searched.")
    ] = None,
    halvings: Annotated[int, typer.Option(min=0, help="Rungs of successive halving by epochs.")] = 0,
    engine: Annotated[str, typer.Option(help="local, or ray.")] = "local",
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Worker processes; by default one per core, or one where the model has no epochs."),
    ] = None,
    address: Address = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search and of the models.")] = 0,
    split: SplitBy = None,
    split_seed: Annotated[int, typer.Option(min=0, help="Seed of the split.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="4 trials of 5 epochs, as a test.")] = False,
    resume: Annotated[bool, typer.Option(help="Continue the search in --out; --no-resume starts it again.")] = True,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Search for parameters: train on one part of the data, validate on a second, leave the test part alone.

    A search that was cut off goes on when the command is given again. The same command in several terminals, or on
    machines that share the folder, adds workers to one search.
    """
    from dpcml.tuning import tune as search
    from dpcml.tuning import write_best
    from dpcml.workflow import DataSource

    source = DataSource(data, reading)
    rule = source.split_rule(split or "ratio", split_seed)
    with bytes_bar(data) as progress:
        interactions = source.read(progress)
    parts = source.split(interactions, rule, split_seed)
    with _hint(out), _bar(f"tuning {model}", metric) as callback:
        found = search(
            interactions, model, space=space, budget=min(budget, QUICK_BUDGET) if quick else budget, sampler=sampler,
            defaults=defaults, metric=metric, fixed=parse_settings(settings or ()), halvings=halvings,
            epochs=QUICK_EPOCHS if quick else None, seed=seed, split=parts, engine=engine, workers=workers,
            address=address, file=out / "trials.csv", resume=resume, label=data, callback=callback,
        )  # fmt: skip
    best = out / "best.toml"
    place = source.to_dict()
    write_best(best, found, data=place["data"], seed=seed, split=rule, split_seed=split_seed, reading=place["options"])
    if as_json:
        print(json.dumps({"out": str(out), **_figures(found)}, allow_nan=False))  # one line, the last one
    else:
        _show(found, out)


def _figures(found: TuningResult) -> dict[str, Any]:
    names = ("model", "trials", "failed", "metric", "best_value", "best_parameters", "seconds", "split")
    return {name: getattr(found, name) for name in names}


def _show(found: TuningResult, out: Path) -> None:
    failed = f", {found.failed} of them failed" if found.failed else ""
    print(f"{found.model}: {found.trials} trials{failed}, {found.seconds:.1f} s, split {found.split}")
    print(f"best {found.metric} {found.best_value:.4f} (validation, released protocol) with")
    for name, value in found.best_parameters.items():
        print(f"  {name} = {value}")
    print(
        f"all trials: {out / 'trials.csv'}\nnext: dpcml train --config {shlex.quote(str(out / 'best.toml'))} --out DIR"
    )


@contextmanager
def _hint(out: Path) -> Iterator[None]:
    """After Ctrl-C, print how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        table = out / "trials.csv"
        note(
            f"finished trials are in {table}: go on with the same command" if table.exists() else "no trial is finished"
        )
        raise


@contextmanager
def _bar(title: str, metric: str) -> Iterator[Callable[[TuningProgress], object]]:
    """Show a progress bar on a terminal, and failed trials everywhere."""
    with count_bar(title) as report:

        def callback(progress: TuningProgress) -> None:
            if progress.value is None:
                note(f"trial {progress.trial} failed: {progress.error}")
            if report is not None:
                best = "" if progress.best is None else f"best {metric} {progress.best:.4f}"
                report(progress.done, progress.total, best)

        yield callback
