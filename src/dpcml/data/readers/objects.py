"""JSON: one object per interaction, a line each or in an array."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping

import polars as pl

from dpcml.data.columns import assign_columns
from dpcml.data.readers.base import READERS, Options, Parsed, Reader
from dpcml.data.readers.source import SourceFile
from dpcml.utils.errors import DataError

# A quoted name after the brace: a table may begin with a brace or a bracket too.
LINES, ARRAY = re.compile(r'\s*\{\s*"[^"]*"\s*:'), re.compile(r"\s*\[\s*\{")


def is_json(head: str) -> bool:
    """Return whether a text begins as JSON objects do.

    Examples
    --------
    >>> is_json('{"user": 1}'), is_json('[{"user": 1}]'), is_json("{user},{item}"), is_json("[user],[item]")
    (True, True, False, False)
    """
    return bool(LINES.match(head) or ARRAY.match(head))


class JSON(Reader):
    """Objects with a field each for user, item, rating and time."""

    takes = frozenset({"user", "item", "rating", "time", "weight"})

    def matches(self, name: str, head: str) -> int:
        """Return 3 (certain) if the text begins as JSON objects do, 2 (likely) by its name."""
        return 3 if is_json(head) else 2 * name.endswith((".json", ".jsonl", ".ndjson"))

    def parse(self, source: SourceFile, options: Options) -> Parsed:
        """Return the fields for user, item, rating and time, with their types."""
        return json_columns(source, lambda names: assign_columns(names, options.columns, source.name))


def json_columns(
    source: SourceFile, assign: Callable[[list[str]], tuple[Mapping[str, str], tuple[str, ...]]]
) -> Parsed:
    """Return the fields that ``assign`` picks in a JSON file, under the names of their roles."""
    data = source.text()
    lines = not ARRAY.match(source.head())
    try:
        # Types are settled by all objects: the first ones may lack a field.
        table = (pl.read_ndjson if lines else pl.read_json)(io.BytesIO(data), infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{source.path}: no readable JSON ({reason}); write one object per line, such as"
            ' {"user_id": 1, "item_id": 7}, or an array of them'
        ) from None
    columns, notes = assign(table.columns)
    chosen = table.select(pl.col(name).alias(role) for role, name in columns.items())
    unit = "line" if lines else "object"
    return Parsed(chosen, lambda row: f"{source.name}, {unit} {row + 1}", notes)


READERS.add("json", JSON())
