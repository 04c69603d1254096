"""``dpcml train``: from data to a model directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, note
from dpcml.cli.options import Threads, parse_settings, read_config, takes_reading
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from dpcml.models import Recommender


@takes_reading
def train(
    data: Annotated[str | None, typer.Option(help="A data set's name, a file, or 'planted'.")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="A preset or a model: blend (of dpcml and ease, default), dpcml, dpcml2, cml..."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the model.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file: data, model, seed, split_seed, out, parameters.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the model; 0 by default.")] = None,
    split_seed: Annotated[int | None, typer.Option(help="Seed of the split; 0 by default.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the model.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Train on all positives; leave no test part.")] = False,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="Then train on all positives with what the split has found.")
    ] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run from its checkpoint.")] = False,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Epochs between checkpoints.")] = 10,
    threads: Threads = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Train on 60 % of each user's positives, stop by another 20 %, test on the rest; then train on all and save that.

    'dpcml evaluate' goes on reporting held-out figures. Options of the command line override the config file.
    """
    from dpcml.models import RECOMMENDED
    from dpcml.storage import free_place
    from dpcml.workflow import DataSource, checkpoint_folder, train_and_save

    asked = _asked(config, data=data, model=model, seed=seed, split_seed=split_seed, out=out)
    label, folder = asked.get("model", RECOMMENDED), Path(asked["out"])
    parameters = {**asked.get("parameters", {}), **parse_settings(settings or ())}
    learner = _learner(label, parameters, asked.get("seed"), threads)
    free_place(folder)
    source = DataSource(asked["data"], reading)
    with bytes_bar(source.data) as progress:
        interactions = source.read(progress)
    kept = checkpoint_folder(folder)
    if not quiet:
        note(f"{source.data}: {interactions!r}")
        for line in interactions.preparation.lines():
            note(f"- {line}")
        if resume and not any(kept.glob("checkpoint*")):
            note(f"no checkpoint in {kept}: starting at the beginning")
    try:
        found = train_and_save(
            learner, interactions, folder,
            source=source, label=label, split_seed=asked.get("split_seed", 0), everything=everything, refit=refit,
            resume=resume, checkpoint_every=checkpoint_every, progress=False if quiet else None,
        )  # fmt: skip
    except KeyboardInterrupt:
        if any(kept.glob("checkpoint*")):
            note(f"the run so far is in {kept}: go on with the same command and --resume")
        raise
    if as_json:
        print(json.dumps(found, allow_nan=False))  # one line, the last one
    elif not quiet:
        _show(found)


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


def _show(found: dict[str, Any]) -> None:
    print(
        f"{found['model']} on {found['positives']:,} positives of {found['users']:,} users: {found['seconds']:.1f} s",
        end="",
    )
    if found["epochs"]:
        print(f", {found['epochs']} epochs, {found['positives_per_second']:,.0f} positives/s", end="")
    if found["validation"] is not None:
        print(
            f"; best after epoch {found['best_epoch']}: {found['metric']} {found['validation']:.4f} (validation)",
            end="",
        )
    print(f"\nsaved to {found['out']}, dpcml {found['version']}, seed {found['seed']}", end="")
    if found["split"]:
        split = found["split"]
        print(f", split {split['hash']} ({split['rule']}, seed {split['seed']})")
        figures = ", ".join(
            f"{name} {value:.4f}" for name, value in found["test"]["metrics"].items() if value is not None
        )
        print(f"held out ({found['test']['protocol']} protocol, {found['test']['n_users']:,} users): {figures}")
        if found["refit"]:
            print(
                f"for use: trained on all {found['refit']['positives']:,} positives, {found['refit']['seconds']:.1f} s"
            )
        print(f"next: dpcml evaluate {found['out']}")
    else:
        print(", trained on everything")
