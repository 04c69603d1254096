"""``dpcml recommend``: lists for one user, for somebody new, or for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.asking import N, filters_of, ids_in, ids_of, show_table, titles_of
from dpcml.cli.console import AsJson, count_bar, note, print_json
from dpcml.cli.options import Folder
from dpcml.utils.errors import ParameterError

if TYPE_CHECKING:
    from dpcml.models import Recommender


def recommend(
    folder: Folder,
    user: Annotated[str | None, typer.Option(help="A user of the training data.")] = None,
    history: Annotated[str | None, typer.Option(help="Items that somebody new likes: id,id,...")] = None,
    users: Annotated[str | None, typer.Option(help="A file with a user id per line, or 'all'; needs --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write lists to this .parquet, .csv or .jsonl file.")] = None,
    n: N = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Say why.")] = False,
    mix: Annotated[float, typer.Option(help="0: best scores; 0.5: as in the history; 1: all interests alike.")] = 0.0,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only such items: category=Horror, title=alien.")
    ] = None,
    seen: Annotated[bool, typer.Option("--seen", help="Also what was seen in training.")] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to a user, to somebody new by what they like, or to many users at once."""
    from dpcml.storage import load

    if sum(asked is not None for asked in (user, history, users)) != 1:
        raise ParameterError("name one of --user ID, --history ID,ID,... and --users FILE")
    if (users is None) != (out is None):
        raise ParameterError("--users and --out belong together: many lists go to a file")
    model = load(folder)
    options: dict[str, Any] = {
        "mix": mix,
        "where": filters_of(where or ()),
        "exclude_seen": not seen,
        "explain": explain,
    }
    if users is not None and out is not None:
        _write(model, users, out, n, options, as_json)
        return
    if history is not None:
        found = model.recommend_new(ids_of(history), n, **options)
    else:
        found = model.recommend(user, n, **options)
    items = _plain(model, found)
    if as_json:
        asked = {"user": user} if history is None else {"history": ids_of(history)}
        print_json({**asked, "model": model.name, "mix": mix, "items": items})
        return
    if not items:
        note("nothing is left to recommend: all that passes the filters is known already; --seen shows it too")
        return
    header = ["", "item", "title", "score", *(["why"] if explain else [])]
    rows = [
        [str(k), str(one["id"]), one["title"], f"{one['score']:.4f}", *([one["reason"]["text"]] if explain else [])]
        for k, one in enumerate(items, 1)
    ]
    show_table(f"for {user if history is None else 'somebody who likes ' + history}", header, rows)


def _plain(model: Recommender, found: tuple[Any, ...]) -> list[dict[str, Any]]:
    ids, scores, *reasons = found
    titles = titles_of(model, ids)
    listed = [
        {"id": item, "title": title, "score": score}
        for item, title, score in zip(ids.tolist(), titles, scores.tolist(), strict=True)
    ]
    for one, reason in zip(listed, reasons[0] if reasons else (), strict=False):
        one["reason"] = reason.to_dict()
    return listed


def _write(model: Recommender, users: str, out: Path, n: int, options: dict[str, Any], as_json: bool) -> None:
    import numpy as np

    from dpcml.exporting import write_lists

    wanted = None if users == "all" else np.array(ids_in(Path(users)), dtype=object)
    with count_bar("recommending") as progress:
        rows = write_lists(model, out, wanted, n, progress=progress, **options)
    count = model.check_fitted().n_users if wanted is None else len(wanted)
    if as_json:
        print_json({"out": str(out), "users": count, "rows": rows, "model": model.name})
    else:
        print(f"{rows:,} rows for {count:,} users written to {out}")
