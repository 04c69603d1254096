"""Write the tables of the documentation from the result files, and the reference of the command line from the program.

Pages include ``docs/generated/*.md`` by snippet, so nobody types a measured figure. ``make docs`` runs this script; a
test checks that the committed files are what it writes.
"""

from __future__ import annotations

import csv
import html
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean, variance
from typing import Any

from scipy.stats import ttest_ind

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "results" / "bench"
TRIALS = ROOT / "results" / "research" / "trials.csv"
BEFORE, AFTER = (ROOT / "results" / "architecture" / f"{when}.json" for when in ("before", "after"))
OUT = ROOT / "docs" / "generated"


def measured(name: str) -> dict[str, Any]:
    """Return the figures of one benchmark."""
    figures: dict[str, Any] = json.loads((BENCH / f"{name}.json").read_text(encoding="utf-8"))
    return figures


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table whose first column is text and whose other columns are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines) + "\n"


def number(value: float, digits: int = 3) -> str:
    """Return a figure with at least that many significant digits, and commas between thousands."""
    size = math.floor(math.log10(abs(value))) + 1 if value else 1  # digits before the point; negative for 0.001
    return f"{value:,.{max(0, digits - size)}f}"


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.1f} %"


def source(name: str, text: str) -> str:
    """Return the line below a table that says where its figures come from."""
    return f"\n*{text} Source: `results/bench/{name}.json`.*\n"


def training() -> str:
    """Return seconds per epoch of the engine and of PyTorch, and what the machine could give."""
    f = measured("train")
    ours = f["seconds_per_epoch"]
    jobs = table(
        ["one epoch", "seconds", "times ours", "threads"],
        [
            ["our engine", number(ours), "1", f["threads"]],
            [
                "PyTorch, our best",
                number(f["best_torch_seconds_per_epoch"]),
                number(f["ratio_to_best_torch"]),
                f["best_torch_threads"],
            ],
            [
                "PyTorch, written as the released code, each pair of vectors once",
                number(f["ratio_to_torch_with_half_the_pairs"] * ours),
                number(f["ratio_to_torch_with_half_the_pairs"]),
                f["torch_threads"],
            ],
            [
                "PyTorch, written as the released code",
                number(f["torch_seconds_per_epoch"]),
                number(f["ratio_to_torch"]),
                f["torch_threads"],
            ],
        ],
    )
    memory = f["memory"]
    machine = table(
        ["the engine in that run", ""],
        [
            ["positives per second", number(f["positives_per_second"])],
            ["GFLOP/s of the distances", number(f["gflops"])],
            ["GFLOP/s of a float32 matrix product", number(f["peak_gflops"])],
            ["share of that peak", percent(f["share_of_peak"])],
            [f"speed-up of {f['threads']} threads over one", f"{f['thread_speedup']:.2f}"],
            ["the same of the matrix product", f"{f['peak_thread_speedup']:.2f}"],
            ["first batch of a process, empty kernel cache, seconds", number(f["first_call_seconds"], 2)],
            ["first batch of a process, kernels cached, seconds", number(f["warm_first_call_seconds"], 2)],
            ["peak memory of a process that trains an epoch, MB", number(memory["peak_bytes"] / 1e6)],
            ["of it, resident before training, MB", number(memory["base_bytes"] / 1e6)],
            ["vectors, moments and positives alone, MB", number(memory["needed_bytes"] / 1e6)],
        ],
    )
    note = source(
        "train",
        f"{f['data']}, {f['positives']:,} training positives, C = {f['vectors']}, d = {f['dim']},"
        f" S = {f['candidates']}, batches of {f['batch_size']}; the best of {f['repeats']} repetitions.",
    )
    return f"{jobs}\n{machine}{note}"


def simd() -> str:
    """Return how much longer an epoch takes with each part of the training kernel written in another way."""
    runs = measured("simd")["runs"]
    names = {
        "plain distances": "distances as plain loops",
        "plain optimizer": "update of Adam as plain loops",
        "no prefetch": "no prefetches",
        "all plain": "all of these",
        "gradients by hand": "gradients by hand (shipped: plain loops)",
    }
    head = ["one epoch, times as shipped", *(f"{run['positives']:,} positives" for run in runs.values())]
    rows = [[text, *(f"{run['ratio'][name]:.2f}" for run in runs.values())] for name, text in names.items()]
    worlds = [f"{name}: best of {run['rounds']} rounds" for name, run in runs.items()]
    return table(head, rows) + source(
        "simd", f"{'; '.join(worlds)}; in each round all variants take turns. `python -m benchmarks simd` runs it."
    )


def scaling() -> str:
    """Return the cost of a positive in growing worlds, with a growing and with a fixed catalogue."""
    growing, fixed = measured("scaling"), measured("scaling-same-items")
    rows = [
        [
            f"{world['positives']:,} positives of {world['users']:,} users",
            f"{world['items']:,}",
            number(world["nanoseconds_per_positive"]),
            f"{same['items']:,}",
            number(same["nanoseconds_per_positive"]),
        ]
        for world, same in zip(growing["worlds"], fixed["worlds"], strict=True)
    ]
    last = ["largest over smallest", "", f"{growing['growth']:.2f}", "", f"{fixed['growth']:.2f}"]
    head = ["world", "items, growing", "ns per positive", "items, fixed", "ns per positive"]
    return table(head, [*rows, last]) + source(
        "scaling",
        f"C = {growing['vectors']}, d = {growing['dim']}, {growing['threads']} threads. Fixed catalogue:"
        " `results/bench/scaling-same-items.json`.",
    )


def scale() -> str:
    """Return ingesting and training at growing sizes, the model of the cost, and what it predicts for a cluster."""
    f = measured("scale")
    ingests = table(
        ["data ingest: interactions", "users", "items", "seconds of a core", "peak MB", "MB on disk"],
        [
            [
                *(f"{one[name]:,}" for name in ("interactions", "users", "items")),
                number(one["cpu_seconds"]),
                *(number(one[name] / 1e6) for name in ("peak_bytes", "bytes_on_disk")),
            ]
            for one in f["ingest"]
        ],
    )
    trains = table(
        [
            "an epoch on one thread: positives",
            "C",
            "d",
            "seconds of a core",
            "model",
            "ns per positive",
            "peak MB",
            "model",
        ],
        [
            [
                f"{one['positives']:,}",
                one["vectors"],
                one["dim"],
                *(number(one[name]) for name in ("cpu_seconds", "predicted_cpu_seconds")),
                number(1e9 * one["cpu_seconds"] / one["positives"]),
                *(number(one[name] / 1e6) for name in ("peak_bytes", "predicted_peak_bytes")),
            ]
            for one in f["train"]
        ],
    )
    memory = table(
        [
            "the same users and items: interactions",
            "ingest, MB",
            "train, two Ray workers: the command, MB",
            "a worker, MB",
            "evaluate, MB",
        ],
        [
            [
                f"{one['interactions']:,}",
                *(number(one[f"{name}_bytes"] / 1e6) for name in ("ingest", "command", "worker", "evaluate")),
            ]
            for one in f["memory"]
        ],
    )
    ray, machine = f["ray"], f["machine"]
    compared = table(
        [f"{ray['positives']:,} positives, {ray['epochs']} epochs", "seconds in all", "seconds of the best epoch"],
        [
            [name, number(one["seconds"]), number(one["epoch_seconds"])]
            for name, one in {
                "one process, one thread": ray["local"],
                **{f"Ray, workers of one thread: {count}": one for count, one in ray["workers"].items()},
            }.items()
        ],
    )
    predicted = table(
        [
            "10^10 interactions: machines",
            "batches between exchanges",
            "computing, s",
            "network, s",
            "TB sent each",
            "GB each",
        ],
        [
            [
                one["machines"],
                f"{one['sync_every']:,}",
                *(number(one[name]) for name in ("compute_seconds", "network_seconds")),
                number(one["network_bytes_per_machine"] / 1e12),
                number(one["bytes_per_machine"] / 1e9),
            ]
            for one in f["predictions"]
        ],
    )
    growth = f["growth"]
    note = source(
        "scale",
        f"Cost per positive at {growth['to']:,} over that at {growth['from']:,}: {growth['ratio']:.2f}. One Ray worker"
        f" against one process: {100 * ray['overhead_of_one']:+.1f} % of the whole fit, with the start of the worker,"
        f" measured on a machine with {ray['cores']} cores. The model is fitted on points up to about"
        " 10^7 positives; the largest one checks it. Predictions are of an epoch with 40 interactions per user, 10^6"
        f" items, C = 5, d = 100, on machines with {machine['cores']} cores and {machine['gigabits']:.0f} Gbit/s, where"
        " threads share the work evenly. The second table is of anonymous memory, without pages of mapped files, which"
        f" the system can take back; before it reads anything, the command on Ray has"
        f" {number(f['memory'][0]['before_bytes'] / 1e6)} MB.",
    )
    return f"{ingests}\n{memory}\n{trains}\n{compared}\n{predicted}{note}"


def methods() -> str:
    """Return seconds per epoch, or per fit, of every method on two data sets."""
    sets = {name: measured(f"methods-{name}") for name in ("steam-200k", "ml-1m")}
    found = {name: {one["name"]: one for one in figures["methods"]} for name, figures in sets.items()}
    first, second = found.values()
    order = sorted(first, key=lambda name: float(first[name]["seconds"]))
    rows = []
    for name in order:
        cells = [name, f"one {first[name]['per']}"]
        for one in (first.get(name), second.get(name)):
            cells += ["", ""] if one is None else [number(one["seconds"], 2), number(one["ratio"], 2)]
        rows.append(cells)
    head = ["method", "of", "Steam-200k, s", "to dpcml2", "MovieLens-1M, s", "to dpcml2"]
    threads = {figures["threads"] for figures in sets.values()}
    return table(head, rows) + source(
        "methods-steam-200k",
        f"{'/'.join(map(str, sorted(threads)))} threads. MovieLens-1M: `results/bench/methods-ml-1m.json`.",
    )


def quality() -> str:
    """Return seconds from the start of a process to the paper's accuracy."""
    f = measured("quality")
    metric = f["metric"]
    rows = [
        [
            f"seed {run['seed']}",
            number(run["seconds"], 2),
            run["epoch"],
            number(run["seconds_to_stop"], 2),
            f"{run[metric]:.3f}",
        ]
        for run in f["runs"]
    ]
    rows.append(["median", number(f["seconds"], 2), "", "", ""])
    head = ["run", f"seconds to {metric} {f['target']}", "epoch", "seconds to the end", f"final {metric}"]
    return table(head, rows) + source("quality", f"{f['data']}, {f['protocol']} protocol, preset `dpcml`.")


def evaluation() -> str:
    """Return seconds of an evaluation."""
    f = measured("evaluate")
    rows = [
        ["all metrics, seconds", number(f["seconds"], 2)],
        ["ranks and accuracy alone, seconds", number(f["ranking_seconds"], 2)],
        ["ranks and accuracy by sorting with NumPy, seconds", number(f["numpy_seconds"], 2)],
        ["NumPy over ours, a ratio", number(f["ratio_to_numpy"], 2)],
    ]
    return table(["evaluation of one model", ""], rows) + source(
        "evaluate",
        f"{f['data']}: {f['users']:,} users, {f['items']:,} items;"
        f" {f['vectors']} vectors of {f['dim']} numbers per user.",
    )


def recommend() -> str:
    """Return latency and recall of exact and approximate search."""
    f = measured("recommend")
    rows = []
    for one in f["catalogues"]:
        exact = one["exact"]
        items = f"{one['items']:,} items"
        rows.append([f"{items}, exact", "1", number(exact["p50_ms"], 2), number(exact["p99_ms"], 2)])
        for search in one["index"]["searches"]:
            name = f"{items}, index, search width {search['width']}"
            rows.append([name, f"{search['recall']:.4g}", number(search["p50_ms"], 2), number(search["p99_ms"], 2)])
    latency = table(["one user", f"recall@{f['n']}", "median, ms", "99th percentile, ms"], rows)
    batch = table(
        [
            "catalogue",
            "users per second, exact",
            "share of the bare matrix product",
            "index, MB",
            "time to build it, s",
            "processor time, s",
        ],
        [
            [
                f"{one['items']:,} items",
                number(one["exact"]["users_per_second"]),
                percent(one["exact"]["share_of_matrix_product"]),
                number(one["index"]["bytes"] / 1e6),
                number(one["index"]["build_seconds"], 2),
                number(one["index"]["build_cpu_seconds"], 2),
            ]
            for one in f["catalogues"]
        ],
    )
    return f"{latency}\n{batch}" + source(
        "recommend",
        f"{f['vectors']} vectors of {f['dim']} numbers per user, {f['seen']} seen items, {f['threads']} threads;"
        f" load of the machine before the run {f['load_before']:.1f}, so the times are upper bounds.",
    )


def serve() -> str:
    """Return requests per second and latency of a server under load."""
    f = measured("serve")
    rows = [
        [
            request,
            level["at_once"] if level.get("share") is None else f"{level['at_once']}, {level['share']:.0%} of the rate",
            number(level["requests_per_second"]),
            number(level["p50_milliseconds"], 2),
            number(level["p99_milliseconds"], 2),
            number(level["cpu_milliseconds_per_request"], 2),
        ]
        for request, levels in f["asked"].items()
        for level in levels
    ]
    head = ["request", "at once", "requests per second", "median, ms", "99th percentile, ms", "processor time, ms"]
    return table(head, rows) + source(
        "serve",
        f"{f['users']:,} users, {f['items']:,} items, {f['workers']} process on {f['cores']} cores,"
        f" {f['errors']} errors; load of the machine before the run {f['load_before']:.1f}.",
    )


def mix() -> str:
    """Return accuracy and diversity for several values of ``mix``."""
    f = measured("mix")
    names = {
        "P@3": "P@3",
        "NDCG@10": "NDCG@10",
        "minority_R@10": "minority R@10",
        "attribute_ILD@10": "attribute ILD@10",
        "coverage@10": "coverage@10",
    }
    rows = [[f"{row['mix']:g}", *(f"{row[name]:.3f}" for name in names)] for row in f["dial"]]
    none, full = f["dial"][0], f["dial"][-1]
    some = next(row for row in f["dial"] if row["mix"] >= 0.5)

    def change(row: dict[str, float], name: str) -> str:
        return f"{100 * (row[name] / none[name] - 1):+.1f} %"

    words = (
        f"\n`mix={some['mix']:g}` changes NDCG@10 by {change(some, 'NDCG@10')} and minority recall by"
        f" {change(some, 'minority_R@10')}; `mix={full['mix']:g}` changes them by {change(full, 'NDCG@10')} and"
        f" {change(full, 'minority_R@10')}.\n"
    )
    note = f"Planted world, {f['users']:,} users and {f['items']:,} items, `{f['model']}`, means of {f['seeds']} seeds."
    return table(["mix", *names.values()], rows) + words + source("mix", note)


def weights() -> str:
    """Return accuracy with and without weights of the positives."""
    f = measured("weights")
    names = ["NDCG@10 all", "R@10 all", "NDCG@10 heavy", "R@10 heavy"]
    rows = [
        [f"`{row['model']}`", "yes" if row["weights"] else "no", *(f"{row[name]:.3f}" for name in names)]
        for row in f["rows"]
    ]
    heads = [name.replace("heavy", f"{f['heavy']:g} {f['column']} or more") for name in names]
    settings = ", ".join(f"`{name}={value}`" for name, value in f["settings"].items())
    note = (
        f"{f['data']}, {f['positives']:,} positives, of which {percent(f['heavy_share'])} have {f['heavy']:g}"
        f" {f['column']} or more; {f['protocol']} protocol, {f['part']} part, {f['seeds']} seed(s)"
        f"{', all models with ' + settings if settings else ''}."
    )
    return table(["model", "weights", *heads], rows) + source("weights", note)


def frontier() -> str:
    """Return the best minority recall of each re-ranker over all models, by how much NDCG it may cost."""
    f = measured("frontier")
    ndcg, recall = f"NDCG@{f['n']}", f"minority_R@{f['n']}"
    losses = (0, 0.01, 0.02, 0.05, 0.1)
    points = [{**row, ndcg: mean(row[ndcg]), recall: mean(row[recall])} for row in f["points"]]
    rows = []
    for data in dict.fromkeys(row["data"] for row in points):
        mine = [row for row in points if row["data"] == data]
        best = max(row[ndcg] for row in mine if row["mix"] == 0)
        for method in dict.fromkeys(row["method"] for row in mine):
            some = [row for row in mine if row["method"] == method]
            reached = [max(row[recall] for row in some if row[ndcg] >= (1 - loss) * best - 1e-12) for loss in losses]
            rows.append([data, f"`{method}`", *(f"{value:.3f}" for value in reached)])
    heads = ["best NDCG", *(f"-{loss:.0%}" for loss in losses[1:])]
    models = ", ".join(dict.fromkeys(row["model"] for row in points))
    note = (
        f"Minority recall@{f['n']} with at most this loss of {ndcg} against the best model without re-ranking; the best"
        f" of {models}. `minority` is our dial. {f['protocol']} protocol, {f['part']} part, means of"
        f" {len(f['seeds'])} seeds, version {f['version']}."
    )
    return table(["data", "re-ranker", *heads], rows) + source("frontier", note)


def interests() -> str:
    """Return accuracy, minority recall and interest agreement of DPCML and others, one table per data set."""
    names = {
        "NDCG@5 (released)": "NDCG@5 (released)",
        "NDCG@10": "NDCG@10",
        "minority_R@10": "minority R@10",
        "interest_agreement": "interest agreement",
        "interest_agreement_held_out": "held out",
        "coverage@10": "coverage@10",
    }

    def cell(figure: dict[str, Any] | None) -> str:
        if figure is None:
            return ""
        ends = "" if figure["low"] is None else f" ({figure['low']:.3f} to {figure['high']:.3f})"
        return f"{figure['mean']:.3f}{ends}"

    def share(figure: dict[str, Any]) -> str:
        return percent(figure["share_of_oracle"]) if "share_of_oracle" in figure else ""

    tables = []
    for one in measured("interests")["sets"]:
        known = "oracle" in one["models"]
        shown = {metric: name for metric, name in names.items() if metric in one["models"]["dpcml"]}
        head = [one["data"], *shown.values(), *(["minority R@10, share of the oracle's"] if known else [])]
        rows = [
            [name, *(cell(row.get(metric)) for metric in shown), *([share(row["minority_R@10"])] if known else [])]
            for name, row in one["models"].items()
        ]
        runs = f"{one['seeds']} seeds" if one["seeds"] > 1 else "one seed"
        text = (
            f"{one['users']:,} users, {one['items']:,} items, {one['protocol']} protocol, means of {runs};"
            " in brackets 95 % intervals (bootstrap over users and seeds)."
        )
        tables.append(table(head, rows) + source("interests", text))
    return "\n".join(tables)


def cold() -> str:
    """Return how well items that nobody likes yet are ranked, one table per data set."""
    names = {
        "random": "random, or popularity: all have none",
        "popularity by content": "popularity, predicted by content",
    }

    def cell(figure: dict[str, float] | None) -> str:
        return "" if figure is None else f"{figure['mean']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"

    tables = []
    for one in measured("cold")["sets"]:
        metrics = list(one["methods"]["blend"])
        rows = [[names.get(name, name), *(cell(f.get(m)) for m in metrics)] for name, f in one["methods"].items()]
        text = (
            f"{one['cold_items']:,} held-out items beside {one['items']:,} known ones, {one['users']:,} users, seed"
            f" {one['seed']}; means over users, in brackets 95 % intervals. The first two metrics rank the held-out"
            " items among themselves, the last one among all items that the user does not know. Ridge penalty"
            f" {one['l2']:g}; content kNN: sum of the cosines with liked items, divided by the item's sum of cosines to"
            f" the power {one['chosen']['content kNN']['power']:g}, the best of three on validation items."
        )
        tables.append(table([one["data"], *metrics], rows) + source("cold", text))
    return "\n".join(tables)


def margins() -> str:
    """Return how far DPCML and the blend are above the best of the searched others, per data set and metric."""
    rows, runs = [], list[str]()
    for one in measured("interests")["sets"]:
        tried = max(Counter(trial["model"] for trial in one["trials"]).values(), default=1)
        runs.append(f"{one['data']} {one['seeds']} and {tried}")
        others = {name: row for name, row in one["models"].items() if name not in ("dpcml", "blend", "oracle")}
        for metric in ("NDCG@5 (released)", "NDCG@10", "minority_R@10", "coverage@10"):
            if metric not in one["models"]["dpcml"]:
                continue
            best = max(others, key=lambda name: others[name][metric]["mean"])
            value = others[best][metric]["mean"]
            ratios = [one["models"][name][metric]["mean"] / value - 1 for name in ("dpcml", "blend")]
            rows.append([one["data"], metric, f"{best} {value:.4f}", *(f"{ratio:+.1%}" for ratio in ratios)])
    head = ["data", "metric", "best of the others", "dpcml", "blend"]
    return table(head, rows) + source(
        "interests",
        f"Means over seeds, test parts. Seeds, and settings that were tried of each other: {', '.join(runs)}.",
    )


def fold_in() -> str:
    """Return accuracy for folded-in users against the same users in training."""
    f = measured("fold-in")
    kinds = {"in training": "trained", "folded in": "folded", "most popular items": "popularity"}
    metrics = list(f["trained"])
    rows = [[words, *(f"{f[kind][name]:.3f}" for name in metrics)] for words, kind in kinds.items()]
    rows.append(["folded in / in training", *(f"{f['ratio'][name]:.2f}" for name in metrics)])
    time = f["milliseconds"]
    words = f"\nFolding in one user with {time['items']} items takes {number(time['median'], 2)} ms (median).\n"
    note = (
        f"{f['data']}, {percent(f['held_out'])} of the users left out of training, `{f['model']}`,"
        f" {f['protocol']} protocol, means of {f['seeds']} seeds."
    )
    return table(["the same users", *metrics], rows) + words + source("fold-in", note)


def ray_accuracy() -> str:
    """Return accuracy against workers and interval of exchange, a table per data set."""
    found = measured("ray-accuracy")
    return "\n".join(_ray_accuracy_of(one) for one in found["sets"])


def _ray_accuracy_of(one: dict[str, Any]) -> str:
    metrics, alone = ("NDCG@10", "R@10"), one["rows"][0]
    rows = [
        [
            row["workers"] or "one process",
            row["sync_every"] or "",
            *(f"{row['mean'][metric]:.4f}" for metric in metrics),
            *(_against(row[metric], alone[metric]) if row["workers"] else "" for metric in metrics),
        ]
        for row in one["rows"]
    ]
    # of all rows: that of a single row is a rough estimate
    deviations = [math.sqrt(mean(variance(row[metric]) for row in one["rows"])) for metric in metrics]
    spread = " and ".join(
        f"{found / alone['mean'][metric]:.1%}" for found, metric in zip(deviations, metrics, strict=True)
    )
    head = ["workers", "batches between exchanges", *metrics, *(f"{metric} against one process" for metric in metrics)]
    changes = ", ".join(f"{name}={value}" for name, value in one["changes"].items())
    model = f"DPCML with {changes or 'its defaults'}"
    note = (
        f"{one['data']}: {one['users']:,} users, {one['items']:,} items; means of {one['seeds']} seeds, differences"
        f" with 95 % intervals (Welch), {one['protocol']} protocol, {model}. Seeds of one"
        f" setting differ by {spread} (standard deviation)."
    )
    return table(head, rows) + source("ray-accuracy", note)


def _against(values: list[float], others: list[float]) -> str:
    """Return how much the mean is above that of the others, in per cent of it, with its interval."""
    low, high = ttest_ind(values, others, equal_var=False).confidence_interval(0.95)
    usual = mean(others)
    return f"{(low + high) / 2 / usual:+.1%} ± {(high - low) / 2 / usual:.1%}"


def ray_faults() -> str:
    """Return how trainings ended in which a node was killed."""
    found = measured("ray-faults")
    runs = found["runs"]
    killed, same = (sum(run[name] for run in runs) for name in ("killed", "same_bits"))
    once = sum(run["restarts"] == 1 for run in runs)
    return (
        f"Of {killed} trainings in which a node was killed, {once} went on after one restart, and"
        f" {same} ended with the bits of an undisturbed training. *{found['workers']} workers on {found['nodes']}"
        f" nodes, dpcml {found['version']}. Source: `results/bench/ray-faults.json`.*\n"
    )


def research() -> str:
    """Return the log of trials, a folded section per topic with a table per data set; a page includes each by name."""
    with TRIALS.open(encoding="utf-8", newline="") as file:
        trials = list(csv.DictReader(file))
    sections = []
    for topic, of_topic in groupby(trials, lambda trial: trial["topic"]):
        tables = []
        for data, group in groupby(of_topic, lambda trial: trial["data"]):
            rows = list(group)
            metrics = [name for name in list(rows[0])[3:] if any(row[name] for row in rows)]
            names = [f"{name}, %" if name.startswith("NDCG") else name.replace("_", " ") for name in metrics]
            tables.append(
                table([data, *names], [[f"`{row['setting']}`", *(row[name] for name in metrics)] for row in rows])
            )
        lines = [*"\n".join(tables).splitlines(), "", "*Source: `results/research/trials.csv`.*"]
        name = re.sub("[^a-z]+", "-", topic.lower())
        folded = "\n".join(f"    {line}".rstrip() for line in lines)
        sections.append(f'--8<-- [start:{name}]\n??? note "Trials: {topic}"\n\n{folded}\n\n--8<-- [end:{name}]\n')
    return "\n".join(sections)


def reproduce_cost() -> str:
    """Return the estimated hours of the studies, by study and data set."""
    found = json.loads((ROOT / "results" / "reproduce-cost.json").read_text(encoding="utf-8"))["estimates"]
    rows = [[one["study"], one["data"], one["runs"], one["timed"], f"{one['hours']:.1f}"] for one in found]
    total = ["all", "", sum(one["runs"] for one in found), "", f"{sum(one['hours'] for one in found):.1f}"]
    return table(["study", "data", "runs or trials", "of which timed", "hours"], [*rows, total]) + (
        "\n*Estimated hours of one process on two cores, from the seconds of earlier runs; what was not timed is taken"
        " from the same model on another set, by its size. Runs that studies share count once. Source:"
        " `results/reproduce-cost.json` (`python tools/reproduce_cost.py`).*\n"
    )


def house() -> dict[str, dict[str, Any]]:
    """Return sizes and journeys of the package before and after it was rebuilt, as `journeys.py` counted them."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in (BEFORE, AFTER)}


def sizes() -> str:
    """Return the size of the package before the rebuilding, after it, and with what was added since."""
    before, after = (counted["sizes"] for counted in house().values())
    rebuilt = json.loads((ROOT / "results/architecture/rebuilt.json").read_text())["sizes"]
    rows = [[name, *(f"{sizes[name]:,}" for sizes in (before, rebuilt, after))] for name in after]
    return table(["the package", "before", "rebuilt", "with later parts"], rows) + HOUSE_SOURCE


def journeys() -> str:
    """Return files, functions and hops of each journey before and after."""
    before, after = (counted["journeys"] for counted in house().values())
    figures = ("files", "functions", "hops", "imported")
    rows = [
        [f"`{now['command']}`", *(f"{before[name.split()[0]][one]} → {now[one]}" for one in figures)]
        for name, now in after.items()  # "train one model" is what "train" did before
    ]
    return table(["command", "files", "functions", "hops", "files imported"], rows) + HOUSE_SOURCE


def drawn(name: str) -> str:
    """Return the files of a journey as a tree, each below the file that called it first."""
    lines = house()["after"]["journeys"][name]["tree"]
    return "\n".join(["```text", *lines, "```", ""])


HOUSE_SOURCE = (
    "\n*Before: commit 9b7cf1d. Counted by `tools/journeys.py`."
    " Source: `results/architecture/before.json` and `after.json`.*\n"
)


def command_line() -> str:
    """Return the reference of the command line, as Typer writes it, one level of headings lower."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cli.md"
        command = [
            sys.executable,
            "-m",
            "typer",
            "dpcml.cli",
            "utils",
            "docs",
            "--name",
            "dpcml",
            "--output",
            str(file),
        ]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "120"})
        text = html.unescape(file.read_text(encoding="utf-8"))
    text = re.sub(r"\* `--help`: Show this message and exit\.\n", "", text)
    text = re.sub(r"## `dpcml bench`\n.*?(?=## )", "", text, flags=re.DOTALL)  # hidden: it names the new command
    text = re.sub(r"\*\*Options\*\*:\n\n(?=\n|#|\Z)", "", text)  # commands without an option of their own
    return text.partition("## ")[1] + text.partition("## ")[2]


PARTS_OF_CAMPAIGN = {
    "kills": "processes killed while they write",
    "damaged_files": "damaged files read",
    "bad_inputs": "bad commands, parameters, requests, files and arrays",
    "disk_full": "writes to a disk without room",
    "sound_requests": "sound requests during reloads and kills of workers",
    "hostile_requests": "hostile requests",
    "reloads": "reloads, each of another model",
    "worker_kills": "workers of the server killed",
}


def reliability() -> str:
    """Return cases and failures of the campaign of faults, by kind."""
    found = json.loads((ROOT / "results" / "reliability.json").read_text(encoding="utf-8"))
    rows = []
    for name, words in PARTS_OF_CAMPAIGN.items():
        if name in found:
            kinds = ", ".join(f"{kind} {one['cases']:,}" for kind, one in found[name]["kinds"].items())
            rows.append([words, f"{found[name]['cases']:,}", f"{found[name]['failures']:,}", kinds])
    leak = found.get("leak_bytes_per_10000_requests")
    gained = "" if leak is None else f" The server gained {leak / 1e6:.2f} MB in 10,000 requests."
    cut = found.get("sound_requests", {}).get("cut_by_kills", 0)
    note = f"dpcml {found['version']}, Python {found['python']}, seed {found['seed']}; `make faults` runs it again."
    return (
        table(["what was done", "cases", "failures", "of these"], rows)
        + f"\n*{note}{gained} {cut:,} sound requests got no answer because their worker was killed at that moment;"
        " they count as no failure. Source: `results/reliability.json`.*\n"
    )


TABLES: dict[str, Callable[[], str]] = {
    "cli": command_line,
    "cold": cold,
    "evaluate": evaluation,
    "fold-in": fold_in,
    "frontier": frontier,
    "interests": interests,
    "margins": margins,
    "journey-evaluate": lambda: drawn("evaluate"),
    "journey-recommend": lambda: drawn("recommend"),
    "journey-reproduce": lambda: drawn("reproduce"),
    "journey-train": lambda: drawn("train"),
    "journeys": journeys,
    "methods": methods,
    "mix": mix,
    "quality": quality,
    "ray-accuracy": ray_accuracy,
    "ray-faults": ray_faults,
    "recommend": recommend,
    "reliability": reliability,
    "research": research,
    "reproduce-cost": reproduce_cost,
    "scale": scale,
    "scaling": scaling,
    "serve": serve,
    "simd": simd,
    "sizes": sizes,
    "train": training,
    "weights": weights,
}


def main() -> None:
    """Write all tables."""
    OUT.mkdir(exist_ok=True)
    for name, make in TABLES.items():
        (OUT / f"{name}.md").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
