"""``dpcml train``: from data to a model directory."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, note
from dpcml.cli.options import (
    Address,
    Engine,
    SplitBy,
    Threads,
    Workers,
    on_ray,
    parse_settings,
    read_config,
    takes_reading,
)
from dpcml.training.progress import working
from dpcml.utils.errors import ParameterError
from dpcml.utils.text import printable

if TYPE_CHECKING:
    from dpcml.data.interactions import Interactions
    from dpcml.data.items import ItemTable
    from dpcml.models import Recommender
    from dpcml.models.runners import Runner


@takes_reading
def train(
    data: Annotated[
        str | None, typer.Option(help="A data set's name, a file, a folder of shards, or 'planted'.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A preset or a model: blend (of dpcml, ease, rp3beta and ials, default), dpcml, dpcml2, cml..."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the model.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file: data, reading, model, parameters, seed, split, split_seed, out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the model; 0 by default.")] = None,
    split: SplitBy = None,
    split_seed: Annotated[int | None, typer.Option(help="Seed of the split; 0 by default.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the model.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Train on all positives; leave no test part.")] = False,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Then train on all positives with what the split has found.")
    ] = True,
    cold_items: Annotated[
        bool, typer.Option("--cold-items", help="Also recommend items of --items that nobody likes, by their content.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run from its checkpoint.")] = False,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Epochs between checkpoints.")] = 10,
    track: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=WHERE]", help="Send the run to mlflow, tensorboard or wandb."),
    ] = None,
    threads: Threads = None,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    sync_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="A worker's batches between two exchanges of item vectors on Ray; by default items / batch."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors and warnings only.")] = False,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Train on one part of the data, stop by a second, test on the rest; then train on all and save that.

    By default the parts are 60, 20 and 20 % of each user's positives. 'dpcml evaluate' goes on reporting held-out
    figures. Options of the command line override the config file.
    """
    with working("starting", False if quiet else None):
        asked = _asked(config, data=data, model=model, seed=seed, split=split, split_seed=split_seed, out=out)
        parameters = {**asked.get("parameters", {}), **parse_settings(settings or ())}
        from dpcml.warmup import expect_engine, start_warmup

        # Before the other imports, which take as long as a process takes to start.
        compiles = not parameters and "model" not in asked and engine == "local" and start_warmup()
        from dpcml.models import RECOMMENDED
        from dpcml.storage import CARD, free_place
        from dpcml.training.tracking import make_tracker
        from dpcml.workflow import DataSource, checkpoint_folder, train_and_save

        label, folder = asked.get("model", RECOMMENDED), Path(asked["out"])
        learner = _learner(label, parameters, asked.get("seed"), threads)
        if compiles:
            expect_engine()
        trackers = [make_tracker(text) for text in track or ()]
        runner = (
            _runner(learner, workers or 1, address, sync_every)
            if on_ray(engine, workers=workers, address=address, sync_every=sync_every)
            else None
        )
    replaces = (free_place(folder) / CARD).exists()
    source = DataSource(asked["data"], {**asked.get("reading", {}), **reading})
    if not everything:
        source.split_rule(asked.get("split", "ratio"), asked.get("split_seed", 0))  # tells mistakes before it reads
    if compiles and not quiet:
        note("first training here: kernels are compiled meanwhile, once")
    catalogue = _catalogue(source.options) if cold_items else None
    with bytes_bar(source.data) as progress:
        interactions = source.read(progress)
    kept = checkpoint_folder(folder)
    if not quiet:
        note(f"{source.data}: {interactions!r}")
        for line in interactions.preparation.lines():
            note(f"- {line}")
        if replaces:
            note(f"{folder} has a model: it is replaced when the new one is whole")
        begun = any(kept.rglob("checkpoint*"))
        if resume and not begun:
            note(f"no checkpoint in {kept}: starting at the beginning")
        if begun and not resume:
            note(f"{kept} holds a run that was interrupted: this one takes its place; --resume goes on with it")
    try:
        found = train_and_save(
            learner, interactions, folder,
            source=source, label=label, split=asked.get("split", "ratio"), split_seed=asked.get("split_seed", 0),
            everything=everything, refit=refit, resume=resume, checkpoint_every=checkpoint_every,
            progress=False if quiet else None, trackers=trackers, cold_items=catalogue, runner=runner,
        )  # fmt: skip
    except KeyboardInterrupt:
        if any(kept.rglob("checkpoint*")):
            note(f"the run so far is in {kept}: go on with the same command and --resume")
        raise
    if as_json:
        print(json.dumps(found, allow_nan=False))  # one line, the last one
    elif not quiet:
        _show(found)
        print(f"next: dpcml recommend {shlex.quote(found['out'])} --user {_example(interactions)} --explain")


def _catalogue(reading: Mapping[str, Any]) -> ItemTable:
    """Return all items of the file that --items names."""
    from dpcml.workflow import read_catalogue

    if reading.get("items") is None:
        raise ParameterError("--cold-items: add --items FILE with titles or genres of the items that nobody likes")
    return read_catalogue(reading["items"], reading)


def _asked(config: Path | None, **given: Any) -> dict[str, Any]:
    """Return the settings of the config file, overridden by those of the command line."""
    asked = {} if config is None else read_config(config)
    asked |= {name: value for name, value in given.items() if value is not None}
    for name in ("data", "out"):
        if name not in asked:
            raise ParameterError(f"--{name} is missing: name it, or put {name} = ... into the --config file")
    return asked


def _learner(name: str, parameters: dict[str, Any], seed: int | None, threads: int | None) -> Recommender:
    """Return the unfitted model, with seed and threads if it has such parameters."""
    from dpcml.models import create

    known = create(name).get_params()
    for option, key, value in (("--seed", "random_state", seed), ("--threads", "n_threads", threads)):
        if value is None or key not in known:
            continue
        if parameters.get(key, value) != value:
            raise ParameterError(f"{option} {value} and {key}={parameters[key]!r} contradict each other: give one")
        parameters = {**parameters, key: value}
    return create(name, **parameters)


def _runner(learner: Recommender, workers: int, address: str | None, sync_every: int | None) -> Runner:
    """Return what trains on Ray; an error at once if the model cannot, or Ray is not installed."""
    from dpcml.scale import RayRunner
    from dpcml.utils.packages import require

    learner.check_runner()
    require("ray", "ray")
    return RayRunner(workers, address, sync_every)


def _example(interactions: Interactions) -> str:
    """Return a user's id as a shell takes it."""
    return shlex.quote(printable(str(interactions.user_ids[0])))


def _show(found: dict[str, Any]) -> None:
    print(
        f"{found['model']} on {found['positives']:,} positives of {found['users']:,} users: {found['seconds']:.1f} s",
        end="",
    )
    if found["epochs"]:
        print(f", {found['epochs']} epochs, {found['positives_per_second']:,.0f} positives/s", end="")
    if found["validation"] is not None:
        whose = f"{found['validation_of']} alone " if found["validation_of"] else ""
        best = f"best after epoch {found['best_epoch']}: {found['metric']} {found['validation']:.4f} (validation)"
        print(f"; {whose}{best}", end="")
    print(f"\nsaved to {found['out']}, dpcml {found['version']}, seed {found['seed']}", end="")
    if found["split"]:
        split = found["split"]
        seeded = "" if split["seed"] is None else f", seed {split['seed']}"
        print(f", split {split['hash']} ({split['rule']}{seeded})")
        figures = ", ".join(
            f"{name} {value:.4f}" for name, value in found["test"]["metrics"].items() if value is not None
        )
        print(f"held out ({found['test']['protocol']} protocol, {found['test']['n_users']:,} users): {figures}")
        if found["refit"]:
            print(
                f"for use: trained on all {found['refit']['positives']:,} positives, {found['refit']['seconds']:.1f} s"
            )
        if found.get("cold_items"):
            print(f"added {found['cold_items']:,} items that nobody likes yet, by their content")
    else:
        print(", trained on everything")
