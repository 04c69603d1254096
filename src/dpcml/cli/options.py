"""Options that several verbs share, declared once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a model that 'dpcml train' wrote.")]
Data = Annotated[str, typer.Option(help="A data set's name, a file, or 'planted'.")]
DataNow = Annotated[str | None, typer.Option(help="Where the model's data is now, if not where it was.")]
Threads = Annotated[int | None, typer.Option(help="Threads; all cores by default.")]

_PANEL = "Reading a file"


def _option(*names: str, text: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_PANEL)


def _reading(
    user: Annotated[str | None, _option(text="Column of the user ids.")] = None,
    item: Annotated[str | None, _option(text="Column of the item ids.")] = None,
    rating: Annotated[str | None, _option(text="Column of the ratings.")] = None,
    time: Annotated[str | None, _option(text="Column of the times.")] = None,
    min_rating: Annotated[float | None, _option(text="Lower ratings are no positives.")] = None,
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
    """Return the options that were given, as `dpcml.data.catalog.load_or_read` takes them."""
    tab = None if separator is None else separator.replace("\\t", "\t")
    columns = {"user": user, "item": item, "rating": rating, "time": time}
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


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how a file is read; those that were used come in as ``reading``.

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
