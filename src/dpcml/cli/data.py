"""``dpcml data``: which data sets there are, fetching them, and what is in them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, bytes_bar, console, note, print_json, show_table
from dpcml.cli.options import takes_reading
from dpcml.utils.errors import ParameterError
from dpcml.utils.text import printable

if TYPE_CHECKING:
    from dpcml.data.describe import Description

BARS_WIDTH = 100  # columns that bars may take

app = typer.Typer(help="Named data sets and your own files.", no_args_is_help=True)


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """Show the data sets that are known by name, and where they were found."""
    from dpcml.data.datasets import DATASETS, DatasetStore

    cache, found = DatasetStore(), {}
    for name in DATASETS:
        folders = {label: folder for label, folder in cache.folders(name).items() if DATASETS[name].layout(folder)}
        found[name] = next(iter(folders.items()), (None, None))
    if as_json:
        print_json({name: _entry(DATASETS[name], *found[name]) for name in DATASETS})
        return
    rows = []
    for name in DATASETS:
        entry = DATASETS[name]
        counts = (f"{count:,}" for count in (entry.counts.users, entry.counts.items, entry.counts.positives))
        rows.append([name, entry.title, *counts, found[name][0] or "not here", entry.licence])
    show_table("", ["name", "title", "users", "items", "positives", "found in", "licence"], rows)


def _entry(entry: Any, label: str | None, folder: Path | None) -> dict[str, Any]:
    return {
        "title": entry.title,
        "users": entry.counts.users,
        "items": entry.counts.items,
        "positives": entry.counts.positives,
        "rules": entry.rules,
        "found_in": label,
        "folder": None if folder is None else str(folder),
        "home": entry.home,
        "licence": entry.licence,
    }


@app.command()
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help="A name that 'dpcml data list' shows.")]) -> None:
    """Download a data set into the cache, going on where an earlier download broke off."""
    from dpcml.data.datasets import DATASETS, DatasetStore

    here = DatasetStore().locate(name)
    with bytes_bar(name) as progress:
        folder = DatasetStore().fetch(name, progress)
    if here is None:
        note(f"{name}: {DATASETS[name].licence}; {DATASETS[name].home}")
    else:
        note(f"{name} is here already")
    print(folder)


@app.command()
@takes_reading
def ingest(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="CSV, TSV or Parquet files.")],
    out: Annotated[Path, typer.Option(help="Folder for the shards.")],
    parts: Annotated[str, typer.Option(help="Shares of training, validation and test part.")] = "0.6,0.2,0.2",
    split_seed: Annotated[int, typer.Option(min=0, help="Seed of the hash that splits.")] = 0,
    shard_rows: Annotated[int, typer.Option(min=1, help="Rows per shard, about; memory grows with it.")] = 2**22,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Stream files that may be larger than memory to a folder of shards, which --data of the other verbs takes."""
    import json

    from dpcml.data.interactions import Preparation
    from dpcml.data.prepare import Rules
    from dpcml.scale.ingestion import ingest as stream

    for name in ("time", "weight", "format", "encoding", "items"):
        if name in reading:
            raise ParameterError(f"--{name} {reading[name]}: does not apply to files that are streamed; leave it out")
    columns = {name: reading.pop(name) for name in ("user", "item", "rating", "separator", "header") if name in reading}
    folder = stream(
        files,
        out,
        rules=Rules.of(reading),
        parts=_shares(parts),
        split_seed=split_seed,
        shard_rows=shard_rows,
        **columns,
    )
    said = json.loads((folder / "manifest.json").read_text())
    counts = {name: said[name] for name in ("users", "items", "positives")}
    if as_json:
        print_json({"out": str(out), **counts, "shards": len(said["shards"]), "split": said["split"]})
        return
    for line in Preparation(**{**said["preparation"], "notes": tuple(said["preparation"]["notes"])}).lines():
        note(f"- {line}")
    written = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    print(
        f"{written} in {len(said['shards'])} shards, split by {said['split']['rule']}\nnext: dpcml train --data"
        f" {shlex.quote(str(out))}"
    )


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--parts {text!r}: write three shares with commas between, such as 0.6,0.2,0.2") from None


@app.command()
@takes_reading
def describe(
    source: Annotated[str, typer.Argument(metavar="NAME-or-PATH", help="A named data set, or a file.")],
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(help="Draw a figure into this .png, .svg or .pdf file.")] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Count users, items and positives; show the preference diversity of users where items have attributes."""
    from dpcml.data.charts import check_suffix
    from dpcml.data.charts import plot as draw
    from dpcml.data.datasets import load_dataset
    from dpcml.data.describe import describe as count

    if plot is not None:
        check_suffix(plot)
    with bytes_bar(source) as progress:
        description = count(load_dataset(source, progress=progress, **reading))
    if plot is not None:
        note(f"figure: {draw(description, plot, title=Path(source).name)}")
    if as_json:
        print_json({"source": source, **description.to_dict()})
    else:
        _show(description)


def _show(description: Description) -> None:
    from rich.table import Table

    from dpcml.data.charts import TOP

    screen = console()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, figure in _figures(description):
        table.add_row(name, figure)
    screen.print(table)
    for line in description.preparation:
        screen.print(f"- {printable(line)}", markup=False)
    if (diversity := description.preference_diversity) is not None:
        print(f"\nPreference diversity Div(u), mean {diversity.mean:.3f}: users by share of their item pairs")
        print("without a common attribute")
        bins = (f"{low:.2f}-{high:.2f}" for low, high in pairwise(diversity.edges))
        _show_bars(screen, list(zip(bins, diversity.counts, strict=True)))
    if description.categories:
        shown, total = min(TOP, len(description.categories)), len(description.categories)
        print(f"\nCategories by positives{'' if shown == total else f', {shown} of {total:,}'}")
        _show_bars(screen, [(category.name, category.positives) for category in description.categories[:TOP]])


def _show_bars(screen: Any, rows: Sequence[tuple[str, int]]) -> None:
    """Print a labelled horizontal bar for each count, the longest as wide as there is room."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    width = min(screen.width, BARS_WIDTH)
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True, max_width=width // 3)
    table.add_column(ratio=1)
    table.add_column(justify="right")
    most = max(count for _, count in rows) or 1
    for label, count in rows:
        table.add_row(Text(printable(label)), ProgressBar(most, count), f"{count:,}")
    screen.print(table, width=width)


def _figures(description: Description) -> list[tuple[str, str]]:
    spread = description.positives_per_user
    rows = [
        ("users", f"{description.users:,}"),
        ("items with a positive", f"{description.items:,}"),
        ("item id space", f"{description.item_id_space:,}"),
        ("positives", f"{description.positives:,}"),
        ("density over the id space", f"{description.density_percent:.4f} %"),
        ("density over items with a positive", f"{description.density_percent_distinct:.4f} %"),
        ("positives per user, least", f"{spread.min:,}"),
        ("positives per user, median", f"{spread.median:,g}"),
        ("positives per user, mean", f"{spread.mean:,.1f}"),
        ("positives per user, most", f"{spread.max:,}"),
        ("content hash", description.content_hash[:16]),
    ]
    if description.catalogue_items is not None:
        rows.insert(3, ("items in the catalogue", f"{description.catalogue_items:,}"))
    return rows
