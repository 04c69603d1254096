"""Options that several verbs share, and settings from the command line or a TOML file."""

from __future__ import annotations

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcml.utils.errors import ParameterError, did_you_mean
from dpcml.utils.text import plain, read_toml

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model that 'dpcml train' wrote.")]
Data = Annotated[str, typer.Option(help="A data set's name, a file, or 'planted'.")]
DataNow = Annotated[str | None, typer.Option(help="The model's data, if it has moved.")]
SplitBy = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help=(
            "ratio (60, 20, 20 % of each user's positives, default), last (positive of each user), time (of all),"
            " or released (as the paper's code)."
        ),
    ),
]
Threads = Annotated[int | None, typer.Option(help="Threads; all cores by default.")]
Engine = Annotated[str, typer.Option(help="local, or ray: on a cluster, or on several processes of this machine.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Worker processes on Ray; 1 by default.")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster, host:port; by default Ray is started on this machine.")
]

_PANEL = "Reading a file"
_CONFIG_KEYS: dict[str, tuple[type, str]] = {
    "data": (str, "a text"),
    "model": (str, "a text"),
    "seed": (int, "a whole number"),
    "split": (str, "a text"),
    "split_seed": (int, "a whole number"),
    "out": (str, "a text"),
    "reading": (dict, "a table, [reading]"),
    "parameters": (dict, "a table, [parameters]"),
}


def _option(*names: str, text: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_PANEL)


def _reading(
    user: Annotated[str | None, _option(text="Column of the user ids.")] = None,
    item: Annotated[str | None, _option(text="Column of the item ids.")] = None,
    rating: Annotated[str | None, _option(text="Column of the ratings.")] = None,
    time: Annotated[str | None, _option(text="Column of the times.")] = None,
    weight: Annotated[str | None, _option(text="Column of weights, such as play counts.")] = None,
    min_rating: Annotated[float | None, _option(text="Ratings from this value on are positives.")] = None,
    min_user_interactions: Annotated[int | None, _option(text="Drop users with fewer positives.")] = None,
    min_item_interactions: Annotated[int | None, _option(text="Drop items with fewer positives.")] = None,
    core: Annotated[int | None, _option(text="k of a k-core: both of the above, for users and items alike.")] = None,
    min_user: Annotated[int | None, typer.Option("--min-user", hidden=True)] = None,  # the old name
    text_ids: Annotated[bool, _option("--text-ids", text="Keep numbers as text in ids.")] = False,
    file_format: Annotated[str | None, _option("--format", text="Format of the file, guessed by default.")] = None,
    separator: Annotated[str | None, _option(text=r"Between columns; \t is a tab.")] = None,
    header: Annotated[bool | None, _option(text="Whether the first line names columns.")] = None,
    encoding: Annotated[str | None, _option(text="Of the text, UTF-8 by default.")] = None,
    items: Annotated[Path | None, _option(text="File with titles and attributes of items.")] = None,
) -> dict[str, Any]:
    """Return the given options, as `dpcml.data.datasets.load_dataset` takes them."""
    tab = None if separator is None else separator.replace("\\t", "\t")
    columns = {"user": user, "item": item, "rating": rating, "time": time, "weight": weight}
    rules = {
        "min_rating": min_rating,
        "min_user_interactions": min_user_interactions,
        "min_item_interactions": min_item_interactions,
        "core": core,
        "min_user": min_user,  # a warning says its new name
        "text_ids": text_ids or None,
    }
    file = {"format": file_format, "separator": tab, "header": header, "encoding": encoding, "items": items}
    return {name: value for name, value in (columns | rules | file).items() if value is not None}


# Names of the options as `load_dataset` takes them and a settings file spells them.
READING_KEYS = tuple("format" if name == "file_format" else name for name in inspect.signature(_reading).parameters)


_COUNT = (int, "a whole number")
_READING_TYPES: dict[str, tuple[Any, str]] = {  # of keys that are no text
    "min_rating": ((int, float), "a number"),
    **dict.fromkeys(("min_user_interactions", "min_item_interactions", "core", "min_user"), _COUNT),
    **dict.fromkeys(("text_ids", "header"), (bool, "true or false")),
}


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading a file to a command; those that are given are passed to it as ``reading``.

    Examples
    --------
    >>> @takes_reading
    ... def show(source: str, reading: dict[str, Any]) -> None:
    ...     print(source, reading)
    >>> show(source="likes.csv", core=5)
    likes.csv {'core': 5}
    """
    own = inspect.signature(command, eval_str=True).parameters
    added = inspect.signature(_reading, eval_str=True).parameters

    @functools.wraps(command)
    def with_reading(**given: Any) -> None:
        reading = _reading(**{name: given.pop(name) for name in added if name in given})
        command(reading=reading, **given)

    shown = [parameter for name, parameter in {**own, **added}.items() if name != "reading"]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]
    with_reading.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return with_reading


def on_ray(engine: str, **only_ray: Any) -> bool:
    """Return whether the engine is Ray, and its cluster is there; an option that only Ray has is an error without it.

    Examples
    --------
    >>> on_ray("ray", workers=2)
    True
    >>> on_ray("local", workers=2)
    Traceback (most recent call last):
    ...
    dpcml.utils.errors.ParameterError: --workers 2 needs --engine ray
    """
    from dpcml.utils.checks import choice  # NumPy and SciPy, which help texts do not need

    choice("--engine", engine, ("local", "ray"))
    for name, value in only_ray.items():
        if engine == "local" and value is not None:
            raise ParameterError(f"--{name.replace('_', '-')} {value} needs --engine ray")
    if engine == "ray":
        from dpcml.utils.cluster import check_address

        check_address(only_ray.get("address"))
    return engine == "ray"


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Return the values of ``key=value`` texts, parsed as TOML if possible, else as text; ``none`` is None.

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
    r"""Return the settings in a TOML file: data, model, seed, split, split_seed, out, and tables.

    The table ``reading`` holds options for reading the data, by their names on the command line with underscores; the
    table ``parameters`` those of the model.

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
        if key not in _CONFIG_KEYS:
            raise ParameterError(f"{path}: unknown key {key!r}: {did_you_mean(key, _CONFIG_KEYS)}{_misplaced(key)}")
        kind, words = _CONFIG_KEYS[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ParameterError(f"{path}: {key} = {value!r}: must be {words}")
    for key, value in found.get("reading", {}).items():
        if key not in READING_KEYS:
            raise ParameterError(f"{path}: unknown key {key!r} in [reading]: {did_you_mean(key, READING_KEYS)}")
        kind, words = _READING_TYPES.get(key, (str, "a text"))
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ParameterError(f"{path}: {key} = {value!r} in [reading]: must be {words}")
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
