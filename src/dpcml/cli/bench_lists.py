"""``dpcml bench fold-in``, ``mix`` and ``recommend``: how good and how quick lists are."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpcml.cli.bench_options import BenchData, Out, finish, say_if_busy, whole_numbers
from dpcml.cli.console import AsJson
from dpcml.cli.options import Data

Model = Annotated[str, typer.Option(help="A model or preset with vectors: dpcml, cml, gfja...")]


def fold_in(
    data: BenchData = None,
    model: Model = "dpcml",
    held_out: Annotated[float, typer.Option(help="Share of the users left out of training.")] = 0.2,
    seeds: Annotated[int, typer.Option(min=1, help="Runs, each with its own split.")] = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Serve people who were not in training, against the same people in training."""
    from dpcml.benchmarks.fold_in import METRICS, bench_fold_in
    from dpcml.benchmarks.worlds import bench_data
    from dpcml.utils.text import text_table

    name, interactions = bench_data(data)
    found: dict[str, Any] = {"data": name, **bench_fold_in(interactions, model=model, held_out=held_out, seeds=seeds)}
    if finish(found, out, as_json):
        return
    print(f"{name}: {held_out:.0%} of {found['users']:,} users left out, {seeds} seeds, strict protocol")
    kinds = ("trained", "folded", "popularity")
    rows = [[kind, *(f"{found[kind][metric]:.4f}" for metric in METRICS)] for kind in kinds]
    rows.append(["folded / trained", *(f"{found['ratio'][metric]:.3f}" for metric in METRICS)])
    print(text_table(["users", *METRICS], rows))
    took = found["milliseconds"]
    print(f"fold_in of {took['items']} items: {took['median']:.2f} ms, 99th percentile {took['p99']:.2f} ms")


def mix(
    data: Data = "planted",
    model: Model = "dpcml",
    n: Annotated[int, typer.Option("-n", min=1, help="Length of the lists.")] = 10,
    seeds: Annotated[int, typer.Option(min=1, help="Runs, each with its own split.")] = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Turn the dial between relevance and equal service of interests; see what it costs and brings."""
    from dpcml.benchmarks.mix import bench_mix
    from dpcml.utils.text import text_table
    from dpcml.workflow import Source

    found: dict[str, Any] = {"data": data, **bench_mix(Source(data).read(), model=model, n=n, seeds=seeds)}
    if finish(found, out, as_json):
        return
    names = list(found["dial"][0])
    print(f"{data}: {found['users']:,} users, {found['items']:,} items, {model}, {seeds} seeds")
    print(text_table(names, [[f"{row[name]:.4g}" for name in names] for row in found["dial"]]))


def recommend(
    sizes: Annotated[str, typer.Option(help="Numbers of items, with commas.")] = "1e5,1e6",
    n: Annotated[int, typer.Option("-n", min=1, help="Length of the lists.")] = 10,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Make lists from large catalogues: exactly, and by an approximate index."""
    from dpcml.benchmarks.recommend import bench_recommend

    found = bench_recommend(whole_numbers(sizes), n=n)
    say_if_busy(found, "take these figures again when it is not")
    if finish(found, out, as_json):
        return
    print(
        f"lists of {n}, {found['vectors']} vectors of {found['dim']}, {found['seen']} seen, {found['threads']} threads"
    )
    for one in found["catalogues"]:
        exact, index = one["exact"], one.get("index")
        print(f"{one['items']:,} items")
        print(
            f"  exact    one user {exact['p50_ms']:.2f} ms (99th percentile {exact['p99_ms']:.2f});"
            f" {exact['users_per_second']:.0f} users/s in a batch, {exact['share_of_matrix_product']:.0%} of what the"
            " matrix products alone would allow"
        )
        if index is not None:
            print(f"  index    built in {index['build_seconds']:.0f} s, {index['bytes'] / 1e6:.0f} MB")
            for search in index["searches"]:
                print(
                    f"    width {search['width']:<4} one user {search['p50_ms']:.2f} ms (99th percentile"
                    f" {search['p99_ms']:.2f}), recall {search['recall']:.4f}"
                )
