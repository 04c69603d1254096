"""Readers: files of many formats become `Interactions`; one class per format, found by name in `READERS`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable
from dpcml.data.prepare import Rules, prepare
from dpcml.data.readers.base import READERS, Options, Parsed, Reader, check_options, detect, joined
from dpcml.data.readers.items import read_items, read_tags
from dpcml.data.readers.objects import JSON
from dpcml.data.readers.published import ListFiles, MovieLens, Steam
from dpcml.data.readers.source import SourceFile, open_source
from dpcml.data.readers.tables import Parquet, Tables
from dpcml.utils.errors import DataError, ParameterError

__all__ = [
    "JSON",
    "READERS",
    "ListFiles",
    "MovieLens",
    "Options",
    "Parquet",
    "Parsed",
    "Reader",
    "SourceFile",
    "Steam",
    "Tables",
    "read",
    "read_items",
    "read_tags",
]


def read(
    path: str | Path | Sequence[str | Path],
    *,
    format: str | Reader | None = None,  # noqa: A002
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    items: str | Path | ItemTable | None = None,
    **rules: Any,
) -> Interactions:
    r"""Read interactions from a file; ``preparation.notes`` of the result says what was guessed.

    Parameters
    ----------
    path
        A file, perhaps gzipped; or several of the same format, read as one.
    format
        A name in `READERS`, or a reader such as ``Steam(behaviour="play")``. Without it, the file's name and
        content decide.
    user, item, rating, time
        Names of the columns of a table, or their positions from 1 where it has no header. ``rating=""`` or
        ``time=""`` leaves that column out.
    weight
        Name or position of a column that says how much a positive counts, such as play counts; it may be that of the
        ratings. ``hours`` for Steam-200k, ``rating`` for MovieLens.
    separator
        Separator of the columns of a text table. Without it, comma, semicolon, tab and bar are tried.
    header
        Whether the first line of a text table names the columns.
    encoding
        UTF-8 by default; Latin-1 is tried for MovieLens.
    items
        Titles and attributes: a table, or a file for `read_items`. MovieLens' own is used if it lies beside.
    **rules
        The fields of `dpcml.data.prepare.Rules`: ``min_rating``, ``min_user_interactions``,
        ``min_item_interactions``, ``core``, ``text_ids``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.dat"
    ...     _ = file.write_text("1::31::5::978300760\n1::32::2::978300761\n2::31::4::978300762\n")
    ...     data = read(file, min_rating=4)
    >>> data, data.preparation.notes
    (Interactions(2 users, 1 items, 2 positives), ('format: movielens',))
    """
    checked = Rules.of(rules)
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(part) for part in path]
    if not paths:
        raise ParameterError("path=[]: name at least one file")
    options = Options(user, item, rating, time, weight, separator, header)
    if not (format is None or isinstance(format, (str, Reader))):
        raise ParameterError(f"format={format!r}: must be a name, a reader, or None to find out")
    if not (items is None or isinstance(items, (str, Path, ItemTable))):
        raise ParameterError(f"items={items!r}: must be a file, an ItemTable, or None")
    sources = [open_source(part, encoding) for part in paths]
    chosen = detect(sources[0]) if format is None else format
    notes = (f"format: {chosen}",) if format is None else ()
    reader = READERS[chosen] if isinstance(chosen, str) else chosen
    check_options(str(chosen), reader, options)
    rows = joined([reader.parse(source, options) for source in sources])
    table, found = _catalogue(paths[0], reader, items, checked.text_ids, item)
    return prepare(
        rows.table, rows.where, checked,
        items=table, notes=(*notes, *rows.notes, *found), source=", ".join(part.name for part in paths),
    )  # fmt: skip


def _catalogue(
    path: Path, reader: Reader, items: str | Path | ItemTable | None, text_ids: bool, like: str | None
) -> tuple[ItemTable | None, tuple[str, ...]]:
    """Return the items' titles: those the caller gave, or those of a file that lies beside the data."""
    if isinstance(items, ItemTable):
        return items, ()
    if items is not None:
        return read_items(items, text_ids=text_ids, like=like), ()
    for name in reader.titles(path.name.lower()):
        beside = path.with_name(name)
        if beside.is_file():
            try:
                return read_items(beside, text_ids=text_ids), (f"titles: {name}, found beside",)
            except DataError as error:
                return None, (f"titles: {name} lies beside, but is left out: {error}",)
    return None, ()
