"""Text formats: TOML settings, and tables in plain text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import near_hint

# C0 without tab and line feed, delete, C1, and what turns the direction of a line.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in plain text: the first column left-aligned, the others right-aligned.

    Examples
    --------
    >>> print(text_table(["model", "P@3"], [["ease", "0.34"], ["popularity", "0.13"]]))
    model        P@3
    ----------------
    ease        0.34
    popularity  0.13
    """
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join([first, *others]).rstrip()

    return "\n".join([line(header), "-" * (sum(widths) + 2 * (len(widths) - 1)), *map(line, rows)])


def printable(text: str) -> str:
    r"""Return a text whose control characters are spelled out, so that an id cannot command a terminal.

    Line breaks and tabs stay.

    Examples
    --------
    >>> print(printable("\x1b[31mred\x07"))
    \x1b[31mred\x07
    """
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Examples
    --------
    >>> read_toml("no/such/file.toml")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: no/such/file.toml: cannot be read (No such file or directory); name a TOML file
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a TOML file{near_hint(path)}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: no valid TOML: {error}") from None


def plain(value: Any) -> Any:
    """Return a TOML value as Python hyper-parameters use it: tuples for arrays, None for the string ``"none"``.

    TOML has neither tuples nor a null value. Nested tables and arrays are converted too.

    Examples
    --------
    >>> plain([0.1, "none"])
    (0.1, None)
    """
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(map(plain, value))
    return None if isinstance(value, str) and value.lower() == "none" else value


def toml_text(settings: Mapping[str, Any]) -> str:
    """Return settings as TOML: plain values first, then one table per mapping; `plain` restores the values.

    Examples
    --------
    >>> print(toml_text({"model": "dpcml2", "parameters": {"diversity": (0.1, None), "epochs": 5}}))
    model = "dpcml2"
    <BLANKLINE>
    [parameters]
    diversity = [0.1, "none"]
    epochs = 5
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in settings.items() if not isinstance(value, Mapping)]
    for name, table in settings.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines)


def _key(name: str) -> str:
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, (int, float)):
        return repr(value)
    raise ParameterError(f"{value!r}: only numbers, strings, None and lists of these can be written as TOML")
