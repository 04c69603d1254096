"""`FileRows`: the rows of files of any size, in batches, and the form that the ids of a column have in all of them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from dpcml.data.columns import EXACT, LARGEST_ID, Where, assign_columns, reject
from dpcml.data.readers.objects import is_json
from dpcml.data.readers.tables import SAMPLE, share_of_numbers
from dpcml.utils.errors import DataError

BATCH = 2**20  # rows that are read at once
SNIFFED = 4096  # bytes that tell JSON


@dataclass
class FileRows:
    """The rows of some files, in batches."""

    files: Sequence[Path]
    given: dict[str, str | None]
    separator: str | None
    header: bool | None
    notes: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        if not self.files:
            raise DataError("there is no file to ingest: name at least one")
        for file in self.files:
            if not file.is_file():
                raise DataError(f"{file}: there is no such file")
            if self.header is not None and _is_parquet(file):
                raise DataError(f"header={self.header}: {file} is Parquet, whose columns have names; leave it out")
            with file.open("rb") as opened:
                if is_json(opened.read(SNIFFED).decode("utf-8", errors="replace").lstrip("\ufeff")):
                    raise DataError(f"{file}: is JSON; ingest reads Parquet and CSV: write one of them")
        self.notes = (f"{len(self.files)} files", *self._assigned[1])

    @cached_property
    def _assigned(self) -> tuple[dict[str, str], tuple[str, ...]]:
        first = self.files[0]
        with self._reading(first):
            names = self._names(first)
            given, guessed = self._by_position(names) if self.header is False else (self.given, ())
        found, notes = assign_columns(names, {**given, "time": ""}, str(first))
        return found, (*guessed, *notes)

    @property
    def columns(self) -> dict[str, str]:
        """Names of the columns by role."""
        return self._assigned[0]

    def _names(self, file: Path) -> list[str]:
        """Return the names of all columns as the file has them: polars would rename one that occurs twice."""
        rows = self._scan(file)
        if _is_parquet(file):
            return rows.collect_schema().names()
        if self.header is False:
            return [f"column_{place + 1}" for place in range(len(rows.collect_schema()))]
        first = self._scan_text(file, header=False).head(1).collect().row(0)
        return [(name or "").strip() for name in first]

    def _by_position(self, names: Sequence[str]) -> tuple[dict[str, str | None], tuple[str, ...]]:
        """Give columns without names their roles: user, item, then rating if it is numbers."""
        given = {role: f"column_{name}" if name and name.isdigit() else name for role, name in self.given.items()}
        free = [name for name in names if name not in given.values()]
        found: dict[str, str] = {}
        for role, name in given.items():
            if name is None and free and (role != "rating" or self._is_numbers(names.index(free[0]))):
                found[role] = free.pop(0)
        said = ", ".join(f"{role} = {name}" for role, name in found.items())
        return {**given, **found}, (f"guessed by position: {said}",) if said else ()

    def _is_numbers(self, place: int) -> bool:
        sample = self._scan(self.files[0]).select(pl.nth(place)).head(SAMPLE).collect().to_series()
        return share_of_numbers(sample.fill_null("").to_list()) >= 0.5

    def _scan(self, file: Path) -> pl.LazyFrame:
        if _is_parquet(file):
            return pl.scan_parquet(file)
        return self._scan_text(file, header=self.header is not False)

    def _scan_text(self, file: Path, header: bool) -> pl.LazyFrame:
        return pl.scan_csv(file, separator=self._separator(file), has_header=header, infer_schema=False)

    def _separator(self, file: Path) -> str:
        separator = self.separator or ("\t" if ".tsv" in file.suffixes or ".tab" in file.suffixes else ",")
        if len(separator.encode()) != 1:
            raise DataError(f"separator {separator!r}: files that are streamed need one of a single byte")
        return separator

    def _pick(self, file: Path, *roles: str) -> pl.LazyFrame:
        """Return some columns of a file, named by role."""
        chosen = {role: name for role, name in self.columns.items() if role in roles}
        names = self._names(file)
        for name in chosen.values():
            if name not in names:
                raise DataError(f"{file}: has no column {name!r}, which {self.files[0]} has")
            if names.count(name) > 1:
                raise DataError(f"{file}: column {name!r} occurs twice; rename one of them")
        return self._scan(file).select(pl.nth(names.index(name)).alias(role) for role, name in chosen.items())

    def batches(self, *roles: str) -> Iterator[tuple[pl.DataFrame, Where]]:
        """Yield rows with some columns, named by role, and a function that says where a row is."""
        for file in self.files:
            first = 0
            with self._reading(file):
                rows = self._pick(file, *roles)
                for batch in rows.collect_batches(chunk_size=BATCH, maintain_order=True):
                    yield batch, _place(file, first)
                    first += len(batch)

    def types(self, role: str) -> list[pl.DataType]:
        """Return the type of a column in each file."""
        found = []
        for file in self.files:
            with self._reading(file):
                found.append(self._pick(file, role).collect_schema()[role])
        return found

    def is_whole(self, role: str, file: Path) -> bool:
        """Return whether all finite numbers of a column of floats are whole."""
        column = pl.col(role)
        with self._reading(file):
            rows = self._pick(file, role).select((column.is_finite() & (column % 1 != 0)).any())
            return not rows.collect(engine="streaming").item()

    @contextmanager
    def _reading(self, file: Path) -> Iterator[None]:
        """Turn errors of polars into those of a file."""
        try:
            yield
        except pl.exceptions.NoDataError:
            raise DataError(f"{file}: the file is empty") from None
        except pl.exceptions.PolarsError as error:
            said = " ".join(str(error).split())[:300]
            if "truncate_ragged_lines" in said:
                raise DataError(_uneven(file, self._separator(file))) from None
            raise DataError(f"{file}: cannot be read: {said}") from None
        except OSError as error:
            raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None


def _is_parquet(file: Path) -> bool:
    return file.suffix in (".parquet", ".pq")


def _place(file: Path, first: int) -> Where:
    return lambda row: f"{file}, row {first + row + 1}"


def _uneven(file: Path, separator: str) -> str:
    """Return what to say of a text file with a line that has more fields than the first."""
    place = f"{file}: a line has more fields than the first one"
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8", errors="replace", newline="") as text, suppress(csv.Error):
        records = csv.reader(text, delimiter=separator)
        width = len(next(records))
        for fields in records:
            if len(fields) > width:
                place = f"{file}, line {records.line_num}: {len(fields)} fields, but {width} in the first line"
                break
    return f"{place}; quote fields that contain {separator!r}, or name another separator"


@dataclass(frozen=True)
class IdForm:
    """How the ids of a column are written, the same in all batches of all files."""

    kind: str  # "user" or "item", for errors
    column: str  # its name, for errors
    whole: bool  # floats are whole numbers, written without a fraction
    text: bool  # ids are text, otherwise integers

    def plain(self, column: pl.Series, where: Where) -> pl.Series:
        """Return ids as text or 64-bit integers, or report the first that is missing or cannot be kept."""
        if column.dtype.is_float():
            column = self._of_floats(column, where)
        elif not column.dtype.is_integer():
            column = self._as_text(column, where)
        missing = column.is_null()
        if column.dtype == pl.String:
            missing |= (column.str.strip_chars() == "").fill_null(True)
        reject(missing, where, lambda row: f"the {self.kind} id is missing: every row needs one")
        return column.cast(pl.String) if self.text else self._integers(column, where)

    def _of_floats(self, column: pl.Series, where: Where) -> pl.Series:
        """Return floats as integers where all are whole, as they are otherwise; NaN as missing."""
        column = column.fill_nan(None)

        def refuse(bad: pl.Series, rule: str) -> None:
            reject(bad.fill_null(False), where, lambda row: f"{self.kind} id {column[row]}: {rule}")

        refuse(column.is_infinite(), f"must be finite; correct column {self.column!r}, or leave the row out")
        if not self.whole:
            return column
        exact = f"floats this large are not exact; convert column {self.column!r} to integers or text"
        refuse(column.abs() > EXACT, exact)
        return column.cast(pl.Int64)

    def _as_text(self, column: pl.Series, where: Where) -> pl.Series:
        try:
            if not column.dtype.is_nested():
                return column.cast(pl.String)
        except pl.exceptions.PolarsError:
            pass
        rule = f"must be whole numbers or text; convert column {self.column!r}"
        raise DataError(f"{where(0)}: {self.kind} ids of type {column.dtype}: {rule}")

    def _integers(self, column: pl.Series, where: Where) -> pl.Series:
        rule = (
            f"whole-number ids must lie between 0 and {LARGEST_ID}; pass text_ids=True (--text-ids) to treat column"
            f" {self.column!r} as text"
        )
        whole = column.cast(pl.Int64, strict=False)  # null outside of 64 bits
        outside = whole.is_null() | (whole < 0)
        reject(outside, where, lambda row: f"{self.kind} id '{column[row]}': {rule}")
        return whole


def id_form(source: FileRows, kind: str, text: bool) -> IdForm:
    """Return the form of the ids of a column, from its types in all files and from all floats in it.

    Parameters
    ----------
    source
        The files.
    kind
        ``"user"`` or ``"item"``.
    text
        Keep ids as text, even where all of them are whole numbers.
    """
    types, column = source.types(kind), source.columns[kind]
    floats = [file for file, one in zip(source.files, types, strict=True) if one.is_float()]
    fraction = next((file for file in floats if not source.is_whole(kind, file)), None)
    integers = [file for file, one in zip(source.files, types, strict=True) if one.is_integer()]
    if fraction is not None and integers:
        raise DataError(
            f"{fraction}: column {column!r} has {kind} ids with a fraction, in {integers[0]} they are integers; convert"
            " both to text"
        )
    numbers = len(floats) + len(integers) == len(types)
    return IdForm(kind, column, fraction is None, text or fraction is not None or not numbers)
