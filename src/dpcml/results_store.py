"""The results store: finished runs as rows of a CSV file, which studies and searches resume from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from dpcml.utils.errors import DataError
from dpcml.utils.files import atomic

ResultsRow: TypeAlias = dict[str, Any]  # column -> value

# Columns of text, whatever their values look like: a hash of digits only is no number.
TEXT = (
    "data", "label", "model", "parameters", "protocol", "version", "measures", "test_users", "reason", "split",
    "status", "metric", "error", "fingerprint",
)  # fmt: skip


class ResultsStore:
    """Rows in a CSV file, identified by some of their columns; a new row replaces an old one of the same key.

    The whole file is written, flushed and renamed after each change: a killed run leaves all rows before it.

    Parameters
    ----------
    path
        The CSV file; None keeps the rows in memory only.
    key
        The columns that identify a row.
    ordered
        Whether rows are sorted by their key; otherwise they stay in the order in which they were added.
    decimals
        Decimals of floats in the file; None writes them so that the same bits are read back.
    resume
        Whether the rows of an existing file count; otherwise the file is replaced at the first change.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = ResultsStore(Path(folder) / "runs.csv", key=("label", "seed"))
    ...     store.put([{"label": "a", "seed": 0, "P@3": 0.25}, {"label": "a", "seed": 0, "P@3": 0.5}])
    ...     ResultsStore(store.path, key=("label", "seed")).frame["P@3"].to_list()
    [0.5]
    """

    def __init__(
        self,
        path: str | Path | None,
        key: Sequence[str],
        *,
        ordered: bool = False,
        decimals: int | None = None,
        resume: bool = True,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.key, self.ordered, self.decimals = tuple(key), ordered, decimals
        self._rows: dict[tuple[Any, ...], ResultsRow] = {}
        if resume and self.path is not None and self.path.exists():
            self._rows = {self._key_of(row): row for row in self._read(self.path)}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[ResultsRow]:
        """All rows, as plain data."""
        return list(self._rows.values())

    @property
    def frame(self) -> pl.DataFrame:
        """All rows as a data frame; a row has null in the columns that it lacks."""
        names = dict.fromkeys(name for row in self._rows.values() for name in row)
        rows = self.rows
        return pl.DataFrame({name: pl.Series([row.get(name) for row in rows], strict=False) for name in names})

    def put(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows, or replace those of the same keys, and write the file."""
        self._rows |= {self._key_of(row): dict(row) for row in rows}
        if self.ordered:
            self._rows = dict(sorted(self._rows.items(), key=lambda item: item[0]))
        self.write()

    def remove(self, row: Mapping[str, Any]) -> None:
        """Remove the row with a key, if there is one, and write the file."""
        if self._rows.pop(self._key_of(row), None) is not None:
            self.write()

    def write(self) -> None:
        """Write all rows, as a whole or not at all; an empty store has no file."""
        if self.path is None:
            return
        if not self._rows:
            self.path.unlink(missing_ok=True)
            return
        with atomic(self.path) as temporary:
            self.frame.write_csv(temporary, float_precision=self.decimals)

    def _key_of(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in self.key)

    def _read(self, path: Path) -> list[ResultsRow]:
        try:
            found = pl.read_csv(path, schema_overrides=dict.fromkeys(TEXT, pl.String), infer_schema_length=None)
        except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{path}: cannot be read as a results file ({reason}); move it away") from None
        missing = [name for name in self.key if name not in found.columns]
        if missing:
            raise DataError(f"{path}: is no results file, it has no column {missing[0]!r}; move it away")
        return found.to_dicts()


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Return parameters as one line of JSON that is the same for the same parameters, for a column of a store.

    Examples
    --------
    >>> parameters_text({"l2": 1.0, "diversity": (0.1, None)})
    '{"diversity": [0.1, null], "l2": 1.0}'
    """
    return json.dumps(parameters, sort_keys=True)
