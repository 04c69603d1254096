"""What the verbs share: read data, split it, fit a model, save it, and evaluate a saved one."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcml import storage
from dpcml.data.datasets import DATASETS, load_dataset
from dpcml.data.interactions import Interactions
from dpcml.data.items import ItemTable, as_integer, id_array, positions
from dpcml.data.shards import Shards, is_shards
from dpcml.data.split import SPLITS, Split, split_by
from dpcml.evaluation.evaluate import evaluate
from dpcml.evaluation.protocol import PROTOCOLS, select
from dpcml.evaluation.ranks import Ranks, rank_held_out
from dpcml.evaluation.report import Report
from dpcml.feedback import Feedback, latest, read_journal
from dpcml.models import MODELS, Recommender
from dpcml.models.parameters import named
from dpcml.models.presets import PRESETS
from dpcml.models.runners import Runner
from dpcml.retrieval.content import with_new_items
from dpcml.training.checkpoint import FILE, PREVIOUS, Checkpoint
from dpcml.training.progress import working
from dpcml.training.tracking import Tracker
from dpcml.training.trainer import History
from dpcml.utils.checks import choice
from dpcml.utils.errors import DataError, DpcmlError, ParameterError
from dpcml.utils.files import full_path
from dpcml.utils.names import renamed
from dpcml.utils.packages import version

TEST_METRICS = ("P@10", "R@10", "NDCG@10", "MAP", "MRR", "AUC")  # in the record of a model
SHARDS = "shards"  # the rule of a folder of shards, whose parts were made when it was written
REFIT = "refit"  # folder in that of the checkpoint, for the training on everything


@dataclass(frozen=True)
class DataSource:
    """Where data comes from: a name or a file, and how it is read.

    Parameters
    ----------
    data
        The name of a data set, a file, or ``planted``.
    options
        How it is read, see `dpcml.data.datasets.load_dataset`.

    Examples
    --------
    >>> DataSource("planted").read()
    Interactions(1,000 users, 1,000 items, 38,819 positives)
    """

    data: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def read(self, progress: Any = None) -> Interactions:
        """Return the data."""
        return load_dataset(self.data, progress=progress, **self.options)

    def split(self, data: Interactions, how: str, seed: int) -> Split:
        """Return the split of the data by a rule and a seed; a folder of shards has a split of its own."""
        own = self.split_rule(how, seed) == SHARDS and is_shards(self.data)
        return Shards.open(self.data).split() if own else split_by(data, how, seed)

    def split_rule(self, how: str = "ratio", seed: int = 0) -> str:
        """Return the name of the rule by which the data is split: the given one, or ``shards`` for a folder of them.

        Raises a `ParameterError` for shards that should be split by another rule or seed than their own.

        Examples
        --------
        >>> DataSource("planted").split_rule("last")
        'last'
        """
        if not is_shards(self.data):
            choice("split", how, tuple(SPLITS))
            return how
        rule = Shards.open(self.data).manifest["split"]["rule"]
        if how not in ("ratio", SHARDS):
            raise ParameterError(
                f"--split {how}: {self.data} has a split of its own ({rule}); leave it out, or name the files that were"
                " ingested"
            )
        if seed:
            raise ParameterError(
                f"--split-seed {seed}: {self.data} has a split of its own ({rule}); leave it out, or ingest anew by"
                f" 'dpcml data ingest --split-seed {seed}'"
            )
        return SHARDS

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that describes the same source in any working folder: paths are absolute."""
        named = self.data == "planted" or self.data in DATASETS
        options = {name: str(full_path(value)) if name == "items" else value for name, value in self.options.items()}
        return {"data": self.data if named else str(full_path(self.data)), "options": options}


def checkpoint_folder(out: str | Path) -> Path:
    """Return the folder of a run's checkpoint, beside the folder of its model.

    Examples
    --------
    >>> checkpoint_folder("runs/a").name
    'a.checkpoint'
    """
    place = full_path(out)
    return place.with_name(f"{place.name}.checkpoint")


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
    some = ", ".join(map(str, train.user_ids[full][:3])) + (", ..." if full.sum() > 3 else "")
    warnings.warn(
        f"no model can learn from users who like all {train.n_items} items ({some}): their likes are left out",
        stacklevel=2,
    )
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

    Dislikes and hidden items are not learned: a server goes on reading them from the journal.

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
    likes, foreign = _likes(model.train_, [one for one in said if one.action == "like"])
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


def read_catalogue(file: str | Path, reading: Mapping[str, Any], *, item: str | None = None) -> ItemTable:
    """Return all items of a file of titles; the column of their ids may be called as in the interactions.

    Parameters
    ----------
    file
        See `dpcml.data.readers.items.read_items`.
    reading
        Options by which the interactions were read.
    item
        Column of the ids; by default it is guessed.
    """
    from dpcml.data.readers.items import read_items  # polars takes long to import

    return read_items(file, item=item, like=reading.get("item"), text_ids=bool(reading.get("text_ids")))


def reading_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by which the data of a saved model was read, as far as its card knows them.

    Examples
    --------
    >>> reading_of({"record": {"source": {"data": "likes.csv", "options": {"item": "film"}}}})
    {'item': 'film'}
    """
    record = card["record"]
    found: dict[str, Any] = record.get("source", {}).get("options") or record.get("updated", {}).get("reading") or {}
    return found


def _likes(train: Interactions, likes: Sequence[Feedback]) -> tuple[Interactions | None, int]:
    """Return the likes that are new to a model, and how many it cannot take."""
    items = positions(train.item_ids, np.atleast_1d(id_array([one.item for one in likes])), train.items.order)
    numbers = train.user_ids.dtype.kind == "i"
    users = [as_integer(str(one.user)) if numbers else str(one.user) for one in likes]
    fit = [k for k, user in enumerate(users) if user is not None and items[k] >= 0]
    ids = id_array([users[k] for k in fit])
    rows, columns = positions(train.user_ids, np.atleast_1d(ids), train.user_order), items[fit]
    known = np.array([row >= 0 and column in train.of(row) for row, column in zip(rows, columns, strict=True)], bool)
    if known.all():
        return None, len(likes) - len(fit)
    wanted, codes = np.unique(ids[~known], return_inverse=True)
    new = [likes[k] for k, is_known in zip(fit, known, strict=True) if not is_known]
    found = Interactions.from_codes(
        codes, columns[~known], wanted, train.items,
        timestamps=None if train.timestamps is None else np.array([one.time for one in new]),
        weights=None if train.weights is None else np.full(len(new), np.median(train.weights)),  # nobody has said any
    )  # fmt: skip
    return found, len(likes) - len(fit)


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


def default_params(name: str) -> dict[str, Any]:
    """Return the parameters that a model or preset has by default, without an instance of it.

    Parameters
    ----------
    name
        A name in `dpcml.models.presets.PRESETS` or `dpcml.models.MODELS`; the preset, where it is in both.

    Examples
    --------
    >>> default_params("itemknn")
    {'k': 100, 'shrink': 10.0}
    """
    kind, settings = PRESETS[name] if name in PRESETS else (MODELS[name], {})
    return {field.name: field.default for field in fields(kind)} | settings
