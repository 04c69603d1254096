"""Seconds per epoch of every method, measured in one run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dpcml.data.interactions import Interactions
from dpcml.paper.document import Block, Details, Heading, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results
from dpcml.paper.ledger import Job
from dpcml.paper.measuring import YARDSTICK, time_methods
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import COLOURS, OTHER, TEXT, canvas
from dpcml.paper.runner import Library
from dpcml.paper.spec import Spec
from dpcml.paper.table import Line, Table

EPOCH, FIT = "epoch of ", "fit of "
OURS = ("dpcml1", "dpcml2")


def jobs(spec: Spec, library: Library) -> Iterator[Job]:
    """Yield one job per data set: all methods take turns, so that they can be compared."""
    for data in spec.sets():
        yield Job(
            data,
            "seconds",
            0,
            work=lambda data=data: figures(library(data), **spec.options),  # type: ignore[misc]
            parameters=spec.options,
        )


def figures(data: Interactions, methods: list[str], epochs: int = 3, repeats: int = 3) -> dict[str, Any]:
    """Return seconds per epoch, or per fit, of each method that could be run, and who could not."""
    found = time_methods(data, methods=methods, epochs=epochs, repeats=repeats)
    seconds = {f"{FIT if one['per'] == 'fit' else EPOCH}{one['name']}": one["seconds"] for one in found["methods"]}
    skipped = "; ".join(f"{name}: {reason}" for name, reason in found["skipped"].items())
    return {"threads": found["threads"], "load_before": found["load_before"], "skipped": skipped, **seconds}


def blocks(results: Results) -> list[Block]:
    """Return for each data set a figure, a table, and what an epoch of DPCML costs beside one vector."""
    found: list[Block] = []
    hurry = " --quick" if results.spec.quick else ""
    for line in results.lines():
        data, seconds, fits = line["data"], _of(line, EPOCH), _of(line, FIT)
        caption = (
            f"Seconds per training epoch on {title_of(data)}, on a logarithmic scale; {line['threads']} thread(s)."
        )
        yard = seconds.get(YARDSTICK, np.nan)
        rows = [Line(name, [f"{value:.3f}", f"{value / yard:.1f}", "epoch"]) for name, value in seconds.items()]
        rows += [Line(name, [f"{value:.3f}", "", "fit, no epochs"]) for name, value in fits.items()]
        load = f"load before {line['load_before']:.1f}" if line["load_before"] is not None else "load not known"
        said = [
            f"Best of {results.spec.options.get('repeats', 3)} rounds in which all methods take turns; dpcml"
            f" {line['version']}, {line['threads']} thread(s), {load}",
            f"`dpcml reproduce {results.spec.name}{hurry} --data {data}` measures again",
        ]
        said += [f"Left out: {line['skipped']}"] if line["skipped"] else []
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda seconds=seconds: _draw(seconds)),  # type: ignore[misc]
            Notes(_notes(seconds)),
            Table(["seconds", f"epochs of {YARDSTICK}", "per"], rows),
            Details("How this was measured", said),
        ]
    return found


def _of(line: dict[str, Any], prefix: str) -> dict[str, float]:
    """Return seconds by method, fastest first."""
    found = {name.removeprefix(prefix): value for name, value in line.items() if name.startswith(prefix) and value}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _notes(seconds: dict[str, float]) -> list[Note]:
    notes = []
    for several, one in (("dpcml1", "unis"), ("dpcml2", "hars")):
        if several in seconds and one in seconds:
            ratio = seconds[several] / seconds[one]
            notes.append(Note(f"An epoch of {several} takes {ratio:.1f} times one of {one}, its twin with one vector."))
    return notes


def _draw(seconds: dict[str, float]) -> Any:
    figure, axes = canvas(10, 1.2 + 0.4 * len(seconds))
    one, names = axes[0, 0], list(seconds)
    colours = [COLOURS[0] if name in OURS else OTHER for name in names]
    one.set_xscale("log")  # which has no zero for bars to begin at
    one.scatter(list(seconds.values()), names, s=110, color=colours)
    for name, value in seconds.items():
        one.annotate(f"{value:.3g}", (value, name), (10, 0), textcoords="offset points", va="center", fontsize=TEXT - 2)
    one.margins(x=0.12)
    one.xaxis.set_major_formatter("{x:g}")
    one.grid(axis="x", color=OTHER, alpha=0.35)
    one.invert_yaxis()
    one.grid(visible=False, axis="y")
    one.set_xlabel("seconds per epoch", fontsize=TEXT)
    return figure


KINDS.add("timing", Kind(blocks, jobs))
