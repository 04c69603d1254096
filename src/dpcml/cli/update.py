"""``dpcml update``: a new model from a saved one and the feedback that a server has kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import AsJson, note, print_json
from dpcml.cli.options import Folder


def update(
    folder: Folder,
    feedback: Annotated[Path, typer.Option(metavar="JOURNAL", help="What 'dpcml serve --feedback' wrote.")],
    out: Annotated[Path, typer.Option(help="Folder of the new model.")],
    epochs: Annotated[int, typer.Option(min=0, help="Passes over the positives of users with new likes.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Add the likes of a feedback journal to a model, without training from the beginning.

    Dislikes and hidden items are not learned; a server goes on reading them from the journal.
    """
    from dpcml.workflow import update_saved

    summary = update_saved(folder, feedback, out, epochs=epochs)
    if as_json:
        print_json(summary)
        return
    if summary["damaged"]:
        note(f"{summary['damaged']} damaged lines of {feedback} were left out")
    if summary["foreign"]:
        note(f"{summary['foreign']} likes were left out: the model lacks the item, or its user ids are of another kind")
    print(f"{out}: {summary['likes']} new likes, {summary['new_users']} new users, {summary['positives']} positives")
