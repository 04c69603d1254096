"""Item titles and attributes: ``movies.dat``, ``u.item``, CiteULike's tags, or any table with an id column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpcml.data.columns import COMMON_NAMES, Where, encode_ids, normalized, reject
from dpcml.data.frames import frame_columns, row_of_frame
from dpcml.data.items import Attributes, ItemTable
from dpcml.data.readers.base import Options, Parsed
from dpcml.data.readers.objects import is_json, json_columns
from dpcml.data.readers.published import check_counts, numbers_by_line
from dpcml.data.readers.source import SourceFile, open_source, read_delimited
from dpcml.data.readers.tables import MAGIC, open_table, parquet_columns
from dpcml.utils.arrays import BoolArray
from dpcml.utils.errors import DataError

COMMON = {
    "item": ("id", *COMMON_NAMES["item"]),
    "title": ("title", "name", "itemname", "itemtitle", "movietitle", "productname", "producttitle", "label"),
    "attributes": ("genres", "genre", "tags", "tag", "categories", "category", "attributes", "topics"),
}
ITEMS_FRAME = "the frame of items"
LIKE = "like"  # the name of the column of items in the interactions
NOTHING = ("", "(no genres listed)")
U_ITEM_WIDTH, U_ITEM_FLAGS = 24, 5  # fields of u.item, and where its flags begin
ML_100K_GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip


def read_items(
    path: str | Path,
    *,
    item: str | None = None,
    title: str | None = None,
    attributes: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    text_ids: bool = False,
    like: str | None = None,
) -> ItemTable:
    r"""Read titles and attribute sets of items.

    Parameters
    ----------
    path
        ``movies.dat`` (``id::title::A|B``), ``u.item``, CSV, TSV or Parquet, perhaps gzipped.
    item, title, attributes
        Names of the columns of a table; guessed from common names where not given. Attributes are split at
        ``|``, or else at ``;``, or else at ``,``.
    separator, header, encoding
        As for `dpcml.data.readers.read`.
    text_ids
        Keep ids as text, even where all of them are whole numbers.
    like
        How the interactions call the column of items: it is taken for the ids if there is one of that name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "movies.dat"
    ...     _ = file.write_text("1::Heat (1995)::Action|Crime\n2::Sabrina (1995)::Comedy\n")
    ...     films = read_items(file)
    >>> films.title(0), films.attributes.of(0)
    ('Heat (1995)', ['Action', 'Crime'])
    """
    source = open_source(path, encoding)
    given = {"item": item, "title": title, "attributes": attributes, LIKE: like}
    head = source.head()
    first = head.partition("\n")[0]
    if head.startswith(MAGIC):
        found = _from_typed(parquet_columns(source, lambda names: (_pick(names, given, source.name), ())))
    elif separator is None and first.count("::") == 2:
        found = _from_movies(source)
    elif separator is None and first.count("|") == U_ITEM_WIDTH - 1:
        found = _from_u_item(source)
    elif separator is None and is_json(head):
        found = _from_typed(json_columns(source, lambda names: (_pick(names, given, source.name), ())))
    else:
        found = _from_table(source, given, Options(separator=separator, header=header))
    return _item_table(str(source.path), found, text_ids)


def items_from_frame(
    frame: Any,
    *,
    item: str | None = None,
    title: str | None = None,
    attributes: str | None = None,
    text_ids: bool = False,
    like: str | None = None,
) -> ItemTable:
    """Return titles and attribute sets of items from a frame.

    Parameters
    ----------
    frame
        A pandas or polars frame, a polars LazyFrame, or another frame that narwhals knows.
    item, title, attributes, text_ids, like
        As for `read_items`; a column of attributes may hold lists, too.

    Examples
    --------
    >>> films = items_from_frame(pl.DataFrame({"id": [1], "title": ["Heat"], "genres": [["Action", "Crime"]]}))
    >>> films.title(0), films.attributes.of(0)
    ('Heat', ['Action', 'Crime'])
    """
    given = {"item": item, "title": title, "attributes": attributes, LIKE: like}
    table, _ = frame_columns(frame, lambda names: (_pick(names, given, ITEMS_FRAME), ()))
    return _item_table(ITEMS_FRAME, _Found(table, row_of_frame, _sets(table)), text_ids)


@dataclass(frozen=True)
class _Found:
    """Columns ``item`` and perhaps ``title``, and attribute names per row if known."""

    table: pl.DataFrame
    where: Where
    sets: list[list[str]] | None = None


def _from_movies(source: SourceFile) -> _Found:
    cells, lines = read_delimited(source, source.text(fallback="latin-1"), "::")
    table = cells.select(item="0", title="1", attributes="2")
    return _Found(table, lines.where, _split(table["attributes"]))


def _from_u_item(source: SourceFile) -> _Found:
    cells, lines = read_delimited(source, source.text(fallback="latin-1"), "|")
    genres = _genres(source.path.with_name("u.genre"))
    flags = cells[:, U_ITEM_FLAGS:U_ITEM_WIDTH]
    known: BoolArray = np.all(flags.select(pl.all().is_in(["0", "1"]).fill_null(False)).to_numpy(), axis=1)
    reject(~known, lines.where, lambda row: f"the last {len(genres)} fields must be 0 or 1, one per genre")
    names = np.array(genres, dtype=object)
    sets = [names[row].tolist() for row in (flags == "1").to_numpy()]
    return _Found(cells.select(item="0", title="1"), lines.where, sets)


def _genres(path: Path) -> Sequence[str]:
    """Return the names of the flags: those of ``u.genre``, or the ones that ML-100k is known to have."""
    if not path.is_file():
        return ML_100K_GENRES
    lines = open_source(path).text(fallback="latin-1").decode().split("\n")
    names = [line.partition("|")[0].strip() for line in lines if line.strip()]
    if len(names) != U_ITEM_WIDTH - U_ITEM_FLAGS:
        raise DataError(f"{path}: {len(names)} genres, but u.item has {U_ITEM_WIDTH - U_ITEM_FLAGS} flags")
    return names


def _from_table(source: SourceFile, given: Mapping[str, str | None], options: Options) -> _Found:
    known = {name for names in COMMON.values() for name in names}
    chosen = [name for name in given.values() if name is not None]  # one of them in the first line makes it a header
    table = open_table(source, options, known=known, given=chosen)
    if not table.header:
        raise DataError(f"{source.path}: no header; a catalogue needs named columns: item id, title, genres")
    cells = table.columns(_pick(table.names, given, source.name))
    return _Found(cells, table.where, _sets(cells))


def _from_typed(parsed: Parsed) -> _Found:
    return _Found(parsed.table, parsed.where, _sets(parsed.table))


def _sets(table: pl.DataFrame) -> list[list[str]] | None:
    """Return the names of each row's attributes, from lists or from text, None without such a column."""
    if "attributes" not in table.columns:
        return None
    names = table["attributes"]
    if isinstance(names.dtype, pl.List):
        return [[str(name) for name in row or ()] for row in names.to_list()]
    return _split(names)


def _pick(names: Sequence[str], given: Mapping[str, str | None], source: str) -> dict[str, str]:
    """Return role and name of the columns for item, title and attributes, as far as there are any."""
    listed = ", ".join(repr(name) for name in names)
    picked: dict[str, str] = {}
    for role, common in COMMON.items():
        free = {normalized(name): name for name in reversed(names) if name not in picked.values()}
        words = (normalized(given[LIKE] or ""), *common) if role == "item" else common
        name = given[role] or next((free[word] for word in words if word in free), None)
        if name is not None and name not in names:
            raise DataError(f"{source}: no column {name!r} for the {role}; the columns are {listed}")
        if name is None and role == "item":
            raise DataError(
                f"{source}: which column holds the item id? None of {listed} has a common name;"
                " name that column item_id, or pass item='...' to read_items (update: --item)"
            )
        if name is not None:
            picked[role] = name
    return picked


def _split(column: pl.Series) -> list[list[str]]:
    """Return the names in each cell, split at the first of ``|``, ``;`` and ``,`` that any cell holds."""
    cells = column.cast(pl.String, strict=False).fill_null("").to_list()
    mark = next((mark for mark in "|;," if any(mark in cell for cell in cells)), "|")
    rows = [[name.strip() for name in cell.split(mark)] for cell in cells]
    return [[name for name in row if name not in NOTHING] for row in rows]


def _item_table(source: str, found: _Found, text_ids: bool) -> ItemTable:
    if not len(found.table):
        raise DataError(f"{source}: no rows; a catalogue needs at least one item")
    codes, ids = encode_ids(found.table["item"], "item", found.where, text_ids)
    first_of = np.full(len(ids), -1)
    first_of[codes[::-1]] = np.arange(len(codes))[::-1]
    again = first_of[codes] != np.arange(len(codes))
    reject(again, found.where, lambda row: f"item id {ids[codes[row]]!s} occurs twice; ids must be unique")
    titles = None
    if "title" in found.table.columns:
        words = found.table["title"].cast(pl.String, strict=False).fill_null("").str.strip_chars().to_list()
        titles = np.array([word or str(ids[code]) for word, code in zip(words, codes, strict=True)], dtype=object)
    sets = found.sets if found.sets and any(found.sets) else None
    return ItemTable(ids[codes], titles, None if sets is None else Attributes.from_sets(sets))


def read_tags(tag_items: str | Path, names: str | Path) -> ItemTable:
    r"""Read a catalogue from two parallel files: the items of each tag, and the tags' names.

    Parameters
    ----------
    tag_items
        One line per tag: how many items, then their ids. The catalogue is 0 up to the largest id.
    names
        The name of the tag on the same line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lists, names = Path(folder) / "tag-item.dat", Path(folder) / "tags.dat"
    ...     _ = lists.write_text("2 0 3\n1 3\n"), names.write_text("graphs\nproofs\n")
    ...     articles = read_tags(lists, names)
    >>> len(articles), articles.attributes.of(3)
    (4, ['graphs', 'proofs'])
    """
    lists, tags = open_source(tag_items), open_source(names).text().decode().removesuffix("\n").split("\n")
    values, lengths = numbers_by_line(lists)
    if len(lengths) != len(tags):
        raise DataError(
            f"{lists.name} has {len(lengths):,} lines and {Path(names).name} {len(tags):,}:"
            " the two files must have a line for each tag"
        )
    check_counts(lists, values, lengths)
    items = np.delete(values, np.cumsum(lengths) - lengths)
    if not len(items):
        raise DataError(f"{tag_items}: no tag has an item; at least one is needed")
    if items.max() >= 2**31:
        raise DataError(f"{tag_items}: item id {items.max()}: must lie between 0 and {2**31 - 1}")
    size = int(items.max()) + 1
    named = np.repeat(np.array([tag.strip() for tag in tags], dtype=object), lengths - 1)
    return ItemTable(np.arange(size), attributes=Attributes.from_pairs(items, named, n_items=size))
