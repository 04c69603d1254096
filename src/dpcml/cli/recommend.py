"""``dpcml recommend``, ``similar`` and ``interests``: what a saved model says to people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from dpcml.cli.console import AsJson, console, note
from dpcml.errors import DataError, ParameterError

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="What 'dpcml train' wrote.")]
Count = Annotated[int, typer.Option("-n", help="How many at most.")]


def recommend(
    folder: Folder,
    user: Annotated[str | None, typer.Option(help="Id of a user in the training data.")] = None,
    history: Annotated[str | None, typer.Option(help="Ids of items that a new person likes, with commas.")] = None,
    users: Annotated[Path | None, typer.Option(help="File with one user id per line; '-' stands for all.")] = None,
    out: Annotated[Path | None, typer.Option(help="With --users: .parquet, .csv or .jsonl.")] = None,
    n: Count = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Say why.")] = False,
    mix: Annotated[float, typer.Option(help="From 0 (best scores) to 1 (all interests alike).")] = 0.0,
    where: Annotated[list[str] | None, typer.Option(help="category=Horror, title=alien; may be repeated.")] = None,
    seen: Annotated[bool, typer.Option("--seen", help="Recommend what the person knows, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to a user, to somebody new, or to many users at once."""
    from dpcml.storage import load

    options: dict[str, Any] = {"n": n, "mix": mix, "exclude_seen": not seen, "where": _conditions(where)}
    given = [
        name for name, value in (("--user", user), ("--history", history), ("--users", users)) if value is not None
    ]
    if len(given) != 1:
        raise ParameterError(f"{' and '.join(given) or 'nobody'} given: name one of --user, --history and --users")
    model = load(folder)
    if users is not None:
        _write_many(model, users, out, options, as_json)
        return
    if history is not None:
        found = model.recommend_new(_ids(history), **options, explain=explain)
    else:
        found = model.recommend(user, **options, explain=explain)
    _show_list(model, found, user, as_json)


def similar(
    folder: Folder,
    item: Annotated[str | None, typer.Option(help="Id of an item.")] = None,
    user: Annotated[str | None, typer.Option(help="Id of a user.")] = None,
    n: Count = 10,
    as_json: AsJson = False,
) -> None:
    """Show the items most like an item, or the users most like a user."""
    from dpcml.storage import load

    if (item is None) == (user is None):
        raise ParameterError("name one of --item and --user")
    model = load(folder)
    ids, values = model.similar_items(item, n) if user is None else model.similar_users(user, n)
    titles = _titles(model, ids) if user is None else [""] * len(ids)
    lines = [
        {"id": one, "title": title, "similarity": round(float(value), 6)}
        for one, title, value in zip(ids.tolist(), titles, values, strict=True)
    ]
    if as_json:
        print(json.dumps({"like": item if user is None else user, "similar": lines}))
        return
    _print_table([("", "id"), ("", "title"), ("right", "similarity")], [list(line.values()) for line in lines])


def interests(
    folder: Folder,
    user: Annotated[str | None, typer.Option(help="Id of a user in the training data.")] = None,
    history: Annotated[str | None, typer.Option(help="Ids of items that a new person likes, with commas.")] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Liked items shown per interest.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show a user's interests: named groups of what the user likes, largest first."""
    from dpcml.models.multi_interest import MultiInterest
    from dpcml.storage import load

    if (user is None) == (history is None):
        raise ParameterError("name one of --user and --history")
    model = load(folder)
    if not isinstance(model, MultiInterest):
        raise DataError(f"{folder} holds {type(model).__name__}, which knows no interests: train dpcml, cml or gfja")
    found = model.interests(user) if history is None else model.interests_new(_ids(history))
    lines = [
        {
            "number": interest.number,
            "name": interest.name,
            "share": round(float(interest.share), 4),
            "categories": [[name, round(float(part), 4)] for name, part in interest.categories],
            "items": interest.items.tolist(),
        }
        for interest in found
    ]
    if as_json:
        print(json.dumps({"user": user, "interests": lines}))
        return
    rows = [
        [
            interest.name,
            f"{interest.share:.0%}",
            str(len(interest.items)),
            ", ".join(_titles(model, interest.items[:n])),
        ]
        for interest in found
    ]
    _print_table([("", "interest"), ("right", "share"), ("right", "items"), ("", "nearest")], rows)


def _ids(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _conditions(given: list[str] | None) -> dict[str, Any] | None:
    """Turn ``name=value`` texts into what ``where`` takes; one name may have several values."""
    wanted: dict[str, list[str]] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise ParameterError(f"--where {text!r}: write name=value, such as category=Horror")
        wanted.setdefault(name, []).append(value)
    return dict(wanted) or None


def _titles(model: Any, ids: Any) -> list[str]:
    items = model.train_.items
    return [items.title(int(column)) for column in model.train_.item_columns(ids)] if len(ids) else []


def _show_list(model: Any, found: tuple[Any, ...], user: str | None, as_json: bool) -> None:
    ids, scores = found[:2]
    reasons = found[2] if len(found) > 2 else [None] * len(ids)
    lines = []
    for place, (one, title, score, reason) in enumerate(
        zip(ids.tolist(), _titles(model, ids), scores.tolist(), reasons, strict=True), start=1
    ):
        line: dict[str, Any] = {"rank": place, "item": one, "title": title, "score": round(score, 6)}
        if reason is not None:
            line |= {"interest": reason.interest, "interest_name": reason.name, "why": reason.text}
        lines.append(line)
    if as_json:
        print(json.dumps({"user": user, "recommendations": lines}))
        return
    columns = [("right", "rank"), ("", "item"), ("", "title"), ("right", "score")]
    rows = [[line["rank"], line["item"], line["title"], f"{line['score']:.3f}"] for line in lines]
    if len(found) > 2:
        columns.append(("", "why"))
        rows = [[*row, line["why"]] for row, line in zip(rows, lines, strict=True)]
    _print_table(columns, rows)


def _print_table(columns: list[tuple[str, str]], rows: list[list[Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for justify, name in columns:
        table.add_column(name, justify=justify or "left", overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console().print(table)


def _write_many(model: Any, users: Path, out: Path | None, options: dict[str, Any], as_json: bool) -> None:
    from dpcml.exports import write_lists
    from dpcml.files import present

    if out is None:
        raise ParameterError("--users needs --out: a file that ends in .parquet, .csv or .jsonl")
    wanted = None
    if str(users) != "-":
        wanted = [line.strip() for line in present(users).read_text(encoding="utf-8").splitlines() if line.strip()]
        if not wanted:
            raise DataError(f"{users} names no user: write one id per line")
    with _people_bar() as progress:
        lines = write_lists(model, out, wanted, progress=progress, **options)
    people = model.train_.n_users if wanted is None else len(wanted)
    if as_json:
        print(json.dumps({"out": str(out), "users": people, "lines": lines}))
    else:
        note(f"{out}: {lines:,} recommendations for {people:,} users")


@contextmanager
def _people_bar() -> Iterator[Callable[[int, int], object] | None]:
    """Show how many people are done, on a terminal's standard error."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("recommending", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
