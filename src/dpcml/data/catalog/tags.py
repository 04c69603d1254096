"""Attributes listed the other way round: per tag the items that have it, as CiteULike publishes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpcml.data.items import Attributes, ItemTable
from dpcml.utils.arrays import IntArray
from dpcml.utils.errors import DataError


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
    tag_items, names = Path(tag_items), Path(names)
    lists = [_numbers(tag_items, line, text) for line, text in enumerate(_lines(tag_items), 1)]
    tags = [text.strip() for text in _lines(names)]
    if len(lists) != len(tags):
        raise DataError(
            f"{tag_items.name} has {len(lists):,} lines and {names.name} {len(tags):,}:"
            " the two files must have a line for each tag"
        )
    items = np.concatenate([np.zeros(0, dtype=np.int64), *lists])
    if not len(items):
        raise DataError(f"{tag_items}: no tag has an item; at least one is needed")
    size = int(items.max()) + 1
    owners = [tag for tag, held in zip(tags, lists, strict=True) for _ in range(len(held))]
    return ItemTable(np.arange(size), attributes=Attributes.from_pairs(items, owners, n_items=size))


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    return text.removesuffix("\n").split("\n")


def _numbers(path: Path, line: int, text: str) -> IntArray:
    """Return the item ids of one line."""
    try:
        count, *items = (int(word) for word in text.split())
    except ValueError:
        raise DataError(
            f"{path}, line {line}: must hold a count and then as many item ids, all whole numbers"
        ) from None
    if count != len(items):
        raise DataError(f"{path}, line {line}: announces {count} items and lists {len(items)}")
    if items and not 0 <= min(items) <= max(items) < 2**31:
        raise DataError(f"{path}, line {line}: item ids must lie between 0 and {2**31 - 1}")
    return np.array(items, dtype=np.int64)
