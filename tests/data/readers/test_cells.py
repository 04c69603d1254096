"""Delimited text: structure, line numbers, and the same cells as Python's csv module."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpcml.data.readers.source import Lines, SourceFile, read_delimited
from dpcml.utils.errors import DataError

Found = tuple[pl.DataFrame, Lines]


def scan(text: str, separator: str = ",") -> Found:
    return read_delimited(SourceFile(Path("likes.csv"), b""), text.encode(), separator)


def rows(found: Found) -> list[tuple[str, ...]]:
    return found[0].fill_null("").rows()


def lines(found: Found) -> list[int]:
    return [int(found[1].where(row).rpartition(" ")[2]) for row in range(len(found[0]))]


def test_plain() -> None:
    found = scan("a,b\nc,d")
    assert rows(found) == [("a", "b"), ("c", "d")]
    assert lines(found) == [1, 2]


def test_quotes_hold_separators_line_breaks_and_quotes() -> None:
    found = scan('a,b\n"x,y","p\nq"\n"say ""hi""",""\nlast,row\n')
    assert rows(found) == [("a", "b"), ("x,y", "p\nq"), ('say "hi"', ""), ("last", "row")]
    assert lines(found) == [1, 2, 4, 5]


def test_line_ends_of_windows() -> None:
    found = scan('a,b\r\n"p\r\nq",d\r\n\r\ne,f\r\n')
    assert rows(found) == [("a", "b"), ("p\r\nq", "d"), ("e", "f")]
    assert lines(found) == [1, 2, 5]


def test_empty_lines_are_skipped_and_counted() -> None:
    found = scan("\na,b\n\n\nc,d\n\n")
    assert rows(found) == [("a", "b"), ("c", "d")]
    assert lines(found) == [2, 5]


@pytest.mark.parametrize("separator", ["::", "§", "\t", "|", "<->"])
def test_any_separator(separator: str) -> None:
    found = scan(f"a{separator}b c\nd,{separator}é\n", separator)
    assert rows(found) == [("a", "b c"), ("d,", "é")]


def test_long_separators_leave_quotes_alone() -> None:
    assert rows(scan('1::"x\n2::y"\n', "::")) == [("1", '"x'), ("2", 'y"')]


def test_quotes_within_plain_fields_are_letters() -> None:
    found = scan('a,6" pizza\n"b, c",d\n')
    assert rows(found) == [("a", '6" pizza'), ("b, c", "d")]
    assert lines(found) == [1, 2]


@pytest.mark.parametrize(("extra", "count"), [("c", "1 field"), ("c,d,e", "3 fields")])
def test_ragged_lines(extra: str, count: str) -> None:
    with pytest.raises(DataError, match=rf"likes\.csv, line 4: {count}, but 2 fields on line 1"):
        scan(f"a,b\n\nx,y\n{extra}\n")


def test_ragged_lines_among_irregular_quotes() -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 3: 1 field, but 2 fields on line 1"):
        scan('a,b"\n"x\n",y\nz\n'.replace('"x\n"', "x"))


@pytest.mark.parametrize(
    ("text", "line"),
    [('a,b\nc,"d\ne,f\n', 2), ('a,b\nc,d\n"e"x,f\n', 3), ('a,"b\nc,"d"\n', 1), ('"', 1)],
)
def test_unbalanced_quotes(text: str, line: int) -> None:
    with pytest.raises(DataError, match=rf"likes\.csv, line {line}: the quoted field that begins here"):
        scan(text)


def test_no_spare_byte_left() -> None:
    with pytest.raises(DataError, match="too many control characters"):
        scan("".join(map(chr, range(1, 32))) + "::", "::")


def test_long_files_with_line_breaks_in_fields() -> None:
    rng = np.random.default_rng(0)
    kinds = ["plain", "with, comma", "with\nbreak", 'with "quote"', "\n\n", ""]
    written = [(f"u{k}", kinds[kind]) for k, kind in enumerate(rng.integers(len(kinds), size=30_000))]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(written)
    assert rows(scan(buffer.getvalue())) == written


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=6)


@given(
    table=st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[cells] * width), min_size=1)),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_same_cells_as_were_written(table: list[tuple[str, ...]], separator: str, ending: str, quoting: int) -> None:
    if any("\r" in cell for row in table for cell in row):
        quoting = csv.QUOTE_ALL  # the writer leaves "\r" unquoted, where it cannot be told from a line end
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator=ending, quoting=quoting).writerows(table)
    assert rows(scan(buffer.getvalue(), separator)) == table


@given(st.text(st.sampled_from('a,"\n\r ')))
@example('a","\r\n"')
def test_structure_agrees_with_the_csv_module(text: str) -> None:
    """Whatever is accepted has the cells that Python's csv module finds."""
    if not text.strip() or ("\r" in text.replace("\r\n", "")):
        return
    try:
        found = rows(scan(text))
    except DataError:
        return
    reader = csv.reader(io.StringIO(text, newline="\n"), strict=True)
    assert found == [tuple(row) for row in reader if row]


def test_lines_are_found_far_into_a_file() -> None:
    count = 100_000
    first = "a,b\n" * count
    cells, where = scan(f'{first}\n\n"x\ny",z\n\nlast,one\n')
    assert cells[count:].rows() == [("x\ny", "z"), ("last", "one")]
    for row, line in ((0, 1), (count - 1, count), (count, count + 3), (count + 1, count + 6)):
        assert where.where(row) == f"likes.csv, line {line}"


def test_ragged_lines_far_into_a_file() -> None:
    count = 100_000
    for line, fields in (("a,b,c", "3 fields"), ("a", "1 field"), ('"a,b"', "1 field"), ('"a","b",""', "3 fields")):
        with pytest.raises(DataError, match=rf"likes\.csv, line {count + 2}: {fields}, but 2 fields on line 1"):
            scan("a,b\n" * (count + 1) + f"{line}\n")


def test_one_field_too_many_and_one_too_few() -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 2: 1 field, but 2 fields on line 1"):
        scan("a,b\nc\nd,e,f\n")


def test_nothing_but_empty_lines_around() -> None:
    found = scan("\n" * 500_000 + "a,b\n" + "\n" * 500_000 + "c,d")
    assert rows(found) == [("a", "b"), ("c", "d")]
    assert lines(found) == [500_001, 1_000_002]
