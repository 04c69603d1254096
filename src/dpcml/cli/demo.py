"""``dpcml demo``: models side by side on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcml.cli.console import note
from dpcml.utils.errors import MissingExtraError
from dpcml.utils.files import full_path


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the reports and the picture.")] = Path("dpcml-demo"),
    users: Annotated[int, typer.Option(help="Users of the planted world.")] = 1000,
    items: Annotated[int, typer.Option(help="Items of the planted world.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of world and split.")] = 0,
) -> None:
    """Train DPCML, CML and simple models on a planted world with known interests, and compare their lists."""
    from dpcml.demo import draw_demo, run_demo

    full_path(out)  # there is none if the current folder is gone, which is better said before the training
    note("training on a planted world (the first time compiles kernels, up to half a minute)")
    found = run_demo(users, items, seed)
    data = found.world.data
    print(f"planted world: {data.n_users:,} users, {data.n_items:,} items, {data.n_positives:,} positives;", end=" ")
    print(f"split {found.split.hash} ({found.split.rule}), seed {seed}\n")
    print(found.comparison)
    print("minority_R: recall of items outside a user's majority interest; ILD: intra-list distance\n")
    print(found.agreement() + "\n")
    print("A typical user (of the first 200, the median share of minority interests in DPCML's list):")
    print(found.story(found.typical()) + "\n")
    files = found.write(out)
    try:
        draw_demo(found, out / "interests.png")
        files.append(out / "interests.png")
    except MissingExtraError as error:
        note(f"no picture: {error}")
    print(f"written to {out}: {', '.join(file.name for file in files)}")
