"""``dpcml similar``: what is like an item, who is like a user."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcml.cli.asking import N, show_table, titles_of
from dpcml.cli.console import AsJson, print_json
from dpcml.cli.options import Folder
from dpcml.utils.errors import ParameterError


def similar(
    folder: Folder,
    item: Annotated[str | None, typer.Option(help="An item's id.")] = None,
    user: Annotated[str | None, typer.Option(help="A user's id.")] = None,
    n: N = 10,
    as_json: AsJson = False,
) -> None:
    """Show the items most like an item, or the users most like a user."""
    from dpcml.storage import load

    if (item is None) == (user is None):
        raise ParameterError("name one of --item ID and --user ID")
    model = load(folder)
    ids, values = model.similar_users(user, n) if item is None else model.similar_items(item, n)
    titles = [] if item is None else titles_of(model, ids)
    if as_json:
        rows = [{"id": one, "similarity": value} for one, value in zip(ids.tolist(), values.tolist(), strict=True)]
        for row, title in zip(rows, titles, strict=False):
            row["title"] = title
        asked, named = ({"item": item}, "items") if user is None else ({"user": user}, "users")
        print_json({**asked, "model": model.name, named: rows})
        return
    header = ["", "user", "similarity"] if item is None else ["", "item", "similarity", "title"]
    lines = [
        [str(k + 1), str(one), f"{value:.4f}", *titles[k : k + 1]]
        for k, (one, value) in enumerate(zip(ids.tolist(), values.tolist(), strict=True))
    ]
    show_table(f"like {user}" if item is None else f"like {item}, {titles_of(model, [item])[0]}", header, lines)
