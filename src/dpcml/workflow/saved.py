"""What is done with a saved model: evaluate it on the data that it has not seen, or let it learn more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpcml import storage
from dpcml.data.interactions import Interactions
from dpcml.data.items import as_integer, id_array, positions
from dpcml.data.shards import is_shards
from dpcml.data.split import Split
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.protocol import PROTOCOLS, select
from dpcml.evaluation.ranks import Ranks, rank_held_out
from dpcml.evaluation.report import Report
from dpcml.feedback import Feedback, latest, read_journal
from dpcml.models import Recommender
from dpcml.utils.errors import DataError, DpcmlError, ParameterError
from dpcml.utils.names import renamed
from dpcml.workflow.source import SHARDS, DataSource, read_catalogue, reading_of, warn_of_full_users


@renamed(at="k")
def evaluate_saved(
    folder: str | Path,
    *,
    data: str | None = None,
    options: Mapping[str, Any] | None = None,
    protocol: str = "strict",
    metrics: Sequence[str] | None = None,
    k: Sequence[int] = (3, 5, 10, 20),
    n_threads: int | None = None,
    progress: Any = None,
    rank: Callable[..., Ranks] = rank_held_out,
) -> Report:
    """Read the data of a saved model again, split it as then, and evaluate the model on the test part.

    For a model that was fitted on everything afterwards, it is the one of the training part that is evaluated.

    Parameters
    ----------
    folder
        Where `train_and_save` put the model.
    data, options
        Where the data is now and how to read it; by default as it was read for training.
    protocol, metrics, k, n_threads, rank
        See `dpcml.evaluation.evaluate.evaluate`.
    progress
        Called with bytes done and bytes in all while a named set is downloaded.
    """
    _ = PROTOCOLS[protocol], select(metrics or "accuracy", k)  # errors before anything is read
    card = storage.read_card(folder)
    split = split_again(folder, data=data, options=options, progress=progress)
    model = storage.load(evaluated_folder(folder))
    label = card["record"].get("label")
    return evaluate(
        model,
        split.train,
        split.test,
        valid=split.valid,
        protocol=protocol,
        metrics=metrics,
        k=k,
        label=label,
        n_threads=n_threads,
        rank=rank,
    )


def evaluated_folder(folder: str | Path) -> Path:
    """Return the folder of the model that has not seen the test part: one below, if ``folder`` holds one for use.

    Examples
    --------
    >>> import tempfile
    >>> from dpcml import EASE
    >>> with tempfile.TemporaryDirectory() as place:
    ...     saved = storage.save(EASE().fit(np.eye(4)), Path(place) / "ease")
    ...     evaluated_folder(saved) == saved
    True
    """
    refitted = storage.read_card(folder)["record"].get("refit")
    return Path(folder) / storage.EVALUATION if refitted else Path(folder)


def split_again(
    folder: str | Path, *, data: str | None = None, options: Mapping[str, Any] | None = None, progress: Any = None
) -> Split:
    """Read the data of a saved model again and return the split that it was trained with; see `evaluate_saved`."""
    record = storage.read_card(folder)["record"]
    if "split" not in record or "source" not in record:
        if "updated" in record:
            raise DataError(
                f"{folder}: was changed by 'dpcml update', and what it has learned may be among the held-out likes;"
                " evaluate the model before, or train one without --no-refit, which keeps a model for evaluation"
            )
        raise DataError(f"{folder}: was not written by 'dpcml train', its split is not known; call dpcml.evaluate")
    if record["split"] is None:
        raise DataError(f"{folder}: was trained on everything, nothing is held out; train it without --all")
    try:
        source = DataSource(data or record["source"]["data"], {**record["source"]["options"], **(options or {})})
        how = record["split"].get("by", "ratio")  # models of earlier versions have no other
        seed, expected = record["split"]["seed"], record["split"]["hash"]
        trained_on = record["data_hash"]
    except (KeyError, TypeError) as error:
        raise DataError(f"{folder}: damaged, its record of data and split does not hold {error}") from None
    try:
        found = source.read(progress)
    except DpcmlError as error:
        raise DataError(f"{folder}: its data cannot be read: {error}; say with --data where it is") from None
    if found.content_hash != trained_on:
        raise DataError(
            f"{folder}: {source.data} has content hash {found.content_hash}, the model was trained on {trained_on};"
            " use the same data and options, or train anew"
        )
    if is_shards(source.data):
        how, seed = SHARDS, 0  # earlier versions kept what was asked for
    elif how == SHARDS:
        raise DataError(f"{folder}: was trained on a folder of shards, {source.data} is none; name it with --data")
    split = source.split(found, how, seed)
    if split.hash != expected:
        raise DataError(f"{folder}: the split is {split.hash} now and was {expected}; train anew")
    return split


def update_saved(folder: str | Path, journal: str | Path, out: str | Path, *, epochs: int = 10) -> dict[str, Any]:
    """Add the likes of a feedback journal to a saved model by ``partial_fit``, save the result, and return a summary.

    Dislikes and hidden items are kept as pairs that are known and not liked: the new model never recommends them.

    Parameters
    ----------
    folder
        The saved model; it stays as it is, unless ``out`` is the same folder.
    journal
        What ``dpcml serve --feedback`` wrote.
    out
        Folder of the new model.
    epochs
        Passes over the positives of users with new likes.
    """
    storage.free_place(out)
    model = storage.load(folder)
    learn = getattr(model, "partial_fit", None)
    if learn is None:
        raise ParameterError(
            f"{folder}: {type(model).__name__} cannot take in likes; train it anew with them, or use blend, dpcml, cml"
            " or gfja"
        )
    entries, damaged = read_journal(journal)
    said = latest(entries).values()
    likes, foreign = _learnable(model.train_, list(said))
    summary = {
        "out": str(out),
        "entries": len(entries),
        "damaged": damaged,  # lines that could not be read
        "foreign": foreign,  # likes whose item or kind of user id the model does not have
        "likes": 0 if likes is None else likes.n_positives,
    }
    if likes is None:
        raise DataError(f"{journal}: holds no like that {folder} does not know ({len(entries)} entries); nothing to do")
    before = model.train_.n_users
    learn(likes, epochs=epochs)
    _save_updated(model, out, folder, {"likes": likes.n_positives, "epochs": epochs})
    return summary | {"new_users": model.train_.n_users - before, "positives": model.train_.n_positives}


def add_items_saved(
    folder: str | Path, items: str | Path, out: str | Path, *, item: str | None = None
) -> dict[str, Any]:
    """Add items that nobody likes yet to a saved model, save the result, and return a summary.

    Parameters
    ----------
    folder
        The saved model; it stays as it is, unless ``out`` is the same folder.
    items
        A catalogue, see `dpcml.data.readers.items.read_items`; those of its items that the model knows are left out.
    out
        Folder of the new model.
    item
        Column of the ids in the catalogue; by default guessed, or called as in the data that the model was trained on.
    """
    storage.free_place(out)
    card, model = storage.read_card(folder), storage.load(folder)
    before = model.check_fitted()
    added = model.add_items(read_catalogue(items, reading_of(card), item=item)).check_fitted().n_items - before.n_items
    _save_updated(model, out, folder, {"items": added})
    return {"out": str(out), "new_items": added, "items": before.n_items + added}


def _save_updated(model: Recommender, out: str | Path, folder: str | Path, changes: Mapping[str, Any]) -> None:
    """Save a model that began as the one in a folder, with what the folder has for `evaluate_saved`.

    Held-out figures are those of the model of the training part. Where there is none beside the model, nothing is left
    to evaluate on: what was added may be in the test part.
    """
    card = storage.read_card(folder)
    before, evaluated = card["record"], None
    if before.get("refit"):
        evaluated, record = storage.load(evaluated_folder(folder)), dict(before)
    else:
        record = {"label": before.get("label", model.name)}
    record["updated"] = {"data_hash": card["data_hash"], "reading": reading_of(card), **changes}
    storage.save(model, out, record=record, evaluation=evaluated)


def _learnable(train: Interactions, said: Sequence[Feedback]) -> tuple[Interactions | None, int]:
    """Return the likes that are new to a model, None without any, and how many it cannot take.

    Dislikes and hidden items go along as pairs that are known and no positives, as ratings below the threshold are.
    Likes of users who would then like every item are left out, with a warning: no model can learn from them.
    """
    items = positions(train.item_ids, np.atleast_1d(id_array([one.item for one in said])), train.items.order)
    numbers = train.user_ids.dtype.kind == "i"
    users = [as_integer(str(one.user)) if numbers else str(one.user) for one in said]
    likes = np.array([one.action == "like" for one in said], dtype=bool)
    fit = np.array([user is not None for user in users], dtype=bool) & (items >= 0)
    foreign = int((likes & ~fit).sum())
    said, items, likes = [one for one, fits in zip(said, fit, strict=True) if fits], items[fit], likes[fit]
    ids, codes = np.unique(id_array([user for user, fits in zip(users, fit, strict=True) if fits]), return_inverse=True)
    rows = positions(train.user_ids, ids, train.user_order)
    known = [row >= 0 and item in train.of(row) for row, item in zip(rows[codes], items, strict=True)]
    new = likes & ~np.array(known, dtype=bool)
    full = np.bincount(codes[new], minlength=len(ids)) + np.where(rows < 0, 0, train.per_user[rows]) == train.n_items
    full &= np.bincount(codes[new], minlength=len(ids)) > 0
    if full.any():
        warn_of_full_users(ids[full], train.n_items)
        new &= ~full[codes]
    if not new.any():
        return None, foreign
    named = rows >= 0  # somebody new is known by likes only
    named[codes[new]] = True
    unwanted = ~likes & named[codes]
    places = np.cumsum(named) - 1
    found = Interactions.from_codes(
        places[codes[new]], items[new], ids[named], train.items,
        timestamps=None if train.timestamps is None else np.array([one.time for one in said])[new],
        weights=None if train.weights is None else np.full(new.sum(), np.median(train.weights)),  # nobody has said any
        low_rated=(places[codes[unwanted]], items[unwanted]),
    )  # fmt: skip
    return found, foreign
