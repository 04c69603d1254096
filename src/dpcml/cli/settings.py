"""Settings from the command line and from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.text import plain, read_toml

_KEYS: dict[str, tuple[type, str]] = {
    "data": (str, "a text"),
    "model": (str, "a text"),
    "seed": (int, "a whole number"),
    "split_seed": (int, "a whole number"),
    "out": (str, "a text"),
    "parameters": (dict, "a table, [parameters]"),
}


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of ``key=value`` texts: TOML where they are that, else plain text; ``none`` is None.

    Examples
    --------
    >>> parse_settings(["diversity=[0.05, 0.25]", "init=random", "patience=none", "dim=64"])
    {'diversity': (0.05, 0.25), 'init': 'random', 'patience': None, 'dim': 64}
    >>> parse_settings(["dim:64"])
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: --set 'dim:64': write key=value, such as --set epochs=20
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise ParameterError(f"--set {text!r}: write key=value, such as --set epochs=20")
        if key.strip() in found:
            raise ParameterError(f"--set {text!r}: {key.strip()} is set twice; give it once")
        found[key.strip()] = plain(_parsed(value.strip()))
    return found


def read_config(path: Path) -> dict[str, Any]:
    r"""Return the settings in a TOML file: data, model, seed, split_seed, out, and a table of parameters.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "run.toml"
    ...     _ = file.write_text('model = "dpcml2"\n[parameters]\nepochs = 5')
    ...     read_config(file)
    {'model': 'dpcml2', 'parameters': {'epochs': 5}}
    """
    found = read_toml(path)
    for key, value in found.items():
        if key not in _KEYS:
            raise ParameterError(f"{path}: unknown key {key!r}: {did_you_mean(key, _KEYS)}{_misplaced(key)}")
        kind, words = _KEYS[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ParameterError(f"{path}: {key} = {value!r}: must be {words}")
    if "parameters" in found:
        found["parameters"] = {key: plain(value) for key, value in found["parameters"].items()}
    return found


def _misplaced(key: str) -> str:
    return "" if key == "parameters" else "; parameters of the model belong under [parameters]"


def _parsed(text: str) -> Any:
    try:
        found = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    value = found["value"]
    return value if len(found) == 1 and isinstance(value, (bool, int, float, str, list)) else text
