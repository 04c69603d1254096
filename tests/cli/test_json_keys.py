"""The page on files names the keys of what commands print as JSON."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpcml import DPCML, Interactions, save
from dpcml.cli import app
from dpcml.data.synthetic import planted
from dpcml.feedback import Feedback, FeedbackJournal

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
COMMANDS = [
    ["train", "--data", "likes.csv", "--model", "dpcml", "--set", "epochs=1", "--set", "dim=4", "--out", "trained"],
    ["evaluate", "trained"],
    ["recommend", "model", "--user", "1", "--explain"],
    ["recommend", "model", "--history", ",", "--on-unknown", "popular"],
    ["recommend", "model", "--history", "3,none", "--on-unknown", "skip"],
    ["recommend", "model", "--users", "all", "--out", "lists.csv"],
    ["interests", "model", "--user", "1"],
    ["similar", "model", "--item", "3"],
    ["similar", "model", "--item", "3", "--item", "none", "--on-unknown", "skip"],
    ["update", "model", "--feedback", "journal", "--out", "newer", "--epochs", "1"],
    ["export", "model", "--out", "exported"],
    ["bound", "trained"],
    ["data", "describe", "likes.csv"],
    ["data", "ingest", "likes.csv", "--out", "shards"],
    ["compare", "--data", "likes.csv", "--models", "popularity,itemknn"],
    ["doctor"],
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, a model and feedback."""
    place = tmp_path_factory.mktemp("keys")
    planted(120, 90, positives=15, n_categories=4, seed=3).write_csv(place / "likes.csv")
    data = Interactions.from_file(place / "likes.csv")
    save(DPCML(n_vectors=2, dim=4, epochs=1, n_candidates=2).fit(data), place / "model")
    unknown = next(item for item in data.item_ids.tolist() if item not in data.item_ids[data.of(0)])
    FeedbackJournal(place / "journal").append(Feedback(data.user_ids.tolist()[0], unknown, "like"))
    return place


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_the_page_names_all_keys(place, monkeypatch, command):
    monkeypatch.chdir(place)
    name = " ".join(command[: 2 if command[0] == "data" else 1])
    rows = {line.split("|")[1].strip(): line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    told = set(re.findall(r"`(\w+)`", rows[f"`{name}`"]))
    answer = CliRunner().invoke(app, [*command, "--json"])
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert set(found) <= told, sorted(set(found) - told)
