"""``dpcml interests``: a user's vectors as named groups of the history."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcml.cli.asking import ids_of, show_table, titles_of, with_interests
from dpcml.cli.console import AsJson, print_json
from dpcml.cli.options import Folder
from dpcml.utils.errors import ParameterError

SHOWN = 5  # liked items per interest


def interests(
    folder: Folder,
    user: Annotated[str | None, typer.Option(help="A user of the training data.")] = None,
    history: Annotated[str | None, typer.Option(help="Items that somebody new likes: id,id,...")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the interests that a model sees in a user's history, largest first."""
    from dpcml.storage import load

    if (user is None) == (history is None):
        raise ParameterError("name one of --user ID and --history ID,ID,...")
    model = with_interests(load(folder))
    found = model.interests(user) if history is None else model.interests_new(ids_of(history))
    if as_json:
        asked = {"user": user} if history is None else {"history": ids_of(history)}
        print_json({**asked, "model": model.name, "interests": [one.to_dict() for one in found]})
        return
    rows = []
    for one in found:
        titles = titles_of(model, one.items[:SHOWN])
        more = [f"and {len(one.items) - SHOWN} more"] if len(one.items) > SHOWN else []
        rows.append([f"{one.share:.0%}", one.name, ", ".join([*titles, *more])])
    show_table(f"interests of {user or 'somebody who likes ' + str(history)}", ["share", "interest", "liked"], rows)
