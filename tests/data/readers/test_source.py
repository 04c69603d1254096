"""Paths to text: what is wrong with a file is said with its name and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dpcml.data.readers.source import HEAD, SourceFile, open_source
from dpcml.utils.errors import DataError, ParameterError


def source(data: bytes, encoding: str | None = None) -> SourceFile:
    return SourceFile(Path("likes.csv"), data, encoding)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.csv: no such file"):
        open_source(tmp_path / "gone.csv")


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        open_source(tmp_path)


def test_path_that_no_system_takes() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        open_source("a\0b.csv")


@pytest.mark.parametrize("packed", [False, True])
def test_empty_file(tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "empty.csv"
    file.write_bytes(gzip.compress(b"") if packed else b"")
    with pytest.raises(DataError, match=r"empty\.csv: the file is empty"):
        open_source(file)


@pytest.mark.parametrize("data", [b"\n\n", b" \r\n", b"\xef\xbb\xbf"])
def test_blank_file(data: bytes) -> None:
    with pytest.raises(DataError, match=r"likes\.csv: the file is empty"):
        source(data).text()


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    file = tmp_path / "likes.csv"
    file.write_bytes(gzip.compress(b"user,item\n"))
    assert open_source(file).text() == b"user,item\n"


@pytest.mark.parametrize("keep", [2, 5, 15, -9, -1])
def test_truncated_gzip(tmp_path: Path, keep: int) -> None:
    file = tmp_path / "likes.csv.gz"
    file.write_bytes(gzip.compress(b"user,item\n" * 100)[:keep])
    with pytest.raises(DataError, match=r"likes\.csv\.gz: the gzip file is truncated"):
        open_source(file)


def test_damaged_gzip(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(bytes(range(256)) * 20))
    data[30] ^= 0xFF
    file = tmp_path / "likes.csv.gz"
    file.write_bytes(data)
    with pytest.raises(DataError, match="the gzip file is damaged"):
        open_source(file)


def test_zip_archive(tmp_path: Path) -> None:
    file = tmp_path / "likes.xlsx"
    file.write_bytes(b"PK\x03\x04rest")
    with pytest.raises(DataError, match="zip archive or an Excel workbook"):
        open_source(file)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(encoding: str) -> None:
    found = source("user,item\nJosé,té\n".encode(encoding))
    assert found.text().decode() == "user,item\nJosé,té\n"
    assert found.head() == "user,item\nJosé,té\n"


def test_utf16_big_endian() -> None:
    assert source(b"\xfe\xff" + "a,é".encode("utf-16-be")).text().decode() == "a,é"


def test_truncated_utf16() -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 1: byte 0x0a is not utf-16"):
        source("user,item\n".encode("utf-16")[:-1]).text()


def test_mixed_encodings_name_the_line_and_the_way_out() -> None:
    data = "user,item\nann,é\n".encode() + "bob,é\n".encode("latin-1")
    with pytest.raises(DataError, match=r"likes\.csv, line 3: byte 0xe9 is not UTF-8.*--encoding latin-1"):
        source(data).text()


def test_named_encoding() -> None:
    assert source("a,é".encode("latin-1"), "latin-1").text().decode() == "a,é"


def test_named_encoding_that_does_not_fit() -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 2: byte 0xe9 is not ascii"):
        source(b"a,b\n\xe9", "ascii").text()


def test_unknown_encoding(tmp_path: Path) -> None:
    for encoding in ("klingon", "hex", "rot13"):
        with pytest.raises(ParameterError, match=f"encoding='{encoding}': unknown"):
            open_source(tmp_path, encoding)


def test_fallback_is_used_for_invalid_utf8_only() -> None:
    assert source("é".encode("latin-1")).text(fallback="latin-1").decode() == "é"
    assert source("é".encode()).text(fallback="latin-1").decode() == "é"


def test_nul_bytes() -> None:
    with pytest.raises(DataError, match=r"likes\.csv, line 2: a NUL byte"):
        source(b"user,item\na\0,b\n").text()


def test_old_line_ends() -> None:
    assert source(b"a,b\rc,d\r").text() == b"a,b\nc,d\n"
    assert source(b"a,b\rc,d\r").head() == "a,b\nc,d\n"


def test_head_ends_with_a_whole_line() -> None:
    head = source(b"0123456789\n" * HEAD).head()
    assert set(head.split("\n")) == {"0123456789"}
