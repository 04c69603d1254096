"""Full disks: everything that writes is run on a small disk with ever more room, from none to more than enough.

What must hold: the new file or folder is whole, or one of our errors names the file and the reason, the old one is
unchanged and nothing else is left.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.faults.campaign.cases import Budget, Tally

CASES = 300
SIZE = 512 * 1024  # bytes of the disk
# Run by a user who may mount a small disk, in a name space of its own.
MOUNTED = 'mount -t tmpfs -o "size=$1" none "$2" && shift 2 && exec "$@"'
WRITERS = """
import json, sys, warnings
from pathlib import Path
import numpy as np
from dpcml import EASE, Popularity, load, planted, save
from dpcml.evaluation.report import Report
from dpcml.export import export, write_recommendations
from dpcml.feedback import Feedback, FeedbackJournal, read_journal
from dpcml.results_store import ResultsStore
from dpcml.scale.ingestion import ingest
from dpcml.training.checkpoint import Checkpoint, Checkpointer
from dpcml.utils.errors import DataError
from dpcml.utils.files import write_text

warnings.simplefilter("ignore")
place, size, cases, seed = Path(sys.argv[1]), *map(int, sys.argv[2:])
rng = np.random.default_rng(seed)
world = planted(80, 60, seed=1)
models = [EASE(l2=l2).fit(world.data) for l2 in (1.0, 100.0)]
likes = [place.with_name(f"likes-{number}.csv") for number in range(2)]
for number, file in enumerate(likes):
    planted(80, 60, seed=number).write_csv(file)
rows = [{"label": f"{k}" * 40, "seed": k} for k in range(200)]

def store(number):
    ResultsStore(place / "runs.csv", key=("seed",), resume=False).put(rows[: 100 + 100 * number])

def journal(number):
    (kept := FeedbackJournal(place / "journal")).append(Feedback("ann" * 200, number, "like", time=1.0))
    kept.close()

writers = {
    "text": lambda number: write_text(place / "a.txt", f"{number}" * 20_000),
    "lists, CSV": lambda number: write_recommendations(models[number], place / "a.csv", n=20),
    "lists, JSON lines": lambda number: write_recommendations(models[number], place / "a.jsonl", n=20),
    "lists, Parquet": lambda number: write_recommendations(models[number], place / "a.parquet", n=20),
    "export": lambda number: export(models[number], "npy", place / "npy"),
    "results store": store,
    "feedback journal": journal,
    "shards": lambda number: ingest(likes[: 1 + number], place / "shards"),
    "save": lambda number: save(models[number], place / "model"),
    "checkpoint": lambda number: Checkpointer(Checkpoint(place), {}).write(number, {"x": np.full(5_000, number)}, {}),
}

def content():
    files = [file for file in place.rglob("*") if file.is_file() and file.name != "ballast"]
    return {str(file.relative_to(place)): file.read_bytes() for file in files}

def empty():
    import shutil
    for file in place.iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()

for case in range(cases):
    name = list(writers)[case % len(writers)]
    empty()
    writers[name](0)
    old = content()
    free = int(rng.integers(1, 40)) * 4096 if rng.random() < 0.8 else 0
    with open(place / "ballast", "wb") as file:
        used = sum(-(-len(one) // 4096) * 4096 for one in old.values())
        file.write(bytes(max(0, size - used - free)))
    failure = None
    try:
        writers[name](1)
        if content() == old:
            failure = "nothing was written"
        (place / "model").exists() and load(place / "model")
    except DataError as error:
        if "No space left on device" not in str(error) and "no room" not in str(error):
            failure = f"an error with other words: {error}"
        elif content() != old:
            failure = f"something was changed or left: {sorted(content())}"
    except BaseException as error:
        failure = f"{type(error).__name__}: {error}"
    print(json.dumps([name, failure and f"{free:,} bytes free: {failure}"]), flush=True)
"""


def run_disk_full(folder: Path, budget: Budget) -> Tally:
    """Write to a disk with too little room, and count what does not hold."""
    small = folder / "small"
    small.mkdir(parents=True)
    cases, tally = budget.cases(CASES), Tally()
    python = [sys.executable, "-c", WRITERS, str(small), str(SIZE), str(cases), str(budget.seed)]
    shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNTED, "sh", str(SIZE), str(small)]
    done = subprocess.run([*shell, *python], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        tally.add(*json.loads(line))
    if done.returncode != 0:
        tally.add("crash", f"exit code {done.returncode}: {done.stderr[-300:]}")
    return tally
