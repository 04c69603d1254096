"""What the verbs that ask a saved model share: ids, filters, lines of tables."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import console
from dpcml.utils.errors import DataError, ParameterError

if TYPE_CHECKING:
    from dpcml.models import Recommender
    from dpcml.models.multi_interest import MultiInterest

N = Annotated[int, typer.Option("-n", help="How many at most.")]


def ids_of(text: str) -> list[str]:
    """Return ids that are separated by commas; one with a comma in it stands in double quotes.

    Examples
    --------
    >>> ids_of('7, 12,"Emma, again"')
    ['7', '12', 'Emma, again']
    """
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), []) if part.strip()]


def ids_in(path: Path) -> list[str]:
    """Return the ids in a text file, one per line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a text file with an id per line") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is no UTF-8 text; name a text file with an id per line") from None
    return [line.strip() for line in lines if line.strip()]


def filters_of(given: Sequence[str]) -> dict[str, list[str]] | None:
    """Return filters written as KEY=VALUE; a key that comes twice allows either value.

    Examples
    --------
    >>> filters_of(["category=War", "category=Crime"])
    {'category': ['War', 'Crime']}
    """
    found: dict[str, list[str]] = {}
    for text in given:
        key, mark, value = text.partition("=")
        if not mark or not key.strip() or not value.strip():
            raise ParameterError(f"--where {text}: write KEY=VALUE, such as category=Horror")
        found.setdefault(key.strip(), []).append(value.strip())
    return found or None


def with_interests(model: Recommender) -> MultiInterest:
    """Return a model that knows interests, or say that this one does not."""
    from dpcml.models.multi_interest import MultiInterest

    if not isinstance(model, MultiInterest):
        raise ParameterError(f"{type(model).__name__} knows no interests: train dpcml, cml or gfja")
    return model


def titles_of(model: Recommender, items: Any) -> list[str]:
    """Return the titles of items by external id."""
    train = model.check_fitted()
    return [train.items.title(int(column)) for column in train.item_columns(items)] if len(items) else []


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table for people; numbers stand to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    for name in header:
        right = name in ("", "score", "share", "similarity")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)
