"""From data to a saved model: find settings on a split, then train on everything."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpcml import storage
from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable
from dpcml.data.split import Split
from dpcml.evaluation.evaluate import evaluate
from dpcml.models import Recommender
from dpcml.models.parameters import named
from dpcml.models.runners import Runner
from dpcml.retrieval.content import with_new_items
from dpcml.training.checkpoint import FILE, PREVIOUS, Checkpoint
from dpcml.training.progress import working
from dpcml.training.tracking import Tracker
from dpcml.training.trainer import History
from dpcml.utils.errors import DataError, ParameterError
from dpcml.utils.files import full_path
from dpcml.utils.packages import version
from dpcml.workflow.source import SHARDS, DataSource, warn_of_full_users

TEST_METRICS = ("P@10", "R@10", "NDCG@10", "MAP", "MRR", "AUC")  # in the record of a model
REFIT = "refit"  # folder in that of the checkpoint, for the training on everything


def train_and_save(
    model: Recommender,
    data: Interactions,
    out: str | Path,
    *,
    source: DataSource,
    label: str | None = None,
    split: str = "ratio",
    split_seed: int = 0,
    everything: bool = False,
    refit: bool = True,
    resume: bool = False,
    checkpoint_every: int = 10,
    progress: bool | None = None,
    trackers: Sequence[Tracker] = (),
    cold_items: ItemTable | None = None,
    runner: Runner | None = None,
) -> dict[str, Any]:
    """Find settings and held-out figures on a split, train on everything with them, save the model.

    The model is trained on the training part, stopped by the validation part, and evaluated on the test part. What is
    saved for use is `Recommender.settled` of it, fitted on all positives; the first one is kept in the folder too, for
    `evaluate_saved`. While it trains, a checkpoint lies beside ``out``; it is removed when the model is saved.

    Parameters
    ----------
    model
        An unfitted model.
    data, source
        The data, and its source, which is saved with the model so that it can be evaluated later.
    out
        Folder of the model.
    label
        The name of the model in reports, such as that of a preset.
    split
        How to split: ``ratio`` (60, 20 and 20 % of each user's positives), ``last`` or ``time``; see
        `dpcml.data.split.split_by`. A folder of shards has a split of its own: it takes no other rule or seed.
    split_seed
        Seed of the split: give it the same value for models that are to be compared.
    everything
        Train on all positives without a split; nothing is left to evaluate on.
    refit
        Train on everything after the split; otherwise the model of the training part is the one that is saved.
    resume
        Go on from the checkpoint, if there is one.
    checkpoint_every
        Epochs between two checkpoints.
    progress
        Show a progress bar; by default on a terminal.
    cold_items
        A catalogue: those of its items that nobody likes are added to the model for use, see `Recommender.add_items`.
    trackers
        Get the parameters, the epochs of the training on the split, and the held-out figures, as one run.
    runner
        Where to train, see `Recommender.fit`.

    Returns
    -------
    dict
        The summary: of the training on the split, with the held-out figures under ``test``, and of the training on
        everything under ``refit``; None where there was none.
    """
    storage.free_place(out)
    if cold_items is not None:
        model.check_can_add_items()
        if not (everything or refit):
            raise ParameterError("cold items need a model for use: leave out --no-refit, which saves the evaluated one")
        if _new_items(cold_items, data):
            with_new_items(data, cold_items)  # what is wrong with them is said before the training
    by = None if everything else source.split_rule(split, split_seed)
    seed = None if by == SHARDS else split_seed  # that of shards is part of their rule
    parts = None if by is None else source.split(data, by, split_seed)
    place = checkpoint_folder(out)
    if not resume:
        for below in place.glob("*/"):  # of an earlier run: its members and its training on everything
            _remove_checkpoint(below)
    options: dict[str, Any] = {
        "checkpoint_every": checkpoint_every,
        "resume": resume,
        "progress": progress,
        "runner": runner,
    }
    train, valid = (data, None) if parts is None else (parts.train, parts.valid)
    with ExitStack() as tracked:
        for tracker in trackers:
            about = {"model": label or model.name, **model.get_params(), "data": source.data, "split_seed": split_seed}
            tracked.enter_context(tracker.run(about))
        seconds = _fit(model, train, valid, place, trackers=trackers, **options)
        with working("evaluating", progress):
            figures = None if parts is None else _held_out(model, parts, label or model.name)
        for tracker in trackers:
            tracker.log({f"test_{name}": value for name, value in (figures or {"metrics": {}})["metrics"].items()})
    held = None if parts is None else {"by": by, "seed": seed, "rule": parts.rule, "hash": parts.hash}
    record: dict[str, Any] = {
        "label": label or model.name,
        "source": source.to_dict(),
        "data_hash": data.content_hash,
        "split": held,
        "seed": _seed(model),
    }
    found = _summary(model, record, train, seconds) | {"test": figures, "refit": None}
    final, kept = model, None
    if parts is not None:
        record["test"] = figures
        if refit:
            final, kept = model.settled(), model
            found["refit"] = record["refit"] = _refit(final, data, place / REFIT, options)
    if cold_items is not None and _new_items(cold_items, data):
        final.add_items(cold_items)
        found["cold_items"] = record["cold_items"] = final.check_fitted().n_items - data.n_items
    try:
        storage.save(final, out, record=record, evaluation=kept)
    except DataError as error:
        raise DataError(f"{error}; {place} holds the run: go on with --resume" if place.exists() else error) from None
    _remove_checkpoint(place)
    return {"out": str(out), **found}


def checkpoint_folder(out: str | Path) -> Path:
    """Return the folder of a run's checkpoint, beside the folder of its model.

    Examples
    --------
    >>> checkpoint_folder("runs/a").name
    'a.checkpoint'
    """
    place = full_path(out)
    return place.with_name(f"{place.name}.checkpoint")


def _new_items(catalogue: ItemTable, data: Interactions) -> bool:
    """Return whether a catalogue has items that the data lack."""
    return bool((catalogue.find(data.item_ids) >= 0).sum() < len(catalogue))


def _fit(
    model: Recommender,
    train: Interactions,
    valid: Interactions | None,
    place: Path,
    *,
    checkpoint_every: int,
    resume: bool,
    progress: bool | None,
    runner: Runner | None,
    trackers: Sequence[Tracker] = (),
) -> float:
    """Fit a model, with checkpoints if it is trained in epochs, and return the seconds that it took."""
    options: dict[str, Any] = {}
    if model.iterative:
        options = {"checkpoint": Checkpoint(place, checkpoint_every), "resume": resume, "callbacks": trackers}
    started = time.perf_counter()
    with working("fitting", progress):  # a bar and lines of the model take its place
        model.fit(_with_negatives(train), valid=valid, progress=progress, runner=runner, **options)
    return time.perf_counter() - started


def _with_negatives(train: Interactions) -> Interactions:
    """Return the data without the likes of users who like every item: they teach no model what to prefer.

    The users and what they know stay, so that their lists are empty.
    """
    full = train.per_user == train.n_items
    if not full.any() or full.all():
        return train
    warn_of_full_users(train.user_ids[full], train.n_items)
    complete = full[train.rows]
    known = train.csr.copy()
    known.data[~complete] = 0
    known.eliminate_zeros()
    low = known if train.low_rated is None else (train.low_rated + known).tocsr()
    return replace(train.select(~complete, split_hash=train.split_hash), low_rated=low)


def _refit(model: Recommender, data: Interactions, place: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the model for use on everything, and return a summary."""
    seconds = _fit(model, data, None, place, **options)
    history = getattr(model, "history_", None) or History()
    return {"positives": data.n_positives, "epochs": len(history.epochs), "seconds": seconds}


def _held_out(model: Recommender, split: Split, label: str) -> dict[str, Any]:
    """Return the figures of the test part as plain data: protocol, users, and metrics by name."""
    report = evaluate(model, split.train, split.test, valid=split.valid, metrics=TEST_METRICS, label=label)
    plain = report.to_dict()
    return {name: plain[name] for name in ("protocol", "n_users", "metrics")}


def _remove_checkpoint(folder: Path) -> None:
    for left in folder.rglob(f".{FILE}.*.new"):  # of a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    spare = f".{Path(FILE).stem}-*{Path(FILE).suffix}"
    for file in (file for name in (FILE, PREVIOUS, spare) for file in folder.rglob(name)):
        file.unlink(missing_ok=True)  # a blend has further ones, of its members, in folders below
    for place in (*sorted(folder.rglob("*/"), reverse=True), folder):  # those below others come first
        with suppress(OSError):  # it does not exist, or has files of somebody else
            place.rmdir()


def _summary(model: Recommender, record: Mapping[str, Any], train: Interactions, seconds: float) -> dict[str, Any]:
    history = getattr(model, "history_", None) or History()
    best, epochs = history.best, len(history.epochs)
    spent = history.seconds if epochs else seconds
    return {
        "model": record["label"],
        "seconds": seconds,
        "epochs": epochs,  # 0: the model is not trained in epochs
        "best_epoch": best.number if best else 0,
        "positives_per_second": train.n_positives * max(epochs, 1) / max(spent, 1e-9),
        "metric": history.metric if best and best.validation is not None else None,
        "validation": best.validation if best else None,
        "validation_of": _trained_in_epochs(model),
        "users": train.n_users,
        "items": train.n_items,
        "positives": train.n_positives,
        "data": record["source"]["data"],
        "data_hash": record["data_hash"],
        "split": record["split"],
        "seed": record["seed"],
        "version": version(),
    }


def _trained_in_epochs(model: Recommender) -> str | None:
    """Return the name of the member whose history a blend keeps; None for other models, whose history is their own."""
    members = named(getattr(model, "members_", ()))
    return next((name for name, member in members.items() if member.iterative), None)


def _seed(model: Recommender) -> int | None:
    """Return the seed of a model, or of its first member that has one; None if nothing is random."""
    known = model.known_params().items()
    return next((seed for name, seed in known if name.endswith("random_state") and seed is not None), None)
