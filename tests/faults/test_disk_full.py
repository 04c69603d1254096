"""Finding 10: a full disk, and a full standard output, are told in our words; nothing half-written stays."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpcml import Popularity, planted, save

WRITERS = """
import sys
from pathlib import Path

import numpy as np

from dpcml import CML, EASE, Popularity, save
from dpcml.data.synthetic import planted
from dpcml.evaluation.report import Report
from dpcml.export import export, write_recommendations
from dpcml.results_store import ResultsStore
from dpcml.scale.ingestion import ingest
from dpcml.training.checkpoint import Checkpoint, Checkpointer
from dpcml.utils.errors import DataError
from dpcml.utils.files import write_text

world = planted(400, 300, seed=1)
model = Popularity().fit(world.data)
vectors = EASE().fit(world.data)
place = Path(sys.argv[1])
report = Report("a" * 200_000, "a", {}, "text", "abc", (), 2, {"P@3": 0.5})
store = ResultsStore(place / "runs.csv", key=("label",))
checkpointer = Checkpointer(Checkpoint(place), {})
two = CML(dim=64)
two.train_ = world.data
rng = np.random.default_rng(0)
two.user_vectors_ = rng.random((400, 1, 64), dtype=np.float32)
two.item_vectors_ = rng.random((300, 64), dtype=np.float32)

writers = {
    "text": lambda: write_text(place / "a.txt", "x" * 200_000),
    "csv": lambda: write_recommendations(model, place / "a.csv", n=100),
    "jsonl": lambda: write_recommendations(model, place / "a.jsonl", n=100),
    "parquet": lambda: write_recommendations(model, place / "a.parquet", n=100),
    "export npy": lambda: export(vectors, "npy", place / "npy"),
    "export parquet": lambda: export(two, "parquet", place / "parquet"),
    "export faiss": lambda: export(two, "faiss-ready", place / "faiss"),
    "report csv": lambda: report.to_csv(place / "report.csv"),
    "store": lambda: store.put([{"label": "a" * 200_000}]),
    "world": lambda: world.write_csv(place / "world.csv"),
    "shards": lambda: ingest([place.with_name("likes.csv")], place / "shards"),
    "save": lambda: save(vectors, place / "model"),
    "checkpoint": lambda: checkpointer.write(1, {"x": np.zeros(50_000)}, {}),
}
for name, write in writers.items():
    try:
        write()
        print(name, "was written")
    except DataError as error:
        left = [file.name for file in place.iterdir()]
        if "No space left on device" not in str(error) or left:
            print(name, error, left)
"""


def test_every_writer_tells_of_a_full_disk_in_our_words_and_leaves_nothing(in_container, tmp_path):
    (tmp_path / "small").mkdir()
    planted(400, 300, seed=1).write_csv(tmp_path / "likes.csv")
    done = in_container(
        [sys.executable, "-c", WRITERS, tmp_path / "small"], writable=[tmp_path / "small"], room="8k",
        read_only=False, DPCML_THREADS="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_ingestion_loses_no_rows_when_not_one_byte_can_be_written(tmp_path):
    """A few rows fit into the buffer of the C library, which does not tell that it could not empty it."""
    (tmp_path / "likes.csv").write_text("user,item\n1,2\n3,4\n")
    done = subprocess.run(
        [sys.executable, "-m", "dpcml", "data", "ingest", "likes.csv", "--out", "shards"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)),
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "shards: cannot be written (File too large); make room" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["likes.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "words", [["doctor"], ["doctor", "--json"], ["recommend", "model", "--user", "1"], ["--version"]]
)
def test_a_full_standard_output_is_one_line(tmp_path, words):
    save(Popularity().fit(np.eye(4)), tmp_path / "model")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpcml", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        2, "error: standard output: cannot be written (No space left on device); make room\n"
    )  # fmt: skip
