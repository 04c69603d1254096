"""Kills: a process that writes gets SIGKILL at a random moment, or at one of its steps on the file system.

What must hold: what was there before is whole, or what was to be written is; never a mix. The same command given again
ends with the same result as without a kill, and leaves nothing else behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dpcml import EASE, planted
from dpcml.cli import main
from dpcml.data.datasets import load_dataset
from dpcml.feedback import Feedback, FeedbackJournal, read_journal
from dpcml.scale.ingestion import ingest
from dpcml.storage import EVALUATION, FILES, load_with_card, save
from dpcml.utils.errors import DataError
from dpcml.utils.saved_files import present_folder
from tests.faults.campaign.cases import CASE_SECONDS, PROCESSES, Budget, Tally

STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "fcntl.flock")


def verb(*words: str) -> None:
    """Run a command of the command line."""
    sys.argv = ["dpcml", *words]
    main()


def save_over(folder: str, other: str) -> None:
    """Save the other model over the one that is there."""
    model, card = load_with_card(other, mapped=False)
    save(model, folder, record=card["record"])


def append(journal: str, acknowledged: str, first: str) -> None:
    """Append numbered entries, and note the number of each that is on the disk."""
    kept = FeedbackJournal(journal)
    said = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(int(first), int(first) + 200):
        kept.append(Feedback("ann", number, "like"))
        os.write(said, b"%08d" % number)


@dataclass(frozen=True)
class Job:
    """A process to kill: what it runs in the folder of a case, what is there before, what must hold afterwards."""

    name: str
    cases: int
    run: Callable[..., None]
    words: tuple[str, ...]
    prepare: Callable[[Path, Path], None]  # the shared folder, the folder of the case
    state: Callable[[Path], Any]  # what the job writes, in a form that can be compared
    between: bool = False  # whether there is a result at any moment, the old one or the new one
    again: tuple[str, ...] | None = None  # the command after the kill; the same by default


def run_kills(folder: Path, budget: Budget) -> Tally:
    """Kill processes of all kinds and count what does not hold."""
    tally, rng = Tally(), np.random.default_rng(budget.seed)
    shared = make_shared(folder / "shared")
    for job in JOBS:
        place = folder / f"{job.name}-whole"
        job.prepare(shared, place)
        before = job.state(place) if job.between else None
        steps, seconds = _run_whole(job, place)
        expected = job.state(place)
        left = _names(place)
        for case in range(budget.cases(job.cases)):
            if budget.over():
                break
            place = folder / f"{job.name}-{case}"
            job.prepare(shared, place)
            moment = {"step": int(rng.integers(1, steps + 1))} if case % 2 else {"after": rng.random() * seconds}
            failure = _kill(job, place, (before, expected), left, **moment)
            tally.add(job.name, failure and f"case {case}, {moment}: {failure}")
            if failure is None:
                shutil.rmtree(place)
    return tally


def _kill(
    job: Job, place: Path, known: tuple[Any, Any], left: list[str], step: int = 0, after: float = CASE_SECONDS
) -> str | None:
    """Kill one process; return what does not hold."""
    process = _start(job, place, job.words, step)
    process.join(after)
    if process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    if job.between and job.state(place) not in known:
        return f"after the kill: {job.state(place)!r:.200}"
    again = _start(job, place, job.words if job.again is None else job.again)
    again.join(CASE_SECONDS)
    if again.exitcode != 0:
        return f"again: exit code {again.exitcode}, {(place / 'output').read_text()[-300:]}"
    if job.state(place) != known[1]:
        return f"again: another result, {job.state(place)!r:.200}"
    return None if _names(place) == left else f"left behind: {sorted({*_names(place)} ^ {*left})}"


def _start(job: Job, place: Path, words: tuple[str, ...], step: int = 0, count: bool = False) -> Any:
    process = PROCESSES.Process(target=_child, args=(job.run, words, place, step, count))
    process.start()
    while process.is_alive() and not (place / "started").exists():  # it is in a group of its own
        time.sleep(0.001)
    (place / "started").unlink(missing_ok=True)
    return process


def _child(run: Callable[..., None], words: tuple[str, ...], place: Path, step: int, count: bool) -> None:
    os.setsid()
    os.chdir(place)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    seen = 0

    def step_taken(event: str, given: tuple[Any, ...]) -> None:
        nonlocal seen
        reads = event == "open" and not (given[2] & (os.O_WRONLY | os.O_RDWR))
        if event in STEPS and not reads:
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)

    (place / "started").touch()
    sys.addaudithook(step_taken)
    try:
        run(*words)
    finally:
        if count:
            steps = seen  # writing the file is a step too
            (place / "steps").write_text(str(steps))


def _run_whole(job: Job, place: Path) -> tuple[int, float]:
    """Run a job to its end; return the number of its steps and its seconds."""
    started = time.monotonic()
    process = _start(job, place, job.words, count=True)
    process.join(CASE_SECONDS)
    if process.exitcode != 0:
        raise RuntimeError(f"{job.name} does not run: {(place / 'output').read_text()}")
    steps = int((place / "steps").read_text())
    (place / "steps").unlink()
    return steps, time.monotonic() - started


def _names(place: Path) -> list[str]:
    """Return names of all files of a case, in folders too."""
    return sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.name != "output")


def make_shared(folder: Path) -> Path:
    """Write what jobs start from: a small file of likes, two models that differ in everything but their sizes."""
    folder.mkdir(parents=True)
    world = planted(200, 60, seed=1)
    world.write_csv(folder / "likes.csv")
    for name, l2 in (("old", 1.0), ("new", 100.0)):
        save(EASE(l2=l2).fit(world.data), folder / name, record={"name": name})
    planted(200, 60, seed=2).write_csv(folder / "older.csv")
    ingest([folder / "older.csv"], folder / "shards", shard_rows=500)
    return folder


def with_likes(shared: Path, place: Path) -> None:
    """Make the folder of a case, with the likes."""
    place.mkdir()
    shutil.copy(shared / "likes.csv", place)


def with_models(shared: Path, place: Path) -> None:
    """Make the folder of a case, with both models, and what the old one has written."""
    place.mkdir()
    for source, name in (("old", "model"), ("new", "new")):
        shutil.copytree(shared / source, place / name)
    pl.DataFrame({"user": [1, 2]}).write_parquet(place / "lists.parquet")


def with_shards(shared: Path, place: Path) -> None:
    """Make the folder of a case, with the likes, and shards of older ones."""
    with_likes(shared, place)
    shutil.copytree(shared / "shards", place / "shards")


def model_state(folder: Path) -> Any:
    """Return which model a folder holds: name, parameters, bytes; loading checks that they belong together."""
    _, card = load_with_card(folder)
    folder = present_folder(folder)  # a kill between the two renames leaves the old model beside its place
    files = [*FILES, *(f"{EVALUATION}/{name}" for name in FILES if (folder / EVALUATION).exists())]
    return card["record"].get("name"), card["parameters"], [(folder / name).read_bytes() for name in files]


def table_state(file: Path, without: tuple[str, ...]) -> Any:
    """Return the rows of a table, without columns that no two runs have in common."""
    table = pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file)
    table = table.fill_nan(None)  # NaN, a metric that no user has, is not equal to itself
    return table.drop([name for name in without if name in table.columns]).sort(pl.all()).rows(named=True)


def search_state(place: Path) -> Any:
    """Return all trials of a search that succeeded, and the settings that it found."""
    trials = pl.read_csv(place / "search" / "trials.csv").filter(pl.col("status") == "ok")
    best = (place / "search" / "best.toml").read_text().split("[parameters]")[1]
    return sorted(zip(trials["parameters"], trials["value"], strict=True)), best


def journal_state(place: Path) -> Any:
    """Return whether the journal has every entry that was acknowledged, in order, and at most one more per process."""
    try:
        entries = [one.item for one in read_journal(place / "journal")[0]]
    except DataError:  # killed before the first line was written
        entries = []
    text = (place / "said").read_text() if (place / "said").exists() else ""
    said = [int(text[start : start + 8]) for start in range(0, len(text), 8)]
    whole = [number for number in entries if number in said] == said and len(entries) - len(said) <= 2
    return "whole" if whole else (said, entries)


TRAIN = ("train", "--data", "likes.csv", "--model", "cml", "--set", "dim=8", "--set", "epochs=5", "--checkpoint-every",
         "1", "--out", "model", "--quiet")  # fmt: skip
TUNE = ("tune", "--data", "likes.csv", "--model", "itemknn", "--budget", "4", "--workers", "1", "--out", "search")
STUDY = ("reproduce", "overall", "--quick", "--data", "likes.csv", "--label", "itemKNN", "--out", "study")
INGEST = ("data", "ingest", "likes.csv", "--shard-rows", "500", "--out", "shards")
LISTS = ("recommend", "model", "--users", "all", "-n", "5", "--out", "lists.parquet")
JOBS = (
    Job("train", 60, verb, TRAIN, with_likes, lambda p: model_state(p / "model"), again=(*TRAIN, "--resume")),
    Job("save", 60, save_over, ("model", "new"), with_models, lambda p: model_state(p / "model"), between=True),
    Job("tune", 24, verb, TUNE, with_likes, search_state),
    Job("reproduce", 24, verb, STUDY, with_likes, lambda p: table_state(*_study(p))),
    Job("recommend", 36, verb, LISTS, with_models, lambda p: table_state(p / "lists.parquet", ()), between=True),
    Job("ingest", 30, verb, INGEST, with_shards, lambda p: load_dataset(p / "shards").content_hash, between=True),
    Job("export", 24, verb, ("export", "model", "--out", "export"), with_models,
        lambda p: {file.name: file.read_bytes() for file in sorted((p / "export").iterdir())}),
    Job("feedback journal", 36, append, ("journal", "said", "0"), with_likes, journal_state, between=True,
        again=("journal", "said", "1000")),
)  # fmt: skip


def _study(place: Path) -> tuple[Path, tuple[str, ...]]:
    return next((place / "study").rglob("overall.csv")), ("seconds", "fit_seconds", "epoch_seconds")
