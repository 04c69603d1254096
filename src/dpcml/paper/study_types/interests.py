"""Data sets and interests: counts, preference diversity, categories, and accuracy by category."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from dpcml.data import describe
from dpcml.data.charts import COLOURS, MARKS, OTHER, TEXT, TOP, canvas, draw_diversity, draw_shares
from dpcml.data.datasets import DatasetStore
from dpcml.data.describe import BINS, preference_diversity
from dpcml.data.interactions import Interactions
from dpcml.data.items import Attributes
from dpcml.data.named_sets import DATASETS
from dpcml.paper.document import Heading, Note, Notes, ReportBlock, ReportTable, TableCell, TableLine
from dpcml.paper.published import published_table, title_of
from dpcml.paper.run_store import Job
from dpcml.paper.runs import DatasetCache, data_jobs
from dpcml.paper.spec import Spec
from dpcml.paper.study_types.base import STUDY_TYPES, StudyResults, StudyType, data_provenance, provenance
from dpcml.paper.study_types.curves import row_gap, values
from dpcml.paper.study_types.tables import cell
from dpcml.paper.verdicts import WORDS, Verdict, judge, verdict_of

COLUMNS = {"users": ("users", 0), "items": ("item id space", 0), "positives": ("positives", 0)}
COLUMNS |= {"density_percent": ("density, percent", 4)}
EDGES = np.arange(BINS + 1) / BINS
BIN_NAMES = [f"users {low:.2f}-{high:.2f}" for low, high in pairwise(EDGES)]
PREFIX = "MAP "


def dataset_figures(data: Interactions) -> dict[str, Any]:
    """Return the counts of the paper's table, and how many items have a positive."""
    space = data.item_id_space
    return {
        "users": data.n_users,
        "items": space,
        "positives": data.n_positives,
        "density_percent": 100 * data.n_positives / (data.n_users * space),
        "items_with_positives": int((data.per_item > 0).sum()),
    }


def dataset_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return the table, and whether every count is the paper's."""
    lines, same, different = [], 0, []
    for line in results.lines():
        theirs = published_table("datasets").get((line["data"], "counts"), {})
        cells = [
            TableCell(float(line[name]), theirs=theirs.get(name), digits=digits)
            for name, (_, digits) in COLUMNS.items()
        ]
        gaps = [one.gap() for one in cells if one.theirs is not None]
        same += sum(gap == 0 for gap in gaps)
        different += [f"{title_of(line['data'])} ({n} of {len(gaps)})" for n in [sum(gap != 0 for gap in gaps)] if n]
        lines.append(TableLine(title_of(line["data"]), [*cells, f"{line['items_with_positives']:,}"]))
    text = f"{same} counts are exactly the paper's" + (
        f"; others differ: {', '.join(different)}." if different else "."
    )
    header = [name for name, _ in COLUMNS.values()]
    note = Note(text)
    return [ReportTable([*header, "items with a positive"], lines), Notes([note]), data_provenance(results)]


STUDY_TYPES.add("datasets", StudyType(dataset_blocks, data_jobs(dataset_figures, "counts")))


def histogram_figures(data: Interactions) -> dict[str, Any]:
    """Return the mean preference diversity, the share of users above one half, and the counts of the histogram."""
    found = preference_diversity(data)
    found = found[np.isfinite(found)]
    counts, _ = np.histogram(found.round(12), bins=EDGES)
    summary = {"mean": float(found.mean()), "above half": float((found > 0.5).mean()), "users": len(found)}
    return {**summary, **dict(zip(BIN_NAMES, counts.tolist(), strict=True))}


def histogram_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return one figure over all sets, and notes with the means."""
    notes = [
        Note(
            f"{title_of(line['data'])}: mean preference diversity {line['mean']:.3f}; {line['above half']:.0%} of"
            f" {line['users']:,} users have more pairs of items without a common category than with one."
        )
        for line in results.lines()
    ]
    caption = "Users by preference diversity: the share of a user's ordered item pairs without a common category."
    return [results.picture("", caption, lambda: _draw_histogram(results)), Notes(notes), data_provenance(results)]


def _draw_histogram(results: StudyResults) -> Any:
    lines = results.lines()
    figure, axes = canvas(max(6, 5.4 * len(lines)), 4.2, 1, len(lines))
    for one, line in zip(axes[0], lines, strict=True):
        shares = 100 * np.array([line[name] for name in BIN_NAMES]) / line["users"]
        draw_diversity(one, EDGES.tolist(), shares, line["mean"])
        one.set_title(title_of(line["data"]), fontsize=TEXT)
        one.set_xlabel("preference diversity", fontsize=TEXT)
    axes[0, 0].set_ylabel("percent of users", fontsize=TEXT)
    return figure


STUDY_TYPES.add("histogram", StudyType(histogram_blocks, data_jobs(histogram_figures, "preference diversity")))


def category_figures(data: Interactions) -> dict[str, Any]:
    """Return the number of items and of positives in the most frequent categories, and of all."""
    kept = describe.categories(data)
    found: dict[str, Any] = {"categories": len(kept), "all items": int((data.per_item > 0).sum())}
    found["all positives"] = data.n_positives
    for category in kept[:TOP]:
        found[f"items {category.name}"] = category.items
        found[f"positives {category.name}"] = category.positives
    return found


def catalogue_figures(attributes: Attributes) -> dict[str, Any]:
    """Return the number of items in the most frequent categories of a catalogue alone, and of all.

    Examples
    --------
    >>> catalogue_figures(Attributes.from_sets([{"War"}, {"Drama"}, {"Drama", "War"}, {"Drama"}]))
    {'categories': 2, 'all items': 4, 'items Drama': 3, 'items War': 2}
    """
    counts = np.bincount(attributes.matrix.indices, minlength=len(attributes.names))
    kept = [at for at in np.argsort(-counts, kind="stable") if counts[at]]
    found: dict[str, Any] = {"categories": len(kept), "all items": int(attributes.matrix.shape[0])}
    return found | {f"items {attributes.names[at]}": int(counts[at]) for at in kept[:TOP]}


def category_jobs(spec: Spec, datasets: DatasetCache) -> Iterator[Job]:
    """Yield one job per data set; where only its catalogue is on the machine, the figures are of that."""
    for job in data_jobs(category_figures, "categories")(spec, datasets):
        found = catalogue_of(job.data)
        if found is None:
            yield job
        else:
            hashed = hashlib.sha256(found.matrix.indices.tobytes() + found.matrix.indptr.tobytes()).hexdigest()
            yield replace(job, work=partial(catalogue_figures, found), hashes=lambda hashed=hashed: (hashed,))  # type: ignore[misc]


def catalogue_of(data: str) -> Attributes | None:
    """Return the categories of a named set whose catalogue is on the machine, but whose positives are not."""
    if data not in DATASETS or DatasetStore().locate(data) is not None:
        return None
    folders = [folder for folder in DatasetStore().folders(data).values() if folder.is_dir()]
    found = (layout.catalogue(folder) for layout in DATASETS[data].layouts for folder in folders)
    return next((table.attributes for table in found if table is not None and table.attributes is not None), None)


def category_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return one figure over all sets, and notes on the largest and the smallest categories."""
    notes = []
    for line in results.lines():
        names = _category_names(line)
        first, last = names[0], names[-1]
        if line.get("all positives") is None:
            text = (
                f"{title_of(line['data'])}, from its catalogue alone (its ratings are not on this machine):"
                f" {line['categories']:,} categories; {first} is on {line[f'items {first}'] / line['all items']:.0%} of"
                f" {line['all items']:,} items, {last} on {line[f'items {last}'] / line['all items']:.1%}."
            )
            notes.append(Note(text))
            continue
        text = (
            f"{title_of(line['data'])}, {line['categories']:,} categories: {first} is on"
            f" {line[f'items {first}'] / line['all items']:.0%} of the items and in"
            f" {line[f'positives {first}'] / line['all positives']:.0%} of the positives; of the {len(names)} most"
            f" frequent, {last} is on {line[f'items {last}'] / line['all items']:.1%} and in"
            f" {line[f'positives {last}'] / line['all positives']:.1%}."
        )
        notes.append(Note(text))
    caption = "Share of items and of positives in each category; an item may be in several."
    return [results.picture("", caption, lambda: _draw_categories(results)), Notes(notes), data_provenance(results)]


def _category_names(line: dict[str, Any]) -> list[str]:
    """Return the categories of a set, most items first."""
    names = [name.removeprefix("items ") for name in line if name.startswith("items ") and line[name] is not None]
    return sorted(names, key=lambda name: (-line[f"items {name}"], name))


def _draw_categories(results: StudyResults) -> Any:
    lines = results.lines()
    figure, axes = canvas(max(7, 6.2 * len(lines)), 7.6, 1, len(lines))
    for one, line in zip(axes[0], lines, strict=True):
        names = _category_names(line)
        shares = {
            f"of {kind}": [100 * line[f"{kind} {name}"] / line[f"all {kind}"] for name in names]
            for kind in ("items", "positives")
            if line.get(f"all {kind}") is not None
        }
        draw_shares(one, names, shares)
        one.set_xlabel("percent", fontsize=TEXT)
        one.set_title(title_of(line["data"]), fontsize=TEXT)
    return figure


STUDY_TYPES.add("categories", StudyType(category_blocks, category_jobs))


def group_blocks(results: StudyResults) -> list[ReportBlock]:
    """Return for each data set a figure, a table, and in how many categories one row is above another."""
    found: list[ReportBlock] = []
    for data in results.sets():
        caption = f"MAP by category on {title_of(data)}, mean over seeds; categories with most test items first."
        names, rows = test_categories(results, data), results.rows(data)
        table = ReportTable(
            [row.label for row in rows],
            [
                TableLine(name, [cell(results.spec, row, results.of(row), PREFIX + name) for row in rows])
                for name in names
            ],
        )
        found += [
            Heading(title_of(data)),
            results.picture(data, caption, lambda data=data: _draw_groups(results, data)),  # type: ignore[misc]
            Notes(_group_notes(results, data, names)),
            table,
            provenance(results, data),
        ]
    return found


def test_categories(results: StudyResults, data: str) -> list[str]:
    """Return the categories that have figures, those with most positives first."""
    done = results.on(data)
    share = {
        name.removeprefix("share "): float(done[name].cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]
        for name in done.columns
        if name.startswith("share ") and done[name].drop_nulls().len()
    }
    known = [name.removeprefix(PREFIX) for name in done.columns if name.startswith(PREFIX)]
    filled = [name for name in known if done[PREFIX + name].drop_nulls().len()]
    return sorted(filled, key=lambda name: (-share.get(name, 0.0), name))


def minority_categories(results: StudyResults, data: str, names: list[str]) -> list[str]:
    """Return the minority categories: those with a smaller share of the test positives than categories have on average.

    Without shares in the results there are none.
    """
    done = results.on(data)
    share = {
        name: float(done[f"share {name}"].cast(pl.Float64).mean())  # type: ignore[arg-type]
        for name in names
        if f"share {name}" in done.columns and done[f"share {name}"].drop_nulls().len()
    }
    average = sum(share.values()) / max(len(share), 1)
    return [name for name in names if share.get(name, average) < average]


def _group_notes(results: StudyResults, data: str, names: list[str]) -> list[Note]:
    """Return a note per claim: in how many of the majority and of the minority categories the row is above.

    A claim holds if it holds in both: significantly above in most of them, significantly below in none.
    """
    rows = {row.label: row for row in results.rows(data)}
    pairs = [
        (claim, worse)
        for claim in results.spec.claims
        for worse in claim.worse
        if worse in rows and claim.better in rows
    ]
    minority = minority_categories(results, data, names)
    judged = judge(
        [
            [row_gap(results, rows[claim.better], rows[worse], PREFIX + name, name) for name in names]
            for claim, worse in pairs
        ]
    )
    notes = []
    for (claim, worse), verdict in zip(pairs, judged, strict=True):
        small, large = (
            Verdict(verdict_of([gap.side for gap in gaps]), gaps) if gaps else None
            for gaps in (
                tuple(gap for gap in verdict.gaps if (gap.metric in minority) == wanted) for wanted in (True, False)
            )
        )
        parts = {"majority": large, "minority": small}
        worst = max((part.name for part in parts.values() if part), key=("holds", "level", "fails").index)
        said = "; ".join(f"of {len(part.gaps)} {name} categories {part.counts}" for name, part in parts.items() if part)
        low, high = (pick(verdict.gaps, key=lambda gap: gap.mean) for pick in (min, max))
        smaller = f" Minority categories: {', '.join(minority)}." if minority else ""
        notes.append(
            Note(
                f"The paper says that {claim.text}. In our runs this **{WORDS[worst]}**: *{claim.better}* against"
                f" *{worse}*, {verdict.seeds}: {said}; gains from {low.mean:+.2f} ({low.metric}) to {high.mean:+.2f}"
                f" ({high.metric}).{smaller}",
                worst,
                claim=True,
            )
        )
    return notes


def _draw_groups(results: StudyResults, data: str) -> Any:
    names, rows = test_categories(results, data), results.rows(data)
    figure, axes = canvas(10, 1.4 + 0.38 * len(names))
    one, at = axes[0, 0], np.arange(len(names))
    means = np.array([[values(results, row, PREFIX + name).mean() for name in names] for row in rows])
    one.hlines(at, means.min(axis=0), means.max(axis=0), color=OTHER, linewidth=1.5, zorder=1)
    for k, row in enumerate(rows):
        one.scatter(means[k], at, s=80, color=COLOURS[k % 6], marker=MARKS[k % 6], label=row.label, zorder=2)
    one.set_yticks(at, names)
    one.invert_yaxis()
    one.set_xlabel("MAP by category, percent", fontsize=TEXT)
    one.grid(axis="x", color=OTHER, alpha=0.35)
    figure.legend(loc="outside upper center", ncols=len(rows), frameon=False, fontsize=TEXT)
    return figure


STUDY_TYPES.add("groups", StudyType(group_blocks))
