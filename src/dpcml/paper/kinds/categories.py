"""How unequal interests are: the share of items in each category."""

from __future__ import annotations

from typing import Any

from dpcml.data import describe
from dpcml.data.interactions import Interactions
from dpcml.paper.document import Block, Note, Notes
from dpcml.paper.kinds.base import KINDS, Kind, Results
from dpcml.paper.kinds.of_data import data_jobs, source
from dpcml.paper.paper import title_of
from dpcml.paper.plotting import COLOURS, TEXT, canvas

MOST = 20  # categories kept per set
LONGEST = 24  # characters of a name


def figures(data: Interactions) -> dict[str, Any]:
    """Return the number of items and of positives in the most frequent categories, and of all."""
    kept = describe.categories(data)
    found: dict[str, Any] = {"categories": len(kept), "all items": int((data.per_item > 0).sum())}
    found["all positives"] = data.n_positives
    for category in kept[:MOST]:
        found[f"items {category.name}"] = category.items
        found[f"positives {category.name}"] = category.positives
    return found


def blocks(results: Results) -> list[Block]:
    """Return one figure over all sets, and how unequal the categories are in words."""
    notes = []
    for line in results.lines():
        names = _names(line)
        first, last = names[0], names[-1]
        text = (
            f"{title_of(line['data'])}, {line['categories']:,} categories: {first} is on"
            f" {line[f'items {first}'] / line['all items']:.0%} of the items and in"
            f" {line[f'positives {first}'] / line['all positives']:.0%} of the positives; of the {len(names)} most"
            f" frequent, {last} is on {line[f'items {last}'] / line['all items']:.1%} and in"
            f" {line[f'positives {last}'] / line['all positives']:.1%}."
        )
        notes.append(Note(text))
    caption = "Share of items and of positives in each category; an item may be in several."
    return [results.picture("", caption, lambda: _draw(results)), Notes(notes), source(results)]


def _names(line: dict[str, Any]) -> list[str]:
    """Return the categories of a set, most items first."""
    names = [name.removeprefix("items ") for name in line if name.startswith("items ") and line[name] is not None]
    return sorted(names, key=lambda name: (-line[f"items {name}"], name))


def _draw(results: Results) -> Any:
    lines = results.lines()
    figure, axes = canvas(max(7, 6.2 * len(lines)), 7.6, 1, len(lines))
    for one, line in zip(axes[0], lines, strict=True):
        names = _names(line)
        for kind, colour, shift in (("items", COLOURS[0], -0.2), ("positives", COLOURS[1], 0.2)):
            shares = [100 * line[f"{kind} {name}"] / line[f"all {kind}"] for name in names]
            one.barh([k + shift for k in range(len(names))], shares, 0.4, color=colour, label=f"of {kind}")
        one.set_yticks(range(len(names)), [_short(name) for name in names])
        one.invert_yaxis()
        one.set_xlabel("percent", fontsize=TEXT)
        one.set_title(title_of(line["data"]), fontsize=TEXT)
        one.grid(visible=False, axis="y")
        one.grid(axis="x", color="#999999", alpha=0.35)
        one.legend(frameon=False, loc="lower right")
    return figure


def _short(name: str) -> str:
    """Return a name as matplotlib should show it: not too long, and a dollar sign begins no formula."""
    return (name if len(name) <= LONGEST else name[: LONGEST - 1] + "…").replace("$", r"\$")


KINDS.add("categories", Kind(blocks, data_jobs(figures, "categories")))
