"""Speed and memory: seconds per epoch of every method, and a planted stand-in for a data set that is missing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dpcml.data.charts import COLOURS, OTHER, TEXT, canvas
from dpcml.data.datasets import DatasetStore
from dpcml.data.interactions import Interactions
from dpcml.data.synthetic import planted
from dpcml.models import create
from dpcml.paper.document import Details, Heading, Note, Notes, ReportBlock, ReportTable, TableLine
from dpcml.paper.measuring import YARDSTICK, fit_memory, time_methods
from dpcml.paper.published import title_of
from dpcml.paper.runs import DatasetCache, Job, model_jobs
from dpcml.paper.spec import Spec
from dpcml.paper.study_types.base import STUDY_TYPES, StudyResults, StudyType
from dpcml.paper.study_types.tables import table_blocks
from dpcml.utils.threads import thread_count

EPOCH, FIT = "epoch of ", "fit of "
OURS = ("dpcml1", "dpcml2")
LABEL = "stand-in"


def timing_jobs(spec: Spec, datasets: DatasetCache) -> Iterator[Job]:
    """Yield one job per data set: all methods take turns, so that they can be compared."""
    for data in spec.sets:
        yield Job(
            data,
            "seconds",
            0,
            work=lambda data=data: timing_figures(datasets(data), **spec.options),  # type: ignore[misc]
            parameters=spec.options,
        )


def timing_figures(data: Interactions, methods: list[str], epochs: int = 3, repeats: int = 3) -> dict[str, Any]:
    """Return seconds per epoch, or per fit, of each method that could be run, and who could not."""
    found = time_methods(data, methods=methods, epochs=epochs, repeats=repeats)
    seconds = {f"{FIT if one['per'] == 'fit' else EPOCH}{one['name']}": one["seconds"] for one in found["methods"]}
    skipped = "; ".join(f"{name}: {reason}" for name, reason in found["skipped"].items())
    return {"threads": found["threads"], "load_before": found["load_before"], "skipped": skipped, **seconds}


def timing_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return for each data set a figure, a table, and what an epoch of DPCML costs beside one vector."""
    found: list[ReportBlock] = []
    hurry = " --quick" if results.spec.quick else ""
    for line in results.lines():
        data, seconds, fits = line["data"], _seconds_of(line, EPOCH), _seconds_of(line, FIT)
        caption = (
            f"Seconds per training epoch on {title_of(data)}, on a logarithmic scale; {line['threads']} thread(s)."
        )
        yard = seconds.get(YARDSTICK, np.nan)
        rows = [TableLine(name, [f"{value:.3f}", f"{value / yard:.1f}", "epoch"]) for name, value in seconds.items()]
        rows += [TableLine(name, [f"{value:.3f}", "", "fit, no epochs"]) for name, value in fits.items()]
        load = f"load before {line['load_before']:.1f}" if line["load_before"] is not None else "load not known"
        said = [
            f"Best of {results.spec.options.get('repeats', 3)} rounds in which all methods take turns; dpcml"
            f" {line['version']}, {line['threads']} thread(s), {load}",
            f"`dpcml reproduce {results.spec.name}{hurry} --data {data}` measures again",
        ]
        said += [f"Left out: {line['skipped']}"] if line["skipped"] else []
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda seconds=seconds: _draw_timing(seconds)),  # type: ignore[misc]
            Notes(_timing_notes(seconds)),
            ReportTable(["seconds", f"epochs of {YARDSTICK}", "per"], rows),
            Details("How this was measured", said),
        ]
    return found


def _seconds_of(line: dict[str, Any], prefix: str) -> dict[str, float]:
    """Return seconds by method, fastest first."""
    found = {name.removeprefix(prefix): value for name, value in line.items() if name.startswith(prefix) and value}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _timing_notes(seconds: dict[str, float]) -> list[Note]:
    notes = []
    for several, one in (("dpcml1", "unis"), ("dpcml2", "hars")):
        if several in seconds and one in seconds:
            ratio = seconds[several] / seconds[one]
            notes.append(Note(f"An epoch of {several} takes {ratio:.1f} times one of {one}, its twin with one vector."))
    return notes


def _draw_timing(seconds: dict[str, float]) -> Any:
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


STUDY_TYPES.add("timing", StudyType(timing_blocks, timing_jobs))


def scale_jobs(spec: Spec, datasets: DatasetCache) -> Iterable[Job]:
    """Yield the runs of the table for the sets on this machine, and one measurement on a stand-in for each other."""
    here = {data for data in spec.sets if DatasetStore().locate(data)}
    yield from (job for job in model_jobs(spec, datasets) if job.data in here)
    for data in (data for data in spec.sets if data not in here):
        shape = spec.options["stand_in"]
        yield Job(data, LABEL, 0, work=lambda shape=shape: stand_in_figures(**shape), parameters=shape)  # type: ignore[misc]


def stand_in_figures(
    users: int, items: int, positives: int, epochs: int = 2, setting: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Train DPCML2 for some epochs on a planted world of a shape; return seconds and memory, the best epoch counts."""
    started = time.perf_counter()
    world = planted(users, items, positives=positives / users).data
    made = time.perf_counter() - started
    train = world.split((0.6, 0.2, 0.2), 0).train
    parameters = {**(setting or {}), "epochs": epochs, "random_state": 0}
    model: Any = create("dpcml2", **parameters).fit(train)
    seconds = [epoch.seconds for epoch in model.history_.epochs]
    del model
    memory = fit_memory("dpcml2", {**parameters, "epochs": 1}, train)
    return {
        "users": users,
        "items": items,
        "positives": world.n_positives,
        "training positives": train.n_positives,
        "threads": thread_count(),
        "seconds to generate": made,
        "seconds per epoch": min(seconds),
        "positives per second": train.n_positives / min(seconds),
        "peak bytes": memory["peak_bytes"],
        "needed bytes": memory["needed_bytes"],
        "bytes per parameter": memory["peak_bytes"] / memory["parameters"],
    }


def scale_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return the table if there are runs on the set itself; otherwise speed and memory, labelled as a stand-in."""
    found = table_blocks(results) if any(results.rows(data) for data in results.sets()) else []
    for line in results.lines():
        if line["label"] == LABEL and not results.rows(line["data"]):
            found += _stand_in_blocks(results.spec, line)
    return found


def _stand_in_blocks(spec: Spec, line: dict[str, Any]) -> list[ReportBlock]:
    title = title_of(line["data"])
    note = Note(
        f"The ratings of {title} are not on this machine. These are **not** results on {title}: they are speed and"
        f" memory of DPCML2 on a planted world of {line['users']:,} users, {line['items']:,} items and"
        f" {line['positives']:,} positives. No accuracy is reported.",
        "warning",
    )
    shown = [
        TableLine("seconds per epoch (the better of those run)", [f"{line['seconds per epoch']:.2f}"]),
        TableLine("training positives per second", [f"{line['positives per second']:,.0f}"]),
        TableLine("training positives", [f"{line['training positives']:,}"]),
        TableLine("peak memory of training", [f"{line['peak bytes'] / 2**20:,.0f} MiB"]),
        TableLine("vectors, moments and positives, the least it can be", [f"{line['needed bytes'] / 2**20:,.0f} MiB"]),
        TableLine("bytes per learned number, at the peak", [f"{line['bytes per parameter']:.1f}"]),
        TableLine("seconds to generate the world", [f"{line['seconds to generate']:.1f}"]),
    ]
    said = [
        f"dpcml {line['version']}, {line['threads']} thread(s), seed 0; `dpcml reproduce {spec.name}` measures again,"
        f" or fills the table once the ratings are in `$DPCML_DATA/{line['data']}`"
    ]
    return [
        Heading(f"A planted world in place of {title}"),
        Notes([note]),
        ReportTable(["DPCML2"], shown),
        Details("How this was measured", said),
    ]


STUDY_TYPES.add("scale", StudyType(scale_blocks, scale_jobs))
