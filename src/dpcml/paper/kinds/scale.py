"""A set too large to ship: the table of overall performance where it is here, else speed and memory on its shape."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from dpcml.data.catalog.find import locate
from dpcml.data.synthetic import planted
from dpcml.models import create
from dpcml.paper import runner
from dpcml.paper.document import Block, Details, Heading, Note, Notes
from dpcml.paper.kinds import table
from dpcml.paper.kinds.base import KINDS, Kind, Results
from dpcml.paper.ledger import Job
from dpcml.paper.measuring import fit_memory
from dpcml.paper.paper import title_of
from dpcml.paper.spec import Spec
from dpcml.paper.table import Line, Table
from dpcml.utils.threads import thread_count

LABEL = "stand-in"


def jobs(spec: Spec, library: runner.Library) -> Iterable[Job]:
    """Return the runs of the table for the sets that are here, and one measurement on a stand-in for each other."""
    here = {data for data in spec.sets() if locate(data)}
    yield from (job for job in runner.jobs(spec, library) if job.data in here)
    for data in (data for data in spec.sets() if data not in here):
        shape = spec.options["stand_in"]
        yield Job(data, LABEL, 0, work=lambda shape=shape: figures(**shape), parameters=shape)  # type: ignore[misc]


def figures(
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


def blocks(results: Results) -> list[Block]:
    """Return the table where there are runs on the set itself, else speed and memory, labelled as what they are."""
    found = table.blocks(results) if any(results.rows(data) for data in results.sets()) else []
    for line in results.lines():
        if line["label"] == LABEL and not results.rows(line["data"]):
            found += _stand_in(results.spec, line)
    return found


def _stand_in(spec: Spec, line: dict[str, Any]) -> list[Block]:
    title = title_of(line["data"])
    note = Note(
        f"The ratings of {title} are not on this machine. These are **not** results on {title}: they are speed and"
        f" memory of DPCML2 on a planted world of {line['users']:,} users, {line['items']:,} items and"
        f" {line['positives']:,} positives. No accuracy is reported.",
        "warning",
    )
    shown = [
        Line("seconds per epoch (the better of those run)", [f"{line['seconds per epoch']:.2f}"]),
        Line("training positives per second", [f"{line['positives per second']:,.0f}"]),
        Line("training positives", [f"{line['training positives']:,}"]),
        Line("peak memory of training", [f"{line['peak bytes'] / 2**20:,.0f} MiB"]),
        Line("vectors, moments and positives, the least it can be", [f"{line['needed bytes'] / 2**20:,.0f} MiB"]),
        Line("bytes per learned number, at the peak", [f"{line['bytes per parameter']:.1f}"]),
        Line("seconds to generate the world", [f"{line['seconds to generate']:.1f}"]),
    ]
    said = [
        f"dpcml {line['version']}, {line['threads']} thread(s), seed 0; `dpcml reproduce {spec.name}` measures again,"
        f" or fills the table once the ratings are in `$DPCML_DATA/{line['data']}`"
    ]
    return [
        Heading(f"A planted world in place of {title}"),
        Notes([note]),
        Table(["DPCML2"], shown),
        Details("How this was measured", said),
    ]


KINDS.add("scale", Kind(blocks, jobs))
