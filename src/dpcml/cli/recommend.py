"""The verbs that query a saved model: ``dpcml recommend``, ``dpcml similar`` and ``dpcml interests``."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcml.cli.console import AsJson, count_bar, note, print_json, show_table
from dpcml.cli.options import Address, Engine, Folder, Workers, on_ray
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import near_hint

if TYPE_CHECKING:
    from dpcml.models import Recommender

SHOWN = 5  # liked items per interest in a table

N = Annotated[int, typer.Option("-n", help="Maximum number of results.")]
User = Annotated[str | None, typer.Option(help="Id of a user in the training data.")]
History = Annotated[str | None, typer.Option(help="Items that a new user likes: id,id,...")]
OnUnknownItem = Annotated[str, typer.Option(metavar="WAY", help="Unknown items: error, or skip them.")]


def recommend(
    folder: Folder,
    user: User = None,
    history: History = None,
    users: Annotated[str | None, typer.Option(help="File with one user id per line, or 'all'; needs --out.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the lists to this .parquet, .csv or .jsonl file; with Ray, a folder.")
    ] = None,
    n: N = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Give a reason for each item.")] = False,
    mix: Annotated[float, typer.Option(help="0: best scores; up to 1: more from the user's smaller interests.")] = 0.0,
    mix_by: Annotated[
        str | None, typer.Option(help="Mix by 'categories' (default where items have them) or 'interests' (vectors).")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only such items: category=Horror, title=alien.")
    ] = None,
    items: Annotated[Path | None, typer.Option(help="File with one item id per line: recommend only these.")] = None,
    exclude: Annotated[Path | None, typer.Option(help="File with one item id per line: never recommend these.")] = None,
    on_unknown: Annotated[
        str, typer.Option(metavar="WAY", help="Unknown ids: error, skip them, or popular items.")
    ] = "error",
    show_known: Annotated[
        bool, typer.Option("--show-known", help="Include items that the user knows already.")
    ] = False,
    seen: Annotated[bool, typer.Option("--seen", hidden=True)] = False,  # the old name of --show-known
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    as_json: AsJson = False,
) -> None:
    """Recommend items to a user, to a new user with a history, or to many users."""
    if seen:
        note("--seen is called --show-known now; the old name goes in the next version")
    from dpcml.storage import load

    if sum(given is not None for given in (user, history, users)) != 1:
        raise ParameterError("name one of --user ID, --history ID,ID,... and --users FILE")
    if (users is None) != (out is None):
        raise ParameterError("--users and --out belong together: the lists of many users go to a file")
    ray = on_ray(engine, workers=workers, address=address)
    if ray and users is None:
        raise ParameterError("--engine ray makes lists of many users: name --users FILE and --out DIR")
    model = load(folder)
    options: dict[str, Any] = {
        "mix": mix,
        "mix_by": mix_by,
        "where": parse_filters(where or ()),
        "items": None if items is None else _read_ids(items),
        "exclude": None if exclude is None else _read_ids(exclude),
        "exclude_seen": not (seen or show_known),
        "explain": explain,
        "on_unknown": on_unknown,
    }
    if users is not None and out is not None:
        _write(model, users, out, n, options, as_json, (folder, workers or 1, address) if ray else None)
        return
    if history is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a note says it
            found = model.recommend_new(parse_ids(history), n, **options)
    else:
        found = model.recommend(user, n, **options)
    listed = _items_json(model, *found)
    lacking = [] if history is None else _unknown_ids(model, parse_ids(history))
    filtered = _unknown_ids(model, [*(options["items"] or ()), *(options["exclude"] or ())])
    unknown = _unknown(model, user, history, lacking)
    if as_json:
        said: dict[str, Any] = {"popular": True} if unknown and listed else {}
        strangers = [user] if user is not None and not _is_known(model, user) else []
        left_out = {"users": strangers, "items": [*lacking, *filtered]}
        if any(left_out.values()):  # as in the server's responses
            said["unknown"] = {kind: ids for kind, ids in left_out.items() if ids}
        print_json({**_asked(user, history), "model": model.name, "mix": mix, "items": listed, **said})
        return
    if unknown:
        note(f"{unknown}: {'these are the most popular items' if listed else 'left out'}")
    elif lacking:
        note(f"not known, and left out of the history: {_some(lacking)}")
    if filtered:
        note(f"not known, and left out of --items and --exclude: {_some(filtered)}")
    if not listed:
        if not unknown:
            note("nothing is left to recommend: the user knows all items that pass the filters; see --show-known")
        return
    header = ["", "item", "title", "score", *(["why"] if explain else [])]
    rows = [
        [str(k), str(one["id"]), one["title"], f"{one['score']:.4f}", *([one["reason"]["text"]] if explain else [])]
        for k, one in enumerate(listed, 1)
    ]
    show_table(f"for {_who(user, history)}", header, rows)


def similar(
    folder: Folder,
    item: Annotated[list[str] | None, typer.Option(help="Id of an item; may be given several times.")] = None,
    user: Annotated[list[str] | None, typer.Option(help="Id of a user; may be given several times.")] = None,
    n: N = 10,
    on_unknown: OnUnknownItem = "error",
    as_json: AsJson = False,
) -> None:
    """Show the items most similar to an item, or the users most similar to a user."""
    from dpcml.storage import load

    if bool(item) == bool(user):
        raise ParameterError("name one of --item ID and --user ID")
    if user and on_unknown != "error":
        raise ParameterError(f"--on-unknown {on_unknown}: goes with --item; an unknown user is an error")
    model, kind = load(folder), "item" if item else "user"
    lacking = _unknown_ids(model, item or [])
    found = model.similar_items(item, n, on_unknown=on_unknown) if item else model.similar_users(user, n)
    wanted = [one for one in item or user or [] if one not in lacking]
    lists = [
        [{"id": one, "similarity": value} for one, value in zip(ids.tolist(), values.tolist(), strict=True)]
        for ids, values in zip(*found, strict=True)
    ]
    for rows in lists if item else ():
        for row, title in zip(rows, _titles(model, [row["id"] for row in rows]), strict=True):
            row["title"] = title
    if as_json:
        plain = [{kind: one, f"{kind}s": rows} for one, rows in zip(wanted, lists, strict=True)]
        said = {"model": model.name, **({"unknown": {"items": lacking}} if lacking else {})}
        print_json({**said, "similar": plain} if len(item or user or ()) > 1 else {**plain[0], **said})
        return
    if lacking:
        note(f"not known, and left out: {_some(lacking)}")
    for one, rows in zip(wanted, lists, strict=True):
        header = ["", kind, "similarity", *(["title"] if item else [])]
        lines = [[str(k), *(_cell(value) for value in row.values())] for k, row in enumerate(rows, 1)]
        title = f", {_titles(model, [one])[0]}" if item else ""
        show_table(f"similar to {kind} {one}{title}", header, lines)


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def interests(
    folder: Folder,
    user: User = None,
    history: History = None,
    on_unknown: OnUnknownItem = "error",
    as_json: AsJson = False,
) -> None:
    """Show the interests in the history of a user, largest first."""
    from dpcml.storage import load

    if (user is None) == (history is None):
        raise ParameterError("name one of --user ID and --history ID,ID,...")
    model = load(folder)
    known = model.multi_interest
    if known is None:
        raise ParameterError(f"{type(model).__name__} has no interests: train dpcml, cml or gfja")
    if history is None:
        found, lacking = known.interests(user), []
    else:
        found = known.interests_new(parse_ids(history), on_unknown=on_unknown)
        lacking = _unknown_ids(model, parse_ids(history))
    if as_json:
        said = {"unknown": {"items": lacking}} if lacking else {}
        print_json(
            {**_asked(user, history), "model": model.name, "interests": [one.to_dict() for one in found], **said}
        )
        return
    if lacking:
        note(f"not known, and left out of the history: {_some(lacking)}")
    rows = []
    for one in found:
        more = [f"and {len(one.items) - SHOWN} more"] if len(one.items) > SHOWN else []
        rows.append([f"{one.share:.0%}", one.name, ", ".join([*_titles(model, one.items[:SHOWN]), *more])])
    show_table(f"interests of {_who(user, history)}", ["share", "interest", "liked"], rows)


def parse_ids(text: str) -> list[str]:
    r"""Return ids that are separated by commas or line breaks; an id with a comma in it stands in double quotes.

    Examples
    --------
    >>> parse_ids('7, 12,"Emma, again"'), parse_ids("7\n12")
    (['7', '12', 'Emma, again'], ['7', '12'])
    """
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    return [part.strip() for row in rows for part in row if part.strip()]


def parse_filters(given: Sequence[str]) -> dict[str, list[str]] | None:
    """Return filters written as KEY=VALUE; several values of one key are alternatives.

    Examples
    --------
    >>> parse_filters(["category=War", "category=Crime"])
    {'category': ['War', 'Crime']}
    """
    found: dict[str, list[str]] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or not value.strip():
            raise ParameterError(f"--where {text}: write KEY=VALUE, such as category=Horror")
        found.setdefault(key.strip(), []).append(value.strip())
    return found or None


def _read_ids(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # ids may have the other characters that end lines
    except OSError as error:
        said = f"{path}: cannot be read ({error.strerror}); name a text file with one id per line"
        raise DataError(f"{said}{near_hint(path)}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text; name a text file with one id per line") from None
    return [line.strip() for line in lines if line.strip()]


def _asked(user: str | None, history: str | None) -> dict[str, Any]:
    return {"user": user} if history is None else {"history": parse_ids(history)}


def _who(user: str | None, history: str | None) -> str:
    return f"user {user}" if history is None else f"a new user who likes {history}"


def _unknown(model: Recommender, user: str | None, history: str | None, lacking: Sequence[str]) -> str | None:
    """Return why nothing is known of a user, whose history lacks some ids; None if something is."""
    train = model.check_fitted()
    if user is not None:
        if not _is_known(model, user):
            return f"user {user} is not known"
        row = int(train.user_rows([user])[0])
        knows = len(train.of(row)) or len(train.low_rated_of(row)) == train.n_items
        return None if knows else f"user {user} likes none of the items"
    if history is None:
        return None
    ids = parse_ids(history)
    return None if len(lacking) < len(ids) else "no item of the history is known" if ids else "the history is empty"


def _is_known(model: Recommender, user: str) -> bool:
    import numpy as np

    from dpcml.data.items import positions

    return bool((positions(model.check_fitted().user_ids, np.array([user], dtype=object)) >= 0).any())


def _unknown_ids(model: Recommender, given: Sequence[Any]) -> list[str]:
    """Return those of some item ids that the model does not know."""
    import numpy as np

    from dpcml.data.items import positions

    ids = np.array([str(one) for one in given], dtype=object)
    return [str(one) for one in ids[positions(model.check_fitted().item_ids, ids) < 0]] if len(ids) else []


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more


def _titles(model: Recommender, items: Any) -> list[str]:
    train = model.check_fitted()
    return [train.items.title(int(column)) for column in train.item_columns(items)] if len(items) else []


def _items_json(model: Recommender, ids: Any, scores: Any, reasons: Sequence[Any] = ()) -> list[dict[str, Any]]:
    listed = [
        {"id": item, "title": title, "score": score}
        for item, title, score in zip(ids.tolist(), _titles(model, ids), scores.tolist(), strict=True)
    ]
    for one, reason in zip(listed, reasons, strict=False):
        one["reason"] = reason.to_dict()
    return listed


def _write(
    model: Recommender,
    users: str,
    out: Path,
    n: int,
    options: dict[str, Any],
    as_json: bool,
    ray: tuple[Path, int, str | None] | None,
) -> None:
    """Write the lists of many users to a file; with the folder of the model, workers and address, on Ray to parts."""
    import numpy as np

    from dpcml.export import write_recommendations
    from dpcml.retrieval.lists import request_ids

    wanted = None if users == "all" else np.array(_read_ids(Path(users)), dtype=object)
    if wanted is not None and not len(wanted):
        raise DataError(f"{users}: names no user; write one id per line, or ask for --users all")
    with count_bar("recommending") as progress:
        if ray is None:
            rows = write_recommendations(model, out, wanted, n, progress=progress, **options)
        else:
            from dpcml.scale.lists import write_parts

            folder, workers, address = ray
            rows = write_parts(folder, out, wanted, n, workers=workers, address=address, progress=progress, **options)
    count = model.check_fitted().n_users if wanted is None else len(wanted)
    unknown = 0 if wanted is None else int((request_ids(model.check_fitted(), wanted)[1] < 0).sum())
    if unknown:
        skipped = options["on_unknown"] == "skip"
        count -= unknown if skipped else 0
        note(f"users who are not known: {unknown:,}; they {'are left out' if skipped else 'get popular items'}")
    if as_json:
        print_json({"out": str(out), "users": count, "rows": rows, "model": model.name})
    else:
        print(f"wrote {rows:,} rows for {count:,} users to {out}")
