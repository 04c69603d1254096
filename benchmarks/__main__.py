"""``python -m benchmarks``: one command per benchmark; prints a summary, or one JSON object with ``--json``."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcml.cli import Commands
from dpcml.cli.console import AsJson, note, print_json
from dpcml.cli.options import Data, Threads, parse_settings
from dpcml.utils.errors import ParameterError
from dpcml.utils.files import write_text
from dpcml.utils.text import text_table

app = typer.Typer(
    cls=Commands,
    name="benchmarks",
    help="Measure speed, as ratios within one run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

BenchData = Annotated[
    str | None,
    typer.Option(
        help="A data set's name, a file, or 'planted' (of Steam-200k's shape); by default steam-200k where found."
    ),
]
Model = Annotated[str, typer.Option(help="A model or preset with user vectors: dpcml, cml, gfja...")]
Repeats = Annotated[int, typer.Option(min=1, help="Rounds; the best is reported.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs, each with its own split.")]
Out = Annotated[Path | None, typer.Option(help="Also write the figures to this file, as JSON.")]


def finish(found: dict[str, Any], out: Path | None, as_json: bool) -> bool:
    """Write figures to a file and print them as JSON where asked for; return whether they were printed."""
    if out is not None:
        write_text(out, json.dumps(found, indent=2, allow_nan=False) + "\n")
    if as_json:
        print_json(found)
    return as_json


def set_by_set(
    benchmark: str, names: Sequence[str], measure: Callable[[str], dict[str, Any]], out: Path | None
) -> dict[str, Any]:
    """Measure data sets one after another; after each, write to the file, which keeps the figures of other sets."""
    sets = list[dict[str, Any]]()
    for name in names:
        sets.append(measure(name))
        if out is not None:
            kept = json.loads(out.read_text())["sets"] if out.exists() else []
            others = [one for one in kept if one["data"] not in names[: len(sets)]]
            finish({"benchmark": benchmark, "sets": others + sets}, out, False)
    return {"benchmark": benchmark, "sets": sets}


def whole_numbers(text: str) -> list[int]:
    """Return the numbers of a comma-separated list; each may be written as 1e5.

    Examples
    --------
    >>> whole_numbers("1e5,2000")
    [100000, 2000]
    """
    try:
        found = [int(float(part)) for part in text.split(",")]
    except (ValueError, OverflowError):
        found = []
    if not found or min(found) < 1000:
        raise ParameterError(f"--sizes {text}: pass numbers of at least 1000 with commas, such as 1e5,1e6")
    return found


def warn_if_busy(found: dict[str, Any], advice: str = "'spread' shows the noise in these figures") -> None:
    """Print a warning on standard error if other programs were running."""
    if (found["load_before"] or 0) > found["threads"] / 2:
        note(f"the machine was busy (load {found['load_before']:.1f}): {advice}")


@app.command()
def evaluate(data: BenchData = None, repeats: Repeats = 5, out: Out = None, as_json: AsJson = False) -> None:
    """Evaluate a vector model (C 5, d 100), against sorting every user's scores with NumPy."""
    from benchmarks.evaluation import bench_evaluation
    from benchmarks.workloads import load_data

    name, interactions = load_data(data)
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
    from benchmarks.training import bench_training
    from benchmarks.workloads import load_data

    name, interactions = load_data(data)
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
    warn_if_busy(found)
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
            f"PyTorch, as fast as we could     {found['best_torch_seconds_per_epoch']:.3f} s:"
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
    items: Annotated[
        int | None, typer.Option(min=100, help="Items of every data set; by default they grow too.")
    ] = None,
    repeats: Repeats = 3,
    threads: Threads = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Train on generated data of growing size: the cost per positive."""
    from benchmarks.scaling import bench_scaling

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
def scale(
    sizes: Annotated[str, typer.Option(help="Numbers of interactions, with commas.")] = "1e5,1e6,1e7",
    workers: Annotated[str, typer.Option(help="Numbers of Ray workers, with commas; 1 is needed.")] = "1,2",
    ray_size: Annotated[int | None, typer.Option(min=1000, help="Interactions of the comparison with Ray.")] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(help="Only 'memory', 'train' or 'ray'; the file keeps the others. May be repeated."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Also draw the points and the model into this file.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Ingest and train at growing sizes; fit a model of the cost, check it on the largest, predict a cluster."""
    from benchmarks.scale import PARTS, bench_scale, draw_scale
    from dpcml.utils.checks import choice

    for one in part or ():
        choice("--part", one, PARTS)
    counts = [int(count) for count in workers.split(",")]
    kept = json.loads(out.read_text()) if part and out is not None and out.exists() else {}
    found = kept | bench_scale(whole_numbers(sizes), workers=counts, ray_size=ray_size, parts=part or PARTS)
    if figure is not None and "train" in found:
        draw_scale(found, figure)
    if finish(found, out, as_json):
        return
    for one in found.get("ingest", ()):
        print(
            f"{one['interactions']:>12,} interactions ingested in {one['seconds']:.1f} s, {one['cpu_seconds']:.1f} s"
            f" of a core, {one['peak_bytes'] / 1e6:.0f} MB at the peak"
        )
    for one in found.get("train", ()):
        print(
            f"{one['positives']:>12,} positives, C {one['vectors']}, d {one['dim']}: {one['cpu_seconds']:.2f} s of a"
            f" core (model {one['predicted_cpu_seconds']:.2f}), {one['peak_bytes'] / 1e6:.0f} MB"
            f" (model {one['predicted_peak_bytes'] / 1e6:.0f})"
        )
    if "growth" in found:
        print(f"growth {found['growth']['ratio']:.2f}x")
    if "ray" in found:
        print(f"one Ray worker {found['ray']['overhead_of_one']:+.1%}")


@app.command("scale-accuracy")
def scale_accuracy(
    data: Annotated[list[str] | None, typer.Option(help="A data set's name or a file; may be repeated.")] = None,
    workers: Annotated[str, typer.Option(help="Numbers of Ray workers, with commas.")] = "2,4",
    intervals: Annotated[
        str, typer.Option(help="Positives of a worker per item between two exchanges, with commas.")
    ] = "0.1,1,10",
    powers: Annotated[
        str, typer.Option(help="How movements are added up, with commas: 0 is the sum, 1 the mean of the workers.")
    ] = "0.5",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of DPCML in place of its default."),
    ] = None,
    seeds: Seeds = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Train on several Ray workers: accuracy against the interval of exchange, beside that of one process."""
    from benchmarks.scale_accuracy import METRICS, bench_scale_accuracy

    counts, changes = [int(part) for part in workers.split(",")], parse_settings(settings or ())
    shares, roots = ([float(part) for part in text.split(",")] for text in (intervals, powers))
    found = set_by_set(
        "scale-accuracy",
        data or ["planted"],
        lambda name: bench_scale_accuracy(name, workers=counts, intervals=shares, powers=roots, seeds=seeds, **changes),
        out,
    )
    if finish(found, None, as_json):
        return
    for one in found["sets"]:
        print(f"{one['data']}: {one['users']:,} users, {one['items']:,} items, {seeds} seeds, strict protocol")
        rows = [
            [
                str(row["workers"] or "one process"),
                str(row["sync_every"] or ""),
                str(row["sync_power"] if row["workers"] else ""),
                *(f"{row['mean'][m]:.4f}" for m in METRICS),
            ]
            for row in one["rows"]
        ]
        print(text_table(["workers", "batches between exchanges", "power", *METRICS], rows))


@app.command()
def quality(
    data: Annotated[str, typer.Option(help="A data set's name, or a file.")] = "steam-200k",
    target: Annotated[
        float, typer.Option(help="Test P@3, released protocol; the paper's DPCML2 on Steam-200k.")
    ] = 0.2988,
    repeats: Annotated[int, typer.Option(min=1, help="Runs, each with its own seed; the median is reported.")] = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time from the start of a process to the paper's accuracy, with the preset 'dpcml'."""
    from benchmarks.quality import bench_quality

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
        str, typer.Option(help="A data set's name, a file, or 'planted' (of Steam-200k's shape).")
    ] = "planted",
    model: Annotated[list[str] | None, typer.Option(help="Only this model or preset; may be repeated.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per fit; the first warms up.")] = 3,
    repeats: Repeats = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time an epoch of every method, or the whole fit of methods without epochs."""
    from benchmarks.workloads import load_data
    from dpcml.paper.study_types.timing import YARDSTICK, time_methods

    name, interactions = load_data(data)
    found = {"data": name, **time_methods(interactions, methods=model, epochs=epochs, repeats=repeats)}
    for skipped, why in found["skipped"].items():
        note(f"no figures of {skipped}: {why}")
    warn_if_busy(found)
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


@app.command("fold-in")
def fold_in(
    data: BenchData = None,
    model: Model = "dpcml",
    held_out: Annotated[float, typer.Option(help="Share of the users left out of training.")] = 0.2,
    seeds: Seeds = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Compare fold-in of users who were left out of training with training on them."""
    from benchmarks.fold_in import METRICS, bench_fold_in
    from benchmarks.workloads import load_data

    name, interactions = load_data(data)
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


@app.command()
def mix(
    data: Data = "planted",
    model: Model = "dpcml",
    n: Annotated[int, typer.Option("-n", min=1, help="Length of the lists.")] = 10,
    seeds: Seeds = 3,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate lists at several values of mix, from the best scores to more of the smaller interests."""
    from benchmarks.mix import bench_mix
    from dpcml.workflow import DataSource

    found: dict[str, Any] = {"data": data, **bench_mix(DataSource(data).read(), model=model, n=n, seeds=seeds)}
    if finish(found, out, as_json):
        return
    names = list(found["dial"][0])
    print(f"{data}: {found['users']:,} users, {found['items']:,} items, {model}, {seeds} seeds")
    print(text_table(names, [[f"{row[name]:.4g}" for name in names] for row in found["dial"]]))


@app.command()
def interests(
    data: Annotated[list[str] | None, typer.Option(help="A data set's name or a file; may be repeated.")] = None,
    seeds: Seeds = 5,
    trials: Annotated[int, typer.Option(min=1, help="Settings that are tried of each competitor.")] = 8,
    model: Annotated[list[str] | None, typer.Option(help="Only dpcml and this one; the file keeps the others.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Compare DPCML and its blend with searched others: accuracy, minority recall, interest agreement, coverage.

    Sets that stand in the file of --out and are not named stay there: each can be run on its own.
    """
    from benchmarks.interests import METRICS, MODELS, add_models, bench_interests

    def measure(name: str) -> dict[str, Any]:
        wanted = MODELS if model is None else list(dict.fromkeys((MODELS[0], *model)))
        run = bench_interests(name, models=wanted, seeds=seeds, trials=trials)
        kept = json.loads(out.read_text())["sets"] if model and out is not None and out.exists() else []
        return next((add_models(one, run) for one in kept if one["data"] == name), run)

    logging.basicConfig(format="%(message)s")
    logging.getLogger("benchmarks").setLevel(logging.INFO)
    found = set_by_set("interests", data or ["planted"], measure, out)
    for one in found["sets"]:
        for skipped, why in one["skipped"].items():
            note(f"no figures of {skipped}: {why}")
    if as_json:
        print_json(found)
        return
    for one in found["sets"]:
        print(f"{one['data']}: {one['users']:,} users, {one['items']:,} items, {seeds} seeds, strict protocol")
        rows = [[name, *(_with_interval(row.get(metric)) for metric in METRICS)] for name, row in one["models"].items()]
        print(text_table(["", *METRICS], rows))
        best = one["models"].get("oracle", {}).get("minority_R@10")
        if best is not None:
            shares = {name: row["minority_R@10"].get("share_of_oracle") for name, row in one["models"].items()}
            said = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share is not None)
            print(f"minority_R@10 as a share of the oracle's: {said}")


def _with_interval(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return ""
    ends = "" if figure["low"] is None else f" [{figure['low']:.4f}, {figure['high']:.4f}]"
    return f"{figure['mean']:.4f}{ends}"


@app.command()
def frontier(
    data: Annotated[list[str] | None, typer.Option(help="A data set with categories; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this model or preset; may be repeated.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Length of the lists.")] = 10,
    seeds: Seeds = 3,
    part: Annotated[str, typer.Option(help="Evaluate on 'test' or, while a method is developed, on 'valid'.")] = "test",
    figure: Annotated[Path | None, typer.Option(help="Also draw the curves into this file.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Compare mix with MMR, xQuAD and calibrated re-ranking: NDCG against minority recall and coverage."""
    from benchmarks.frontier import LOSSES, MODELS, bench_frontier, draw
    from dpcml.utils.checks import choice
    from dpcml.workflow import DataSource

    choice("--part", part, ("test", "valid"))
    sets = {name: DataSource(name).read() for name in data or ("planted", "ml-100k", "ml-1m")}
    found = bench_frontier(sets, models=model or MODELS, n=n, seeds=seeds, part=part)
    if figure is not None:
        draw(found, figure)
    if finish(found, out, as_json):
        return
    head = ["data", "model", "method", "NDCG", "minority R", *(f"at -{loss:.0%}" for loss in LOSSES), "inside ours"]
    rows = [
        [one["data"], one["model"], one["method"], f"{one[f'NDCG@{n}']:.4f}", f"{one[f'minority_R@{n}']:.4f}"]
        + [f"{value:.4f}" for value in one["at_loss"].values()]
        + [f"{one['inside_ours']:.0%}"]
        for one in found["summary"]
    ]
    print(text_table(head, rows))


@app.command()
def cold(
    data: Annotated[list[str] | None, typer.Option(help="Sets with titles or attributes; may be repeated.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder in which fitted models are kept, for another run.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Rank held-out items that nobody likes yet: by their content, by content kNN, by predicted popularity."""
    from benchmarks.cold import METRICS, bench_cold

    found = set_by_set(
        "cold",
        data or ("ml-1m", "citeulike-t"),
        lambda name: bench_cold(name, keep=None if keep is None else keep / name),
        out,
    )
    if finish(found, None, as_json):
        return
    for one in found["sets"]:
        rows = [
            [name, *(f"{figures[metric]['mean']:.4f}" if metric in figures else "" for metric in METRICS)]
            for name, figures in one["methods"].items()
        ]
        print(text_table([one["data"], *METRICS], rows))


@app.command()
def recommend(
    sizes: Annotated[str, typer.Option(help="Numbers of items, with commas.")] = "1e5,1e6",
    n: Annotated[int, typer.Option("-n", min=1, help="Length of the lists.")] = 10,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Time lists from large catalogues: exact search, and an approximate index."""
    from benchmarks.recommend import bench_recommend

    found = bench_recommend(whole_numbers(sizes), n=n)
    warn_if_busy(found, "repeat the measurement when it is idle")
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
            print(
                f"  index    built in {index['build_seconds']:.0f} s ({index['build_cpu_seconds']:.0f} s of processor"
                f" time), {index['bytes'] / 1e6:.0f} MB"
            )
            for search in index["searches"]:
                print(
                    f"    width {search['width']:<4} one user {search['p50_ms']:.2f} ms (99th percentile"
                    f" {search['p99_ms']:.2f}), recall {search['recall']:.4f}"
                )


@app.command()
def serve(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A model; a planted one by default.")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most this many per measurement.")] = 20_000,
    seconds: Annotated[float, typer.Option(min=0.1, max=120, help="At most this long per measurement.")] = 5.0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes of the server.")] = 1,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Send load to a server on this machine: requests per second, latency, processor time, errors."""
    from benchmarks.serving import bench_serving

    found = bench_serving(directory, requests=requests, seconds=seconds, workers=workers)
    if finish(found, out, as_json):
        return
    print(f"{found['model']} of {found['users']:,} users and {found['items']:,} items; {workers} processes")
    rows = [
        [name, str(run["at_once"]) + ("" if run["share"] is None else f", {run['share']:.0%} of the rate"),
         f"{run['requests_per_second']:,.0f}", f"{run['p50_milliseconds']:.1f}", f"{run['p99_milliseconds']:.1f}",
         f"{run['cpu_milliseconds_per_request']:.2f}", str(run["errors"])]
        for name, runs in found["asked"].items() for run in runs
    ]  # fmt: skip
    print(text_table(["asked", "at once", "per second", "p50 ms", "p99 ms", "cpu ms", "errors"], rows))


@app.command()
def weights(
    data: BenchData = "steam-200k",
    column: Annotated[str, typer.Option(help="Column of the weights.")] = "hours",
    heavy: Annotated[float, typer.Option(help="Least weight of a heavy positive.")] = 10.0,
    model: Annotated[list[str] | None, typer.Option(help="Models or presets.")] = None,
    part: Annotated[str, typer.Option(help="Evaluate on 'valid' or 'test'.")] = "valid",
    seeds: Seeds = 1,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Train with and without weights of the positives: accuracy on all held-out ones, and on heavy ones."""
    from benchmarks.weights import METRICS, bench_weights
    from dpcml.cli.options import parse_settings
    from dpcml.utils.checks import choice
    from dpcml.workflow import DataSource

    choice("--part", part, ("valid", "test"))
    chosen = {"models": model} if model else {}
    found = bench_weights(
        DataSource(str(data), {"weight": column}).read(), heavy=heavy, part=part, seeds=seeds,
        **chosen, **parse_settings(settings or ()),
    )  # fmt: skip
    if finish({"data": data, "column": column, **found}, out, as_json):
        return
    names = [f"{metric} {label}" for label in ("all", "heavy") for metric in METRICS]
    rows = [
        [one["model"], "yes" if one["weights"] else "no", *(f"{one[name]:.4f}" for name in names)]
        for one in found["rows"]
    ]
    print(text_table(["model", "weights", *names], rows))


@app.command()
def simd(data: BenchData = None, repeats: Repeats = 15, out: Out = None, as_json: AsJson = False) -> None:
    """Train epochs with hand-written vector code and with plain Numba loops in its place, on two sizes of data."""
    from benchmarks.simd import bench_simd
    from benchmarks.workloads import load_data, sized_data

    load_before = os.getloadavg()[0]
    name, interactions = load_data(data)
    runs = {
        name: bench_simd(interactions.split((0.6, 0.2, 0.2), 0).train, rounds=repeats),
        "generated": bench_simd(sized_data(10**6), rounds=max(repeats // 3, 1)),
    }
    if finish({"load_before": load_before, "runs": runs}, out, as_json):
        return
    rows = [[variant, *(f"{run['ratio'][variant]:.2f}" for run in runs.values())] for variant in runs[name]["ratio"]]
    print(text_table(["processor time of an epoch, relative", *runs], rows))


if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
