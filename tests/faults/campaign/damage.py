"""Damaged files: bits flipped, blocks lost or moved, ends cut; each file is what another program may have made of it.

What must hold: the file is refused in our words, or what is read is what was written, or what was written before it. No
crash, no hang, no other numbers.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from dpcml import CML, EASE, planted
from dpcml.data.datasets import load_dataset
from dpcml.feedback import Feedback, FeedbackJournal, read_journal
from dpcml.results_store import ResultsStore
from dpcml.retrieval.ann import AnnIndex, index_of
from dpcml.scale.ingestion import ingest
from dpcml.storage import CARD, FILES, load, save
from dpcml.training.checkpoint import FILE, PREVIOUS, Checkpoint
from dpcml.training.trainer import History
from dpcml.utils.errors import DpcmlError
from tests.faults.campaign.cases import Budget, Tally, run_isolated

CASES = 2400


def run_damage(folder: Path, budget: Budget) -> Tally:
    """Damage files of all kinds and count what does not hold."""
    return run_isolated(attempt, budget.cases(CASES), folder, budget)


def attempt(folder: Path, rng: np.random.Generator) -> tuple[str, str | None]:
    """Damage one file and read it."""
    kind = list(READERS)[rng.integers(len(READERS))]
    warnings.simplefilter("ignore")
    try:
        return kind, READERS[kind](folder, rng)
    except DpcmlError:  # refused, in our words
        return kind, None


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return other bytes."""
    data = bytearray(content)
    place, other = (int(rng.integers(len(data))) for _ in range(2))
    length = int(rng.integers(1, 64))
    way = rng.integers(7)
    if way <= 1:
        data[place] ^= 1 << int(rng.integers(8))
    elif way == 2:
        del data[place:]
    elif way == 3:
        data[place : place + length] = bytes(len(data[place : place + length]))
    elif way == 4:
        data[place : place + length] = rng.bytes(length)
    elif way == 5:
        data[place : place + length] = data[other : other + length]
    else:
        del data[place : place + length]
    return bytes(data)


def damage(file: Path, rng: np.random.Generator) -> None:
    """Damage a file in its place."""
    file.write_bytes(damaged(file.read_bytes(), rng))


@cache
def world():
    """Return a small world."""
    return planted(60, 40, seed=1).data


@cache
def saved(folder: Path) -> tuple[Path, list[bytes]]:
    """Return the folder of a model, and its learned bytes."""
    model = EASE().fit(world())
    return save(model, folder / "sound"), [model.weights_.tobytes(), model.train_.indices.tobytes()]


def read_model(folder: Path, rng: np.random.Generator) -> str | None:
    """Load a model of which one file is damaged."""
    sound, expected = saved(folder)
    place = Path(shutil.copytree(sound, folder / "model", dirs_exist_ok=True))
    damage(place / rng.choice([CARD, *FILES]), rng)
    model = load(place, mapped=bool(rng.integers(2)))
    same = [model.weights_.tobytes(), model.train_.indices.tobytes()] == expected
    return None if same else "another model was loaded"


@cache
def trained(folder: Path) -> tuple[Path, CML, bytes]:
    """Return checkpoints of a training that broke off, and the vectors at its end."""
    model, place = CML(dim=8, epochs=5), folder / "sound-checkpoint"

    def stop(history: History) -> None:
        if len(history.epochs) == 3:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        CML(**model.get_params()).fit(world(), checkpoint=Checkpoint(place, every_epochs=1), callbacks=[stop])
    return place, model, CML(**model.get_params()).fit(world()).item_vectors_.tobytes()


def read_checkpoint(folder: Path, rng: np.random.Generator) -> str | None:
    """Go on from checkpoints of which the last is damaged, sometimes both."""
    sound, model, expected = trained(folder)
    place = Path(shutil.copytree(sound, folder / "checkpoint", dirs_exist_ok=True))
    damage(place / FILE, rng)
    if rng.random() < 0.3:
        damage(place / PREVIOUS, rng)
    found = CML(**model.get_params()).fit(world(), checkpoint=Checkpoint(place), resume=True)
    return None if found.item_vectors_.tobytes() == expected else "training went on to another model"


@cache
def indexed(folder: Path) -> tuple[Path, np.ndarray, list[int]]:
    """Return an index, its vectors, and what it finds."""
    items = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    AnnIndex(items).build().save(folder / "sound.index")
    return folder / "sound.index", items, nearest(AnnIndex(items).load(folder / "sound.index"), items)


def nearest(index: AnnIndex, items: np.ndarray) -> list[int]:
    """Return items near another one."""
    return index.best(items[[5]][:, None], 5, (np.array([0, 0]), np.array([], int)))[0].tolist()


def read_index(folder: Path, rng: np.random.Generator) -> str | None:
    """Search with an index that is damaged."""
    sound, items, expected = indexed(folder)
    file = folder / "cache" / "indexes" / f"{AnnIndex(items).key.hex()[:32]}.index"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(damaged(sound.read_bytes(), rng))
    os.environ["DPCML_CACHE"] = str(folder / "cache")
    found = index_of(items, build=False)  # None: search is exact
    return None if found is None or nearest(found, items) == expected else "the index finds other items"


@cache
def sharded(folder: Path) -> tuple[Path, str]:
    """Return a folder of shards, and the hash of what is in it."""
    planted(60, 40, seed=1).write_csv(folder / "likes.csv")
    place = ingest([folder / "likes.csv"], folder / "sound-shards", shard_rows=200)
    return place, load_dataset(place).content_hash


def read_shards(folder: Path, rng: np.random.Generator) -> str | None:
    """Read shards of which one file is damaged."""
    sound, expected = sharded(folder)
    place = Path(shutil.copytree(sound, folder / "shards", dirs_exist_ok=True))
    damage(place / rng.choice(sorted(file.name for file in sound.iterdir())), rng)
    return None if load_dataset(place).content_hash == expected else "other data were read"


def read_store(folder: Path, rng: np.random.Generator) -> str | None:
    """Read a results file that is damaged; it is a CSV file without checksums, in which untouched lines must count."""
    file = folder / "runs.csv"
    file.unlink(missing_ok=True)
    sound = ResultsStore(file, key=("label", "seed"))
    error = 'a, "b"\nc'
    sound.put({"label": f"row {k}", "seed": k, "P@3": k / 7, "error": "" if k % 5 else error} for k in range(20))
    before = file.read_bytes()
    file.write_bytes(damaged(before, rng))
    after = ResultsStore(file, key=("label", "seed"))
    after.put([{"label": "new", "seed": 0, "P@3": 0.5}])
    rows = {(row["label"], row["seed"]) for row in ResultsStore(file, key=("label", "seed")).rows}
    return None if ("new", 0) in rows or ("new", "0") in rows or ("new", 0.0) in rows else f"a new row is lost: {rows}"


def read_feedback(folder: Path, rng: np.random.Generator) -> str | None:
    """Read a journal that is damaged: entries that are left are entries that were written."""
    file = folder / "journal"
    file.unlink(missing_ok=True)
    journal = FeedbackJournal(file)
    entries = [Feedback("ann", k, "like", time=float(k)) for k in range(20)]
    for entry in entries:
        journal.append(entry)
    journal.close()
    damage(file, rng)
    found, _ = read_journal(file)
    return None if set(found) <= set(entries) else f"entries that nobody wrote: {set(found) - set(entries)}"


READERS: dict[str, Callable[[Path, np.random.Generator], str | None]] = {
    "model": read_model,
    "checkpoint": read_checkpoint,
    "index": read_index,
    "shards": read_shards,
    "results store": read_store,
    "feedback journal": read_feedback,
}
