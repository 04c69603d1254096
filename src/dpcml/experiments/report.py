"""Tables from results: ours beside the paper's, as Markdown."""

from __future__ import annotations

import json

import polars as pl

from dpcml.experiments.paper import METRICS, published
from dpcml.experiments.runner import Spec


def markdown(spec: Spec, done: pl.DataFrame) -> str:
    """Return the tables of a study: per data set the paper's figures, ours, and the difference, in percent.

    A figure is the mean over seeds, with its standard deviation; the difference is bold where ours is not below.
    """
    lines = [f"# {spec.title}", "", spec.about, ""]
    for data in dict.fromkeys(row.data for row in spec.rows):
        lines += [
            f"## {data}",
            "",
            f"| | seeds | {' | '.join(METRICS)} | seconds |",
            "|---|---|" + "---|" * (len(METRICS) + 1),
        ]
        for row in (row for row in spec.rows if row.data == data):
            found = done.filter((pl.col("data") == data) & (pl.col("label") == row.label)) if done.height else done
            if found.height:
                lines += _lines(row.label, row.paper, data, found)
        lines += ["", *_settings(spec, data, done), ""]
    return "\n".join(lines).rstrip() + "\n"


def _lines(label: str, paper: str | None, data: str, found: pl.DataFrame) -> list[str]:
    values = {name: 100 * found[name].to_numpy() for name in METRICS}
    mean = {name: float(values[name].mean()) for name in METRICS}
    spread = {name: float(values[name].std(ddof=1)) if found.height > 1 else 0.0 for name in METRICS}
    ours = " | ".join(f"{mean[name]:.2f} ± {spread[name]:.2f}" for name in METRICS)
    lines = [f"| {label} | {found.height} | {ours} | {found['seconds'].to_numpy().mean():.0f} |"]
    if paper is not None:
        theirs = {name: 100 * value for name, value in published(data, paper).items()}
        shown = " | ".join(f"{theirs[name]:.2f}" for name in METRICS)
        gaps = [mean[name] - theirs[name] for name in METRICS]
        marked = " | ".join(f"**{gap:+.2f}**" if gap >= 0 else f"{gap:+.2f}" for gap in gaps)
        lines += [f"| the paper's {paper} | | {shown} | |", f"| difference | | {marked} | |"]
    return lines


def _settings(spec: Spec, data: str, done: pl.DataFrame) -> list[str]:
    said = []
    for row in (row for row in spec.rows if row.data == data):
        values = ", ".join(f"{name} {json.dumps(value)}" for name, value in row.parameters.items())
        said.append(f"- *{row.label}*: `{row.model}`{', ' + values if values else ''}")
    if done.height:
        some = done.filter(pl.col("data") == data)
        versions, protocols = (", ".join(sorted(set(some[name].cast(str)))) for name in ("version", "protocol"))
        command = f"`dpcml reproduce {spec.name}` gives these figures again"
        said.append(f"\nProtocol {protocols}, dpcml {versions}; a seed decides split and training. {command}.")
    return said
