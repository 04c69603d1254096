"""Where data comes from, how it is read and by which rule it is split."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcml.data.datasets import DATASETS, load_dataset
from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable
from dpcml.data.shards import Shards, is_shards
from dpcml.data.split import SPLITS, Split, split_by
from dpcml.utils.arrays import Array
from dpcml.utils.checks import choice
from dpcml.utils.errors import ParameterError
from dpcml.utils.files import full_path

SHARDS = "shards"  # the rule of a folder of shards, whose parts were made when it was written


@dataclass(frozen=True)
class DataSource:
    """Where data comes from: a name or a file, and how it is read.

    Parameters
    ----------
    data
        The name of a data set, a file, or ``planted``.
    options
        How it is read, see `dpcml.data.datasets.load_dataset`.

    Examples
    --------
    >>> DataSource("planted").read()
    Interactions(1,000 users, 1,000 items, 38,819 positives)
    """

    data: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def read(self, progress: Any = None) -> Interactions:
        """Return the data."""
        return load_dataset(self.data, progress=progress, **self.options)

    def split(self, data: Interactions, how: str, seed: int) -> Split:
        """Return the split of the data by a rule and a seed; a folder of shards has a split of its own."""
        own = self.split_rule(how, seed) == SHARDS and is_shards(self.data)
        return Shards.open(self.data).split() if own else split_by(data, how, seed)

    def split_rule(self, how: str = "ratio", seed: int = 0) -> str:
        """Return the name of the rule by which the data is split: the given one, or ``shards`` for a folder of them.

        Raises a `ParameterError` for shards that should be split by another rule or seed than their own.

        Examples
        --------
        >>> DataSource("planted").split_rule("last")
        'last'
        """
        if not is_shards(self.data):
            choice("split", how, tuple(SPLITS))
            return how
        rule = Shards.open(self.data).manifest["split"]["rule"]
        if how not in ("ratio", SHARDS):
            raise ParameterError(
                f"--split {how}: {self.data} has a split of its own ({rule}); leave it out, or name the files that were"
                " ingested"
            )
        if seed:
            raise ParameterError(
                f"--split-seed {seed}: {self.data} has a split of its own ({rule}); leave it out, or ingest anew by"
                f" 'dpcml data ingest --split-seed {seed}'"
            )
        return SHARDS

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that describes the same source in any working folder: paths are absolute."""
        named = self.data == "planted" or self.data in DATASETS
        options = {name: str(full_path(value)) if name == "items" else value for name, value in self.options.items()}
        return {"data": self.data if named else str(full_path(self.data)), "options": options}


def read_catalogue(file: str | Path, reading: Mapping[str, Any], *, item: str | None = None) -> ItemTable:
    """Return all items of a file of titles; the column of their ids may be called as in the interactions.

    Parameters
    ----------
    file
        See `dpcml.data.readers.items.read_items`.
    reading
        Options by which the interactions were read.
    item
        Column of the ids; by default it is guessed.
    """
    from dpcml.data.readers.items import read_items  # polars takes long to import

    return read_items(file, item=item, like=reading.get("item"), text_ids=bool(reading.get("text_ids")))


def reading_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by which the data of a saved model was read, as far as its card knows them.

    Examples
    --------
    >>> reading_of({"record": {"source": {"data": "likes.csv", "options": {"item": "film"}}}})
    {'item': 'film'}
    """
    record = card["record"]
    found: dict[str, Any] = record.get("source", {}).get("options") or record.get("updated", {}).get("reading") or {}
    return found


def warn_of_full_users(users: Array, n_items: int) -> None:
    """Warn that the likes of users who like every item are left out: there is no negative to learn from."""
    some = ", ".join(map(str, users[:3])) + (", ..." if len(users) > 3 else "")
    warnings.warn(
        f"no model can learn from users who like all {n_items} items ({some}): their likes are left out", stacklevel=3
    )
