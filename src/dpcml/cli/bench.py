"""``dpcml bench``: speed as ratios within one run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpcml.cli.bench_lists import fold_in, mix, recommend
from dpcml.cli.bench_options import BenchData, Out, Repeats, finish, say_if_busy, whole_numbers
from dpcml.cli.bench_serve import serve
from dpcml.cli.console import AsJson, note
from dpcml.cli.options import Threads

app = typer.Typer(help="Measure speed, as ratios within one run.", no_args_is_help=True)
app.command("fold-in")(fold_in)
app.command()(serve)
app.command()(mix)
app.command()(recommend)


@app.callback()
def options() -> None:
    """Measure speed, as ratios within one run."""


@app.command()
def evaluate(data: BenchData = None, repeats: Repeats = 5, out: Out = None, as_json: AsJson = False) -> None:
    """Evaluate a vector model (C 5, d 100), against sorting every user's scores with NumPy."""
    from dpcml.benchmarks.evaluation import bench_evaluation
    from dpcml.benchmarks.worlds import bench_data

    name, interactions = bench_data(data)
    found = {"data": name, **bench_evaluation(interactions, repeats=repeats)}
    if finish(found, out, as_json):
        return
    print(f"{name}: {found['users']:,} users, {found['items']:,} items, {found['vectors']} vectors of {found['dim']}")
    print(f"  every metric, scoring included   {found['seconds']:.3f} s")
    print(f"  ranks and accuracy, given scores {found['ranking_seconds']:.3f} s")
    print(f"  the same with NumPy's argsort    {found['numpy_seconds']:.3f} s")
    print(f"  ratio                            {found['ratio_to_numpy']:.1f}x")


@app.command()
def train(
    data: BenchData = None,
    vectors: Annotated[int, typer.Option(min=1, help="Vectors per user, C.")] = 5,
    dim: Annotated[int, typer.Option(min=1, help="Dimension, d.")] = 100,
    candidates: Annotated[int, typer.Option(min=1, help="Candidates per positive, S.")] = 10,
    batch_size: Annotated[int, typer.Option(min=1, help="Positives per step.")] = 256,
    repeats: Repeats = 5,
    threads: Threads = None,
    cold: Annotated[bool, typer.Option(help="Time the first call with an empty kernel cache.")] = True,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Train an epoch of DPCML2, against PyTorch and against the peak of a matrix product."""
    from dpcml.benchmarks.training import bench_training
    from dpcml.benchmarks.worlds import bench_data

    name, interactions = bench_data(data)
    figures = bench_training(
        interactions,
        n_vectors=vectors,
        dim=dim,
        n_candidates=candidates,
        batch_size=batch_size,
        repeats=repeats,
        threads=threads,
        cold=cold,
    )
    found = {"data": name, **figures}
    if found["note"]:
        note(found["note"])
    say_if_busy(found)
    if finish(found, out, as_json):
        return
    print(
        f"{name}: {found['positives']:,} training positives of {found['users']:,} users and {found['items']:,} items;"
        f" {vectors} vectors of {dim}, {candidates} candidates, batch {batch_size}, {found['threads']} threads"
    )
    for text in _training_lines(found):
        print(f"  {text}")


def _training_lines(found: dict[str, Any]) -> list[str]:
    memory = found["memory"]
    lines = [
        f"an epoch                         {found['seconds_per_epoch']:.4f} s,"
        f" {found['positives_per_second'] / 1e6:.2f} M positives/s"
    ]
    if found["ratio_to_torch"] is not None:
        lines += [
            f"PyTorch, as the released code    {found['torch_seconds_per_epoch']:.1f} s"
            f" (from {found['torch_batches_timed']} batches): {found['ratio_to_torch']:.0f}x ours",
            f"PyTorch, as well as we can       {found['best_torch_seconds_per_epoch']:.3f} s:"
            f" {found['ratio_to_best_torch']:.1f}x ours",
        ]
    return [
        *lines,
        f"mining                           {found['gflops']:.1f} GFLOP/s, {found['share_of_peak']:.0%} of a matrix"
        f" product's {found['peak_gflops']:.0f}",
        f"all threads against one          {found['thread_speedup']:.2f}x;"
        f" a matrix product {found['peak_thread_speedup']:.2f}x",
        f"process start to first batch     {found['first_call_seconds']:.1f} s compiling,"
        f" {found['warm_first_call_seconds']:.1f} s after",
        f"memory at its peak               {memory['peak_bytes'] / 1e6:.0f} MB, {memory['bytes_per_parameter']:.0f}"
        f" bytes per parameter; vectors, moments and positives are {memory['needed_bytes'] / 1e6:.0f} MB",
    ]


@app.command()
def scaling(
    sizes: Annotated[str, typer.Option(help="Numbers of positives, with commas.")] = "1e5,1e6,1e7",
    items: Annotated[int | None, typer.Option(min=100, help="Items of every world; by default they grow too.")] = None,
    repeats: Repeats = 3,
    threads: Threads = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Train on planted worlds of growing size: the cost of a positive."""
    from dpcml.benchmarks.scaling import bench_scaling

    found = bench_scaling(whole_numbers(sizes), n_items=items, repeats=repeats, threads=threads)
    if finish(found, out, as_json):
        return
    for world in found["worlds"]:
        print(
            f"{world['positives']:>12,} positives, {world['users']:>8,} users, {world['items']:>7,} items:"
            f" {world['nanoseconds_per_positive']:.0f} ns per positive"
        )
    print(f"growth {found['growth']:.2f}x")


@app.command()
def quality(
    data: Annotated[str, typer.Option(help="A data set's name, or a file.")] = "steam-200k",
    target: Annotated[
        float, typer.Option(help="Test P@3, released protocol; the paper's DPCML2 on Steam-200k.")
    ] = 0.2988,
    repeats: Annotated[int, typer.Option(min=1, help="Runs, each with its own seed; the median counts.")] = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time from the start of a process to the paper's accuracy, with the preset 'dpcml'."""
    from dpcml.benchmarks.time_to_quality import bench_quality

    found = bench_quality(data, target=target, repeats=repeats)
    if finish(found, out, as_json):
        return
    for run in found["runs"]:
        reached = "never reached" if run["seconds"] is None else f"{run['seconds']:.1f} s (epoch {run['epoch']})"
        print(
            f"seed {run['seed']}: {found['metric']} {target} {reached};"
            f" stopped after {run['epochs']} epochs and {run['seconds_to_stop']:.1f} s at {run['P@3']:.4f}"
        )


@app.command()
def methods(
    data: Annotated[
        str, typer.Option(help="A data set's name, a file, or 'planted', a world of Steam-200k's shape.")
    ] = "planted",
    model: Annotated[list[str] | None, typer.Option(help="Only this model or preset; may be repeated.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per fit; the first warms up.")] = 3,
    repeats: Repeats = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time an epoch of every method, or its fit where it has no epochs."""
    from dpcml.benchmarks.worlds import bench_data
    from dpcml.paper.measuring import YARDSTICK, time_methods
    from dpcml.utils.text import text_table

    name, interactions = bench_data(data)
    found = {"data": name, **time_methods(interactions, methods=model, epochs=epochs, repeats=repeats)}
    for skipped, why in found["skipped"].items():
        note(f"no figures of {skipped}: {why}")
    say_if_busy(found)
    if finish(found, out, as_json):
        return
    print(
        f"{name}: {found['positives']:,} training positives of {found['users']:,} users and {found['items']:,} items;"
        f" {found['threads']} threads"
    )
    rows = [
        [one["name"], one["class"], one["per"], f"{one['seconds']:.4f}", f"{one['ratio']:.2f}" if one["ratio"] else ""]
        for one in sorted(found["methods"], key=lambda one: (one["per"], one["seconds"]))
    ]
    print(text_table(["method", "class", "per", "seconds", f"/ {YARDSTICK} epoch"], rows))
