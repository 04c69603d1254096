"""Tables of the page on Ray: accuracy with several workers, lost nodes, time and memory against the size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parents[1] / "results" / "bench"


def read(name: str) -> dict[str, Any]:
    """Return the figures of one benchmark."""
    figures: dict[str, Any] = json.loads((BENCH / f"{name}.json").read_text(encoding="utf-8"))
    return figures


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]], note: str, name: str) -> str:
    """Return a table with the line below it that says where its figures come from."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    text = "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
    return f"{text}\n\n*{note} Source: `results/bench/{name}.json`.*\n"


def accuracy() -> str:
    """Return accuracy against workers and interval of exchange, a table per data set."""
    found = read("ray-accuracy")
    return "\n".join(_accuracy_of(one) for one in found["sets"])


def _accuracy_of(one: dict[str, Any]) -> str:
    rows = [
        [
            row["workers"] or "one process",
            row["sync_every"] or "",
            *(f"{row['mean'][metric]:.4f}" for metric in ("NDCG@10", "R@10")),
            "" if not row["workers"] else f"{row['mean']['NDCG@10'] / one['rows'][0]['mean']['NDCG@10'] - 1:+.1%}",
        ]
        for row in one["rows"]
    ]
    alone = one["rows"][0]
    spread = alone["seed_deviation"]["NDCG@10"] / alone["mean"]["NDCG@10"]
    head = ["workers", "batches between exchanges", "NDCG@10", "R@10", "NDCG@10 against one process"]
    note = (
        f"{one['data']}: {one['users']:,} users, {one['items']:,} items; means of {one['seeds']} seeds,"
        f" {one['protocol']} protocol, DPCML with its defaults. Seeds of one process"
        f" differ by {spread:.1%} (standard deviation)."
    )
    return markdown(head, rows, note, "ray-accuracy")


def faults() -> str:
    """Return how trainings ended in which a node was killed."""
    found = read("ray-faults")
    runs = found["runs"]
    killed, same = (sum(run[name] for run in runs) for name in ("killed", "same_bits"))
    once = sum(run["restarts"] == 1 for run in runs)
    return (
        f"Of {killed} trainings in which a node was killed, {once} went on after one restart, and"
        f" {same} ended with the bits of an undisturbed training. *{found['workers']} workers on {found['nodes']}"
        f" nodes, dpcml {found['version']}. Source: `results/bench/ray-faults.json`.*\n"
    )


def size() -> str:
    """Return time and memory against the size, the model of the cost beside them."""
    found = read("scale")
    rows = [
        [
            f"{one['positives']:,}", f"{one['users']:,}", f"{one['items']:,}", one["vectors"], one["dim"],
            f"{1e9 * one['cpu_seconds'] / one['positives']:,.0f}",
            f"{1e9 * one['predicted_cpu_seconds'] / one['positives']:,.0f}",
            f"{one['peak_bytes'] / 1e6:,.0f}", f"{one['predicted_peak_bytes'] / 1e6:,.0f}",
        ]
        for one in found["train"]
    ]  # fmt: skip
    growth = found["growth"]
    head = ["training positives", "users", "items", "C", "d", "ns per positive", "model", "MB", "model"]
    note = (
        "Processor time of an epoch on one thread, and peak memory of its process. The model is fitted to the sizes up"
        f" to a million; a positive costs {growth['ratio']:.2f} times as much at {growth['to']:,} as at"
        f" {growth['from']:,}."
    )
    return markdown(head, rows, note, "scale")


def memory() -> str:
    """Return memory where only the interactions grow."""
    found = read("scale")
    rows = [
        [
            f"{one['rows']:,}", f"{one['interactions']:,}",
            *(f"{one[f'{who}_bytes'] / 1e6:,.0f}" for who in ("ingest", "command", "worker", "evaluate")),
        ]
        for one in found["memory"]
    ]  # fmt: skip
    head = ["rows", "positives", "`data ingest`, MB", "command of a training, MB", "a worker, MB", "`evaluate`, MB"]
    first = found["memory"][0]
    note = (
        f"About {first['users']:,} users and {first['items']:,} items in every row, two workers, d 8. Anonymous memory"
        " at its peak: pages of mapped files, which the system can take back, are left out."
    )
    return markdown(head, rows, note, "scale")


def cluster() -> str:
    """Return the time of fits with and without Ray, and what the model of the cost predicts for a cluster."""
    found = read("scale")
    ray = found["ray"]
    fits = [["one process", f"{ray['local']['seconds']:.1f}", f"{ray['local']['epoch_seconds']:.2f}"]]
    fits += [
        [f"Ray, workers: {count}", f"{one['seconds']:.1f}", f"{one['epoch_seconds']:.2f}"]
        for count, one in ray["workers"].items()
    ]  # fmt: skip
    note = (
        f"{ray['positives']:,} positives, {ray['items']:,} items, C 5, d 100, {ray['epochs']} epochs, one thread each"
        f" on {ray['cores']} cores; one worker takes {ray['overhead_of_one']:+.1%} against one process."
    )
    machine = found["machine"]
    rows = [
        [
            one["machines"], f"{one['sync_every']:,}", f"{one['compute_seconds'] / 60:,.0f}",
            f"{one['network_seconds'] / 60:,.0f}", f"{one['network_bytes_per_machine'] / 1e9:,.0f}",
            f"{one['bytes_per_machine'] / 1e9:,.0f}",
        ]
        for one in found["predictions"]
    ]  # fmt: skip
    head = [
        "machines",
        "batches between exchanges",
        "computing, minutes",
        "network, minutes",
        "GB sent",
        "memory, GB",
    ]
    said = (
        f"Predicted, not measured: an epoch on 10^10 positives of 250 million users, a million items, C 5, d 100, on"
        f" machines with {machine['cores']} cores and a network of {machine['gigabits']:g} Gbit/s, a worker each; all"
        " figures per machine."
    )
    return (
        markdown(["fit", "seconds", "seconds of an epoch"], fits, note, "scale")
        + "\n"
        + markdown(head, rows, said, "scale")
    )
