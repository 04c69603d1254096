"""Counts of the data sets beside the paper's."""

from __future__ import annotations

from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.paper.document import Block, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results
from dpcml.paper.kinds.of_data import data_jobs, source
from dpcml.paper.paper import table, title_of
from dpcml.paper.table import Cell, Line, Table

COLUMNS = {"users": ("users", 0), "items": ("item id space", 0), "positives": ("positives", 0)}
COLUMNS |= {"density_percent": ("density, percent", 4)}


def figures(data: Interactions) -> dict[str, Any]:
    """Return the counts of the paper's table, and how many items have a positive."""
    space = data.item_id_space
    return {
        "users": data.n_users,
        "items": space,
        "positives": data.n_positives,
        "density_percent": 100 * data.n_positives / (data.n_users * space),
        "items_with_positives": int((data.per_item > 0).sum()),
    }


def blocks(results: Results) -> list[Block]:
    """Return the table, and whether every count is the paper's."""
    lines, same, different = [], 0, []
    for line in results.lines():
        theirs = table("datasets").get((line["data"], "counts"), {})
        cells = [
            Cell(float(line[name]), theirs=theirs.get(name), digits=digits) for name, (_, digits) in COLUMNS.items()
        ]
        gaps = [one.gap() for one in cells if one.theirs is not None]
        same += sum(gap == 0 for gap in gaps)
        different += [f"{title_of(line['data'])} ({n} of {len(gaps)})" for n in [sum(gap != 0 for gap in gaps)] if n]
        lines.append(Line(title_of(line["data"]), [*cells, f"{line['items_with_positives']:,}"]))
    text = f"{same} counts are exactly the paper's" + (
        f"; others differ: {', '.join(different)}." if different else "."
    )
    header = [name for name, _ in COLUMNS.values()]
    note = Note(text, "partly" if different else "holds")
    return [Table([*header, "items with a positive"], lines), Notes([note]), source(results)]


KINDS.add("datasets", Kind(blocks, data_jobs(figures, "counts")))
