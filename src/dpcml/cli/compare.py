"""``dpcml compare``: several models on repeated splits of the same data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, count_bar, note, print_json
from dpcml.cli.options import Data, SplitBy, parse_settings, takes_reading
from dpcml.utils.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from dpcml.models import Recommender


@takes_reading
def compare(
    data: Data,
    models: Annotated[str, typer.Option(help="Presets or models, with commas: blend,dpcml,ease.")],
    folds: Annotated[
        int | None,
        typer.Option(min=1, help="Random splits; 5 by default, 1 for --split last and time, and for shards."),
    ] = None,
    metrics: Annotated[str, typer.Option(help="With commas, or families such as accuracy.")] = "P@10,R@10,NDCG@10,MAP",
    protocol: Annotated[str, typer.Option(help="strict, text, or released (the paper's tables).")] = "strict",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of all models that have it."),
    ] = None,
    split: SplitBy = None,
    split_seed: Annotated[int, typer.Option(min=0, help="Seed of the first split; the others follow.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write the table to this .csv file.")] = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Train models on repeated splits and compare them on the test parts, with a paired test over users."""
    from dpcml.evaluation.compare import compare_models
    from dpcml.workflow import SHARDS, DataSource

    source = DataSource(data, reading)
    rule = source.split_rule(split or "ratio", split_seed)
    chosen = _models(models, parse_settings(settings or ()))
    with bytes_bar(data) as progress:
        interactions = source.read(progress)
    with count_bar("comparing") as report:
        found = compare_models(
            chosen, interactions,
            folds=(5 if rule == "ratio" else 1) if folds is None else folds, seed=split_seed,
            split=source.split(interactions, rule, split_seed) if rule == SHARDS else rule,
            metrics=metrics.split(","), protocol=protocol, callback=report or (lambda *_: None),
        )  # fmt: skip
    if out is not None:
        found.to_csv(out)
        note(f"table: {out}")
    if as_json:
        runs = max(found.seeds.values())
        print_json({"data": data, "split": rule, "folds": runs, "rows": found.to_frame().to_dicts()})
    else:
        print(found)


def _models(names: str, settings: dict[str, Any]) -> dict[str, Recommender]:
    """Return unfitted models by name, with the settings that each of them has."""
    from dpcml.models import create

    asked = [name for name in (part.strip() for part in names.split(",")) if name]
    twice = next((name for name in asked if asked.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"--models {names}: {twice} is named twice; name each model once")
    found = {name: create(name) for name in asked}
    known = {key for model in found.values() for key in model.known_params()}
    for key in settings:
        if all(model.param_name(key) is None for model in found.values()):
            raise ParameterError(f"--set {key}: none of {', '.join(found)} has it: {did_you_mean(key, known)}")
    for model in found.values():  # a blend takes parameters of its members
        model.set_params(**{key: value for key, value in settings.items() if model.param_name(key) is not None})
    return found
