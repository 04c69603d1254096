"""Settings in TOML files: reading them with a word on what is wrong, and writing them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcml.utils.errors import DataError, ParameterError


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return what a TOML file holds.

    Examples
    --------
    >>> read_toml("no/such/file.toml")
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.DataError: no/such/file.toml: cannot be read (No such file or directory); name a TOML file
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: no valid TOML: {error}") from None


def plain(value: Any) -> Any:
    """Return tuples for lists, and None for the word, within tables too: TOML has neither.

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
    """Return settings as TOML: plain values first, then a table for each mapping among them.

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
    raise ParameterError(f"{value!r}: only numbers, texts, lists of them and None can be written as TOML")
