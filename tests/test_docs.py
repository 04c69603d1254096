"""What the documentation shows must run."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpcml.data.synthetic import planted

ROOT = Path(__file__).parents[1]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def likes(tmp_path, monkeypatch):
    """The files that the pages speak of: likes.csv with a user called ann, and items.csv with titles and genres."""
    data = planted(200, 150, seed=1).data
    users = ["ann", "bob", *(f"user-{k}" for k in range(2, 200))]
    rows = [f"{users[user]},{item},5" for user, item in zip(data.rows, data.indices, strict=True)]
    (tmp_path / "likes.csv").write_text("\n".join(["user_id,item_id,rating", *rows]))
    films = [f"{k},{data.items.title(k)},{'|'.join(data.items.attributes.of(k))}" for k in range(data.n_items)]
    (tmp_path / "items.csv").write_text("\n".join(["item_id,title,genres", *films]))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_python_on_the_first_pages_runs(page, likes, capsys):
    blocks = python_blocks(page)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
    assert "P@10" in capsys.readouterr().out


def test_python_of_a_guide_runs_from_top_to_bottom(likes, capsys):
    code = "\n".join(python_blocks("docs/recommend.md"))
    exec(compile(code, "docs/recommend.md", "exec"), {})
    assert "because of your interest in" in capsys.readouterr().out


def figures(page: str, below: str) -> list[list[str]]:
    """Return the cells of the first table below a text, without its head."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(below)[2]
    lines = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def measured(name: str) -> dict:
    return json.loads((ROOT / "results" / "bench" / f"{name}.json").read_text(encoding="utf-8"))


def test_figures_of_the_dial_are_the_measured_ones():
    names = ("P@3", "NDCG@10", "minority_R@10", "attribute_ILD@10", "coverage@10")
    rows = [[f"{row['mix']:g}", *(f"{row[name]:.3f}" for name in names)] for row in measured("mix")["dial"]]
    assert figures("docs/recommend.md", "results/bench/mix.json") == rows


def test_figures_of_fold_in_are_the_measured_ones():
    found = measured("fold-in")
    kinds = {"in training": "trained", "folded in": "folded", "most popular items": "popularity"}
    rows = [[words, *(f"{value:.3f}" for value in found[kind].values())] for words, kind in kinds.items()]
    assert figures("docs/recommend.md", "results/bench/fold-in.json") == rows
    said = f"It takes {found['milliseconds']['median']:.1f} ms for {found['milliseconds']['items']} items"
    assert said in (ROOT / "docs/recommend.md").read_text(encoding="utf-8")


def test_the_site_builds(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Interactions" in (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
