"""``dpcml update``: a new model from a saved one, with the feedback of a server or with new items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import AsJson, note, print_json
from dpcml.cli.options import Folder
from dpcml.utils.errors import ParameterError


def update(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Folder of the new model.")],
    feedback: Annotated[
        Path | None, typer.Option(metavar="JOURNAL", help="What 'dpcml serve --feedback' wrote.")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="Titles and genres of items that nobody likes yet.")] = None,
    item: Annotated[
        str | None, typer.Option(help="Column of the ids in the file of --items; as in the training data by default.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Passes over the positives of users with new likes.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Add the likes of a feedback journal to a model, or new items by their content, without a new training.

    Dislikes and hidden items are kept as known and not liked: the new model never recommends them to these people.
    """
    from dpcml.storage import CARD
    from dpcml.workflow import add_items_saved, update_saved

    if (out / CARD).exists() and not as_json:
        note(f"{out} has a model: it is replaced when the new one is whole")
    if items is not None and feedback is None:
        summary = add_items_saved(folder, items, out, item=item)
        if as_json:
            print_json(summary)
        else:
            print(f"{out}: {summary['new_items']} new items, {summary['items']} in all")
        return
    if feedback is None or items is not None:
        raise ParameterError("name either --feedback JOURNAL or --items FILE; update twice for both")
    if item is not None:
        raise ParameterError(f"--item {item}: is a column of the file of --items; add --items FILE, or leave it out")
    summary = update_saved(folder, feedback, out, epochs=epochs)
    if as_json:
        print_json(summary)
        return
    if summary["damaged"]:
        note(f"damaged lines of {feedback} that were left out: {summary['damaged']}")
    if summary["foreign"]:
        note(f"{summary['foreign']} likes were left out: the model lacks the item, or its user ids are of another kind")
    print(f"{out}: {summary['likes']} new likes, {summary['new_users']} new users, {summary['positives']} positives")
