"""``dpcml evaluate``: a saved model on the test part of its split."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, note
from dpcml.cli.options import Address, DataNow, Engine, Folder, Threads, Workers, on_ray, takes_reading
from dpcml.utils.errors import ParameterError
from dpcml.utils.text import printable


@takes_reading
def evaluate(
    folder: Folder,
    data: DataNow = None,
    protocol: Annotated[str, typer.Option(help="strict, text, or released (the paper's tables).")] = "strict",
    metrics: Annotated[
        str | None, typer.Option(help="Only these, with commas: NDCG@10,minority_R@10, or families such as accuracy.")
    ] = None,
    k: Annotated[str, typer.Option(help="Cut-offs k of P@k, R@k and so on, with commas.")] = "3,5,10,20",
    at: Annotated[str | None, typer.Option("--at", hidden=True)] = None,  # the old name of --k
    threads: Threads = None,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Rank each user's test positives among the full catalogue, on the split that the model was trained with."""
    if at is not None:
        note("--at is called --k now; the old name goes in the next version")
        k = at
    from dpcml.storage import read_card
    from dpcml.workflow import evaluate_saved, evaluated_folder

    way: dict[str, Any] = {}
    if on_ray(engine, workers=workers, address=address):
        from dpcml.scale.ranking import RayRanking

        way["rank"] = RayRanking(evaluated_folder(folder), workers or 1, address)
    with bytes_bar(str(folder)) as progress:
        report = evaluate_saved(
            folder,
            data=data,
            options=reading,
            protocol=protocol,
            metrics=None if metrics is None else metrics.split(","),
            k=_cutoffs(k),
            n_threads=threads,
            progress=progress,
            **way,
        )
    if as_json:
        print(report.to_json())
        return
    print(printable(str(report)))
    record = read_card(folder)["record"]
    split, seed = record["split"], record.get("seed", report.parameters.get("random_state"))
    seeded = "" if split["seed"] is None else f" with seed {split['seed']}"
    print(f"{folder}, dpcml {report.version}, seed {seed}, split {split['rule']}{seeded}")


def _cutoffs(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--k {text!r}: write whole numbers with commas between, such as 3,5,10") from None
